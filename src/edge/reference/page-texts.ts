// The words of the reference page itself in both languages; what it says of the API stands in the document.

export type PageLanguage = 'en' | 'bn'

const en = {
  title: 'Abohawa API reference',
  skip: 'Skip to the content',
  version: 'Version {0}',
  otherLanguage: 'বাংলা',
  document: 'OpenAPI document',
  contents: 'Contents',
  start: 'Start',
  key: 'Your API key',
  keyHere: 'API key',
  keyHint:
    'It stays in this page until you close or reload it, and goes only to this gateway. Each request counts against its quota.',
  endpoints: 'Endpoints',
  bodies: 'Bodies',
  headers: 'Headers',
  errors: 'Errors',
  errorsIntro:
    'Every error has this body: `error` is a sentence for people, `code` is for programs and never renamed. 429 also has `limit` and `reset_at`.',
  request: 'Parameters',
  noParameters: 'It has no parameters.',
  name: 'Name',
  place: 'In',
  path: 'path',
  query: 'query',
  header: 'header',
  type: 'Type',
  unit: 'Unit',
  meaning: 'Meaning',
  required: 'required',
  optional: 'may be missing',
  default: 'default {0}',
  from: '{0} to {1}',
  atMost: 'at most {0} characters',
  listOf: 'list of {0}',
  or: '{0} or {1}',
  string: 'text',
  integer: 'whole number',
  number: 'number',
  object: 'object',
  null: 'null',
  programs: 'Programs',
  programIn: 'Program in {0}',
  programsKey:
    'The operator of this gateway gives you a key, once. The programs read it from `ABOHAWA_KEY`, as in `export ABOHAWA_KEY=svc_live_…`, and `ABOHAWA_URL` where it names another gateway.',
  answer: 'Body of 200',
  exampleBody: 'Example of a body',
  try: 'Try it',
  send: 'Send',
  sending: 'Sending…',
  notSent: 'The request could not be sent: {0}',
  status: 'Status {0}, {1} ms',
  answerHeaders: 'Headers of the response',
  answerBody: 'Body of the response',
  code: 'Code',
  statusWord: 'Status',
  counts: 'Counts',
  yes: 'yes',
  no: 'no',
  always: 'always',
  retry:
    'After 429 and 500 wait for `retry-after`. After 429 it ends at midnight, so give up where it is longer than you can wait.',
  encoding: 'Percent-encode what you put into a URL, such as Bengali names: the programs below do.',
  noScript: 'Sending requests from this page needs JavaScript.',
}

type Words = Readonly<Record<keyof typeof en, string>>

const bn: Words = {
  title: 'আবহাওয়া API নির্দেশিকা',
  skip: 'মূল অংশে যান',
  version: 'সংস্করণ {0}',
  otherLanguage: 'English',
  document: 'OpenAPI দলিল',
  contents: 'সূচি',
  start: 'শুরু',
  key: 'আপনার API কী',
  keyHere: 'API কী',
  keyHint: 'পাতা বন্ধ বা নতুন করে খোলা পর্যন্ত এখানেই থাকে, আর শুধু এই গেটওয়েতে যায়। প্রতিটি অনুরোধ কোটায় গণনা হয়।',
  endpoints: 'এন্ডপয়েন্ট',
  bodies: 'বডি',
  headers: 'হেডার',
  errors: 'ত্রুটি',
  errorsIntro:
    'প্রতিটি ত্রুটির বডি এমন: `error` মানুষের জন্য একটি বাক্য, `code` প্রোগ্রামের জন্য এবং কখনো বদলায় না। 429-এ `limit` ও `reset_at`-ও থাকে।',
  request: 'প্যারামিটার',
  noParameters: 'কোনো প্যারামিটার নেই।',
  name: 'নাম',
  place: 'কোথায়',
  path: 'পথ',
  query: 'কোয়েরি',
  header: 'হেডার',
  type: 'ধরন',
  unit: 'একক',
  meaning: 'অর্থ',
  required: 'আবশ্যক',
  optional: 'না-ও থাকতে পারে',
  default: 'না দিলে {0}',
  from: '{0} থেকে {1}',
  atMost: 'সর্বোচ্চ {0} অক্ষর',
  listOf: '{0}-এর তালিকা',
  or: '{0} বা {1}',
  string: 'লেখা',
  integer: 'পূর্ণ সংখ্যা',
  number: 'সংখ্যা',
  object: 'বস্তু',
  null: 'null',
  programs: 'প্রোগ্রাম',
  programIn: '{0} প্রোগ্রাম',
  programsKey:
    'এই গেটওয়ের পরিচালক কী দেন, একবার। প্রোগ্রাম তা `ABOHAWA_KEY` থেকে পড়ে, যেমন `export ABOHAWA_KEY=svc_live_…`; অন্য গেটওয়ের জন্য `ABOHAWA_URL` দিন।',
  answer: '200-এর বডি',
  exampleBody: 'বডির উদাহরণ',
  try: 'পরীক্ষা করুন',
  send: 'পাঠান',
  sending: 'পাঠানো হচ্ছে…',
  notSent: 'অনুরোধ পাঠানো যায়নি: {0}',
  status: 'স্ট্যাটাস {0}, {1} মি.সে.',
  answerHeaders: 'উত্তরের হেডার',
  answerBody: 'উত্তরের বডি',
  code: 'কোড',
  statusWord: 'স্ট্যাটাস',
  counts: 'গণনা',
  yes: 'হ্যাঁ',
  no: 'না',
  always: 'সর্বদা',
  retry:
    '429 ও 500-এর পরে `retry-after` পর্যন্ত অপেক্ষা করুন। 429-এর পরে তা মধ্যরাতে শেষ হয়, তাই অপেক্ষা বেশি দীর্ঘ হলে থেমে যান।',
  encoding: 'URL-এ যা দেন তা শতকরা-এনকোড করুন, যেমন বাংলা নাম: নিচের প্রোগ্রামগুলো তা করে।',
  noScript: 'এই পাতা থেকে অনুরোধ পাঠাতে জাভাস্ক্রিপ্ট লাগে।',
}

/** A word of the page with its values put in. */
export type Say = (name: keyof typeof en, ...values: readonly (string | number)[]) => string

const words: Readonly<Record<PageLanguage, Words>> = { en, bn }

export const sayIn =
  (language: PageLanguage): Say =>
  (name, ...values) =>
    words[language][name].replaceAll(/\{(\d)\}/g, (_, at) => String(values[Number(at)]))
