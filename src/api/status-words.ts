// The words of the status page in both languages.

import { type Language, type Say as SayOf, sayIn as sayInOf } from '../common/page/words.ts'

const en = {
  title: 'Weather service status',
  asOf: 'As of {0}. Time zone:',
  otherLanguage: 'বাংলা',
  reference: 'API reference',
  now: 'Now',
  allWell: 'No outage: weather is renewed, and keys and quotas are counted.',
  providerOut:
    'Weather is not renewed since {0}. Answers have the last weather that is known; some requests may fail.',
  storeOut:
    'Keys and quotas can’t be counted as usual since {0}. New keys and some requests may end in an error.',
  weather: 'Weather',
  freshShare: 'Fresh, of all that is asked for',
  noDemand: 'nobody asks at present',
  underMinute: 'under a minute',
  medianAge: 'Half of it is younger than',
  oldestAge: 'The oldest',
  run: 'Newest run of the weather model',
  days: 'The last {0} days',
  day: 'Day',
  availability: 'Availability',
  providerMinutes: 'Weather not renewed',
  storeMinutes: 'Keys and quotas impaired',
  none: 'none',
  daysNote:
    'Availability is the share of answers that were no error of the service (5xx). A dash stands for what is not on record.',
}

const bn: typeof en = {
  title: 'আবহাওয়া সেবার অবস্থা',
  asOf: '{0}-এর অবস্থা। সময় অঞ্চল:',
  otherLanguage: 'English',
  reference: 'এপিআই নির্দেশিকা',
  now: 'এখন',
  allWell: 'কোনো বিভ্রাট নেই: আবহাওয়া নবায়ন হচ্ছে, কী ও কোটা গোনা হচ্ছে।',
  providerOut: '{0} থেকে আবহাওয়া নবায়ন হচ্ছে না। উত্তরে শেষ জানা আবহাওয়া থাকে; কিছু অনুরোধ ব্যর্থ হতে পারে।',
  storeOut: '{0} থেকে কী ও কোটা স্বাভাবিকভাবে গোনা যাচ্ছে না। নতুন কী ও কিছু অনুরোধ ত্রুটিতে শেষ হতে পারে।',
  weather: 'আবহাওয়া',
  freshShare: 'যা চাওয়া হয় তার মধ্যে তাজা',
  noDemand: 'এখন কেউ চাইছে না',
  underMinute: 'এক মিনিটের কম',
  medianAge: 'অর্ধেকের বয়স এর কম',
  oldestAge: 'সবচেয়ে পুরোনো',
  run: 'আবহাওয়া মডেলের নতুনতম রান',
  days: 'গত {0} দিন',
  day: 'দিন',
  availability: 'সচল ছিল',
  providerMinutes: 'আবহাওয়া নবায়ন হয়নি',
  storeMinutes: 'কী ও কোটায় বিঘ্ন',
  none: 'নেই',
  daysNote: 'সচল থাকা মানে মোট উত্তরের যত অংশ সেবার নিজের ত্রুটি (৫xx) ছিল না। যা নথিতে নেই সেখানে ড্যাশ।',
}

const words = { en, bn }

type Word = keyof typeof en

export const sayIn = (language: Language): SayOf<Word> => sayInOf(words, language)
