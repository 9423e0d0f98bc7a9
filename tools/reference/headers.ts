// The headers of the responses, with their meaning in both languages and the statuses that have them.

import { type AnswerName, isList } from 'abohawa/common/endpoints.ts'
import type { ProblemStatus } from 'abohawa/telemetry/label-values.ts'
import * as z from 'zod'
import { jsonSchemaOf } from './json-schema.ts'
import { described, type Text } from './texts.ts'

type Header = { readonly schema: z.ZodType; readonly meaning: Text; readonly example: string | number }

const header = (
  example: string | number,
  en: string,
  bn: string,
  schema: z.ZodType = z.string(),
): Header => ({
  schema,
  meaning: [en, bn],
  example,
})
const wholeNumber = z.int().min(0)

export const headers = {
  'x-ratelimit-limit': header(
    1000,
    'Daily quota of the key. 0 if the key is not known.',
    'কী-র দৈনিক কোটা। কী চেনা না গেলে ০।',
    wholeNumber,
  ),
  'x-ratelimit-remaining': header(
    999,
    'Requests left after this one. 0 if the key is not known.',
    'এর পরে বাকি অনুরোধ। কী চেনা না গেলে ০।',
    wholeNumber,
  ),
  'x-ratelimit-reset': header(
    1795284000,
    'When the quota resets: the next local midnight, in Unix seconds.',
    'কোটা কখন নতুন হয়: পরবর্তী স্থানীয় মধ্যরাত, Unix সেকেন্ডে।',
    wholeNumber,
  ),
  'x-ratelimit-cost': header(
    2,
    'Units that the list of places costs. After `quota_insufficient`: units it would have cost.',
    'স্থানের তালিকার খরচ, এককে। `quota_insufficient` হলে: যত খরচ হতো।',
    wholeNumber,
  ),
  'ratelimit-policy': header(
    '"daily";q=1000;w=86400',
    'The quota in the IETF draft format, then the limits per second and minute, if any: `"second";q=10;w=1`.',
    'IETF খসড়ার রূপে কোটা, তারপর থাকলে সেকেন্ড ও মিনিটের সীমা: `"second";q=10;w=1`।',
  ),
  ratelimit: header(
    '"daily";r=999;t=42900',
    'Requests left (`r`) and seconds until the limit is full again (`t`). For a limit per second or minute with `r=0`: seconds until the next request is allowed.',
    'বাকি অনুরোধ (`r`) ও কত সেকেন্ড পরে আবার পুরোটা (`t`)। সেকেন্ড বা মিনিটের সীমায় `r=0` হলে: কত সেকেন্ড পরে পরের অনুরোধ পাঠানো যাবে।',
  ),
  'x-key-expires': header(
    '2026-11-28T18:00:00.000Z',
    'When the key expires or its replacement takes over, in UTC. Sent during the last seven days.',
    'কী-র মেয়াদ কখন শেষ বা নতুন কী কখন তার জায়গা নেয়, UTC-তে। শেষ সাত দিনে থাকে।',
  ),
  'retry-after': header(
    10,
    'Seconds to wait before you retry.',
    'আবার চেষ্টার আগে অপেক্ষার সেকেন্ড।',
    z.int().min(1),
  ),
  'x-request-id': header(
    'my-request-1',
    'Your request id if it is valid, otherwise a new one. Quote it when you report a problem.',
    'আপনার দেওয়া বৈধ id, নইলে নতুন একটি। সমস্যা জানাতে এটি উল্লেখ করুন।',
  ),
  etag: header(
    'W/"p7VxIYy0LhQ"',
    'Version of the body. Send it as `if-none-match` to get a 304 if nothing changed. A 304 counts like a 200 unless the operator charges less.',
    'বডির সংস্করণ। `if-none-match` হিসেবে পাঠালে কিছু না বদলালে 304। পরিচালক কম না ধরলে 304 একটি 200-এর মতোই গণনা হয়।',
  ),
  'cache-control': header(
    'private, max-age=600',
    'How long you may cache the body, in seconds. Errors must not be cached.',
    'বডি কত সেকেন্ড ক্যাশ করা যায়। ত্রুটি ক্যাশ করবেন না।',
  ),
  'last-modified': header(
    'Sat, 21 Nov 2026 06:00:00 GMT',
    'When the weather was fetched from the provider.',
    'সরবরাহকারীর কাছ থেকে কখন আনা।',
  ),
  'cache-status': header(
    'abohawa; hit; ttl=3600; detail=memory; key="23.8,90.4"',
    'What the cache did (RFC 9211). `key` is the grid cell. `upstream` is the weather service, if there are several.',
    'ক্যাশ কী করেছে (RFC 9211)। `key` গ্রিড ঘর। একাধিক উৎস থাকলে `upstream` আবহাওয়ার উৎস।',
  ),
  'x-test-data': header(
    'fixed',
    'The key is a test key: weather and errors are made up.',
    'কী-টি পরীক্ষার: আবহাওয়া ও ত্রুটি বানানো।',
    z.literal('fixed'),
  ),
  'content-language': header(
    'en',
    '`bn` or `en`, as requested with `lang`. The forecast has it only with `include=text`.',
    '`bn` বা `en`, `lang` অনুসারে। পূর্বাভাসে কেবল `include=text` থাকলে।',
  ),
  'content-encoding': header(
    'gzip',
    'Compression, if `accept-encoding` allows it.',
    '`accept-encoding` চাইলে সংকোচন।',
    z.enum(['br', 'gzip']),
  ),
  vary: header(
    'accept-encoding, x-api-key',
    'Request headers that the response depends on.',
    'উত্তর যে অনুরোধ-হেডারের উপর নির্ভর করে।',
  ),
  'content-location': header(
    '3026?lang=en',
    'For a request with a slug: the path with the id, relative to the request URL.',
    '`slug_en` দিয়ে অনুরোধে: id-সহ পথ, অনুরোধের URL-এর সাপেক্ষে।',
  ),
  link: header(
    '<?type=union&limit=50&offset=50>; rel="next"',
    'The next and previous page, relative to the request URL.',
    'পরের ও আগের পাতা, অনুরোধের URL-এর সাপেক্ষে।',
  ),
  allow: header('GET, HEAD', 'The allowed methods.', 'অনুমোদিত পদ্ধতি।'),
  'www-authenticate': header(
    'ApiKey realm="abohawa"',
    'How to send a key: in the header x-api-key.',
    'কী পাঠানোর উপায়: x-api-key হেডারে।',
  ),
  'access-control-allow-origin': header(
    'https://app.example.org',
    'The web page origin that the operator allows.',
    'পরিচালক যে ওয়েব পাতার উৎস অনুমোদন করেন।',
  ),
  'access-control-expose-headers': header(
    'etag, retry-after',
    'Headers that such a page can read.',
    'সেই পাতা যে হেডার পড়তে পারে।',
  ),
} as const satisfies Record<string, Header>

export type HeaderName = keyof typeof headers

const always: readonly HeaderName[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'cache-control',
]
const figures: readonly HeaderName[] = ['ratelimit-policy', 'ratelimit', 'x-key-expires']
const ofPages: readonly HeaderName[] = ['access-control-allow-origin', 'access-control-expose-headers']
const ofError = [...always, ...figures, 'x-ratelimit-cost', ...ofPages, 'x-test-data', 'vary'] as const

/** The headers of a response without a body of an endpoint's own, by status. */
export const headersOfErrors: Readonly<Record<ProblemStatus, readonly HeaderName[]>> = {
  400: ofError,
  401: [...always, 'www-authenticate', ...ofPages, 'x-test-data', 'vary'],
  403: ofError,
  404: ofError,
  405: [...ofError, 'allow'],
  429: [...ofError, 'retry-after'],
  500: [...ofError, 'retry-after'],
}

// Each of the responses that may have them has them.
const whereverNamed: readonly HeaderName[] = [
  ...always,
  'etag',
  'last-modified',
  'cache-status',
  'retry-after',
  'www-authenticate',
  'allow',
]

/** Whether no response of an endpoint, or none of all, lacks a header with which it is described. */
export const isAlwaysThere = (name: HeaderName, endpoint?: AnswerName): boolean =>
  // A list may have no place with weather.
  whereverNamed.includes(name) &&
  !(name === 'last-modified' && endpoint && endpoint !== 'key' && isList(endpoint))

const ofBody: readonly HeaderName[] = [
  ...[...always, ...figures, 'etag', 'vary', 'content-encoding', ...ofPages, 'x-test-data'],
] as const
const ofWeather: readonly HeaderName[] = [...ofBody, 'last-modified', 'cache-status']
const ofLists: readonly HeaderName[] = [...ofWeather, 'x-ratelimit-cost']

/** The headers of 200 and 304, by endpoint, and those of a key. */
export const headersOfBodies: Readonly<Record<AnswerName, readonly HeaderName[]>> = {
  weather: [...ofWeather, 'content-language', 'content-location'],
  coords: [...ofWeather, 'content-language'],
  forecast: [...ofWeather, 'content-language', 'content-location'],
  locations: [...ofBody, 'link'],
  location: [...ofBody, 'content-location'],
  key: [...always, ...figures, ...ofPages, 'x-test-data', 'vary'],
  weather_places: [...ofLists, 'content-language'],
  forecast_places: ofLists,
}

/** A header as the document has it. */
export const headerObject = ({ schema, meaning, example }: Header, required: boolean) => ({
  ...described(...meaning),
  ...(required ? { required } : {}),
  schema: jsonSchemaOf(schema),
  example,
})
