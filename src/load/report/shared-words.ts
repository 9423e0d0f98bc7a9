// The words that reports and comparisons share, in both languages.

import type { Language, Words } from '../../page/words.ts'

const en = {
  limit: 'Limit',
  passed: 'passed',
  failed: 'failed',
  perSecond: '{0}/s',
  hash: 'SHA-256',
  pace: 'Pace',
  settings: 'Settings',
  version: 'Version',
  started: 'Started',
  endpoint: 'Endpoint',
  outcome: 'Outcome',
  hit: 'hit',
  stale: 'stale',
  miss: 'miss',
  none: 'no weather',
  unanswered: 'not answered',
  unsent: 'never sent',
  path: 'Path',
}

const bn: Words<keyof typeof en> = {
  limit: 'সীমা',
  passed: 'উত্তীর্ণ',
  failed: 'অনুত্তীর্ণ',
  perSecond: '{0}/সে.',
  hash: 'SHA-256',
  pace: 'গতি',
  settings: 'সেটিং',
  version: 'সংস্করণ',
  started: 'শুরু',
  endpoint: 'এন্ডপয়েন্ট',
  outcome: 'ফলাফল',
  hit: 'ক্যাশ থেকে',
  stale: 'বাসি',
  miss: 'ক্যাশে নেই',
  none: 'আবহাওয়া ছাড়া',
  unanswered: 'উত্তর নেই',
  unsent: 'পাঠানো হয়নি',
  path: 'পথ',
}

export const sharedWords: Readonly<Record<Language, Words<keyof typeof en>>> = { en, bn }
