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
    'Daily quota of the key; 0 until the key is known.',
    'কী-র দৈনিক কোটা; কী চেনার আগে ০।',
    wholeNumber,
  ),
  'x-ratelimit-remaining': header(
    999,
    'Requests left after this one; 0 until the key is known.',
    'এর পরে বাকি অনুরোধ; কী চেনার আগে ০।',
    wholeNumber,
  ),
  'x-ratelimit-reset': header(
    1795284000,
    'The next local midnight, Unix seconds.',
    'পরবর্তী স্থানীয় মধ্যরাত, Unix সেকেন্ডে।',
    wholeNumber,
  ),
  'x-ratelimit-cost': header(
    2,
    'The units that a request for a list of places takes, or would have taken where the quota does not suffice.',
    'স্থানের তালিকার অনুরোধে যত একক লাগে, বা কোটা যথেষ্ট না হলে যত লাগত।',
    wholeNumber,
  ),
  'ratelimit-policy': header(
    '"daily";q=1000;w=86400',
    'The quota in the form of the IETF draft, and behind it the limits by the second and minute of a key that has them: `"second";q=10;w=1`.',
    'IETF খসড়ার রূপে কোটা, আর তার পরে কী-র থাকলে সেকেন্ড ও মিনিটের সীমা: `"second";q=10;w=1`।',
  ),
  ratelimit: header(
    '"daily";r=999;t=42900',
    'What is left of each, and in how many seconds all of it is there again. Of a limit by the second or minute with `r=0`: in how many seconds the next request may be sent.',
    'প্রতিটির কত বাকি, আর কত সেকেন্ড পরে আবার পুরোটা। সেকেন্ড বা মিনিটের সীমায় `r=0` হলে: কত সেকেন্ড পরে পরের অনুরোধ পাঠানো যাবে।',
  ),
  'x-key-expires': header(
    '2026-11-28T18:00:00.000Z',
    'From seven days before the end of the key on: when it ends, by its expiry or because a newer one replaces it, in UTC.',
    'কী শেষ হওয়ার সাত দিন আগে থেকে: মেয়াদ বা নতুন কী-র কারণে কখন শেষ, UTC-তে।',
  ),
  'retry-after': header(
    10,
    'Seconds to wait before another attempt.',
    'আবার চেষ্টার আগে অপেক্ষার সেকেন্ড।',
    z.int().min(1),
  ),
  'x-request-id': header(
    'my-request-1',
    "The client's own id where it sent a sane one, else a new one. Name it to the operator.",
    'ক্লায়েন্টের নিজের গ্রহণযোগ্য id, নইলে নতুন একটি। পরিচালককে এটি জানান।',
  ),
  etag: header(
    'W/"p7VxIYy0LhQ"',
    'Names the body. Send it as if-none-match for a 304 without a body. A 304 counts like a 200 unless the operator charges less.',
    'বডির নাম। if-none-match হিসেবে পাঠালে বডি ছাড়া 304। পরিচালক কম না ধরলে 304 একটি 200-এর মতোই গণনা হয়।',
  ),
  'cache-control': header(
    'private, max-age=600',
    'How many seconds the body stays right; errors are not kept.',
    'বডি কত সেকেন্ড ঠিক থাকে; ত্রুটি রাখা হয় না।',
  ),
  'last-modified': header(
    'Sat, 21 Nov 2026 06:00:00 GMT',
    'When the weather was fetched from the provider.',
    'সরবরাহকারীর কাছ থেকে কখন আনা।',
  ),
  'cache-status': header(
    'abohawa; hit; ttl=3600; detail=memory; key="23.8,90.4"',
    'What the cache did (RFC 9211); `key` names the grid cell, `upstream` the service the weather is from where there are several.',
    'ক্যাশ কী করেছে (RFC 9211); `key` গ্রিড ঘরের নাম; একাধিক উৎস থাকলে `upstream` আবহাওয়ার উৎসের নাম।',
  ),
  'x-test-data': header(
    'fixed',
    'On every response to a test key: weather and errors are made up.',
    'পরীক্ষার কী-র প্রতিটি উত্তরে: আবহাওয়া ও ত্রুটি বানানো।',
    z.literal('fixed'),
  ),
  'content-language': header(
    'en',
    '`bn` or `en`, as `lang`; of the forecast with `include=text`.',
    '`bn` বা `en`, `lang` অনুসারে; পূর্বাভাসে `include=text` থাকলে।',
  ),
  'content-encoding': header(
    'gzip',
    'Where accept-encoding asks for it.',
    'accept-encoding চাইলে।',
    z.enum(['br', 'gzip']),
  ),
  vary: header(
    'accept-encoding, x-api-key',
    'What else the response depends on.',
    'উত্তর আর কিসের উপর নির্ভর করে।',
  ),
  'content-location': header(
    '3026?lang=en',
    "On the answer to a slug: the path with the place's id, relative to the request's URL.",
    '`slug_en`-এর উত্তরে: স্থানের id-সহ পথ, অনুরোধের URL-এর সাপেক্ষে।',
  ),
  link: header(
    '<?type=union&limit=50&offset=50>; rel="next"',
    "The next and the previous page, relative to the request's URL.",
    'পরের ও আগের পাতা, অনুরোধের URL-এর সাপেক্ষে।',
  ),
  allow: header('GET, HEAD', 'The methods that there are.', 'যে পদ্ধতিগুলো আছে।'),
  'www-authenticate': header(
    'ApiKey realm="abohawa"',
    'How to send a key: in the header x-api-key.',
    'কী পাঠানোর উপায়: x-api-key হেডারে।',
  ),
  'access-control-allow-origin': header(
    'https://app.example.org',
    'Where the operator lets web pages read.',
    'পরিচালক যেখানে ওয়েব পাতাকে পড়তে দেন।',
  ),
  'access-control-expose-headers': header(
    'etag, retry-after',
    'What such a page can read.',
    'সেই পাতা যা পড়তে পারে।',
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
