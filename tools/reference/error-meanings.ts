// The meaning of each error code for a consumer, in both languages: its status, whether the request counts, the cause and the remedy.
// The reference and docs/api.md show it. The gateway reads status and count of a test key's error from the written document.

import type { ErrorCode } from 'abohawa/api/sentences.ts'
import type { ProblemStatus } from 'abohawa/telemetry/label-values.ts'
import type { Text } from './texts.ts'

type ErrorMeaning = {
  readonly status: ProblemStatus
  /** Whether the request takes a unit of the key's quota. */
  readonly counts: boolean
  readonly meaning: Text
}

const of =
  (status: ProblemStatus, counts: boolean) =>
  (en: string, bn: string): ErrorMeaning => ({ status, counts, meaning: [en, bn] })

const invalidHttp = of(400, false)
const invalid = of(400, true)
const refusedKey = of(401, false)
const refusedUse = of(403, false)
const notFound = of(404, true)
const noWeather = of(500, true)
const uncounted = of(500, false)
const later = (en: string, bn: string): ErrorMeaning =>
  noWeather(`${en}: try again after retry-after.`, `${bn}: retry-after-এর পরে আবার চেষ্টা করুন।`)

export const errors: Readonly<Record<ErrorCode, ErrorMeaning>> = {
  https_required: invalidHttp(
    'The request came over plain HTTP: send it over HTTPS.',
    'অনুরোধটি সাধারণ HTTP-তে এসেছে: HTTPS দিয়ে পাঠান।',
  ),
  host_missing: invalidHttp(
    'HTTP/1.1 requires the header host: send it.',
    'HTTP/1.1-এ host হেডার আবশ্যক: তা পাঠান।',
  ),
  host_invalid: invalidHttp(
    'The header host names no host, or more than one: send one, with or without a port.',
    'host হেডারে বৈধ হোস্ট নেই বা একাধিক আছে: পোর্টসহ বা ছাড়া একটিই পাঠান।',
  ),
  http_version_not_supported: invalidHttp(
    'The request line has another HTTP version: send HTTP/1.1 or 1.0.',
    'অনুরোধে HTTP-র অন্য সংস্করণ: HTTP/1.1 বা 1.0 ব্যবহার করুন।',
  ),
  transfer_encoding_in_http_1_0: invalidHttp(
    'HTTP/1.0 has no transfer-encoding: leave it out, or send HTTP/1.1.',
    'HTTP/1.0-এ transfer-encoding নেই: তা বাদ দিন, বা HTTP/1.1 ব্যবহার করুন।',
  ),
  transfer_encoding_not_supported: invalidHttp(
    'The body is encoded in another way than chunked: send no body.',
    'বডির এনকোডিং chunked নয়: বডি ছাড়া পাঠান।',
  ),
  head_too_large: invalidHttp(
    'URL and headers are above 16 KiB together, and the connection ends: send a shorter URL, fewer headers and no cookies.',
    'URL ও হেডার মিলে ১৬ KiB-এর বেশি, সংযোগ বন্ধ হয়: ছোট URL ও কম হেডার পাঠান, কুকি ছাড়া।',
  ),
  url_not_encoded: invalidHttp(
    'The URL has raw characters such as ঢ, and the connection ends: percent-encode them.',
    'URL-এ ঢ-এর মতো অক্ষর সরাসরি আছে, সংযোগ বন্ধ হয়: শতকরা-এনকোড করুন।',
  ),
  request_timeout: invalidHttp(
    'The request did not arrive completely in time, and the connection ends: send it at once.',
    'অনুরোধ সময়মতো সম্পূর্ণ আসেনি, সংযোগ বন্ধ হয়: একবারে সম্পূর্ণ পাঠান।',
  ),
  http_invalid: invalidHttp(
    'What arrived is not HTTP, and the connection ends: send valid HTTP.',
    'যা এসেছে তা HTTP নয়, সংযোগ বন্ধ হয়: বৈধ HTTP পাঠান।',
  ),
  method_not_allowed: of(405, true)(
    'The API only reads: send GET or HEAD. CONNECT does not count.',
    'API শুধু পড়ার জন্য: GET বা HEAD পাঠান। CONNECT গণনা হয় না।',
  ),
  key_missing: refusedKey(
    'No key came in the header x-api-key: send it there.',
    'x-api-key হেডারে কী আসেনি: সেখানেই পাঠান।',
  ),
  key_wrong_prefix: refusedKey(
    "The key is another service's: send the one of this gateway.",
    'কী-টি অন্য সেবার: এই গেটওয়ের কী পাঠান।',
  ),
  key_malformed: refusedKey(
    'The checksum of the key is wrong, so it is mistyped or cut off: copy it again.',
    'কী-র চেকসাম মেলে না, তাই এটি ভুল টাইপ করা বা কাটা: আবার কপি করুন।',
  ),
  key_unknown: refusedKey(
    "The key is another gateway's: compare the address, or ask the operator.",
    'কী-টি অন্য গেটওয়ের: ঠিকানা মিলিয়ে দেখুন, বা পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  key_replaced: refusedKey(
    'The key was replaced, and no longer works beside its successor: use the newer one.',
    'কী-টি বদলানো হয়েছে, পুরোনোটি আর চলে না: নতুনটি ব্যবহার করুন।',
  ),
  key_revoked: refusedKey(
    'The operator has revoked the key: ask for another.',
    'পরিচালক কী-টি বাতিল করেছেন: তাঁর কাছে আরেকটি চান।',
  ),
  key_expired: refusedKey(
    'The key was valid for a limited time, which is over: ask the operator for another.',
    'কী-টির মেয়াদ শেষ: পরিচালকের কাছে আরেকটি চান।',
  ),
  subscriber_revoked: refusedKey(
    'The operator has revoked the subscriber with all of its keys: ask the operator.',
    'পরিচালক গ্রাহককে সব কী-সহ বাতিল করেছেন: তাঁর সঙ্গে যোগাযোগ করুন।',
  ),
  origin_not_allowed: of(403, false)(
    "The web page's origin is not listed: ask the operator.",
    'ওয়েব পাতার উৎস তালিকায় নেই: পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  key_origin_not_allowed: refusedUse(
    'The key is for web pages of other origins, or for pages alone and no header origin came: use it there.',
    'কী-টি অন্য উৎসের ওয়েব পাতার জন্য, বা শুধু পাতার জন্য আর `origin` হেডার আসেনি: সেখানেই ব্যবহার করুন।',
  ),
  key_address_not_allowed: refusedUse(
    'The key is bound to other addresses: send the request from there, or ask the operator.',
    'কী-টি অন্য ঠিকানার জন্য: সেখান থেকে অনুরোধ পাঠান, বা পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  key_endpoint_not_allowed: refusedUse(
    'The key is for other endpoints: ask for those that the sentence names.',
    'কী-টি অন্য এন্ডপয়েন্টের জন্য: বাক্যে যেগুলো আছে সেগুলো চান।',
  ),
  quota_exhausted: of(429, false)(
    "The day's quota is used up: wait for retry-after, which ends at local midnight.",
    'দিনের কোটা শেষ: retry-after পর্যন্ত অপেক্ষা করুন, যা স্থানীয় মধ্যরাতে শেষ হয়।',
  ),
  quota_insufficient: of(429, false)(
    'Less of the quota is left than the request for a list of places costs; nothing was taken. Ask for fewer, or wait for retry-after.',
    'স্থানের তালিকার অনুরোধের খরচের চেয়ে কোটা কম বাকি; কিছু নেওয়া হয়নি। কম স্থান চান, বা retry-after পর্যন্ত অপেক্ষা করুন।',
  ),
  rate_limited: of(429, false)(
    'The key sends faster than its limit by the second or minute, which `policy` names: wait for retry-after, then send more slowly.',
    'কী-টি তার সেকেন্ড বা মিনিটের সীমার চেয়ে দ্রুত পাঠাচ্ছে, `policy` তার নাম: retry-after পর্যন্ত অপেক্ষা করুন, তারপর ধীরে পাঠান।',
  ),
  reference_busy: of(429, false)(
    'Too many requests for what needs no key (`/docs`, `/api/v1/openapi.json`, `/status`) came from one address, never of an endpoint: wait for retry-after.',
    'এক ঠিকানা থেকে কী ছাড়া পাতায় (`/docs`, `/api/v1/openapi.json`, `/status`) বেশি অনুরোধ এসেছে, কোনো এন্ডপয়েন্টে নয়: retry-after পর্যন্ত অপেক্ষা করুন।',
  ),
  path_not_found: notFound(
    'The path is none of the endpoints: compare it with theirs.',
    'পথটি কোনো এন্ডপয়েন্টের নয়: সেগুলোর পথের সঙ্গে মিলিয়ে দেখুন।',
  ),
  path_missing: invalid('The URL has no path: send one with a path.', 'URL-এ পথ নেই: পথসহ পাঠান।'),
  path_not_encoded: invalid(
    'The path is not percent-encoded UTF-8: encode it so.',
    'পথটি শতকরা-এনকোড করা UTF-8 নয়: সেভাবে এনকোড করুন।',
  ),
  longitude_missing: invalid(
    'The path has one coordinate: send both lat and lng.',
    'পথে একটিই স্থানাঙ্ক আছে: lat ও lng দুটিই পাঠান।',
  ),
  place_not_found: notFound(
    'No published place of this type has this id: take type and id from `/api/v1/locations`.',
    'এই ধরনের কোনো প্রকাশিত স্থানের এই id নেই: `/api/v1/locations` থেকে type ও id নিন।',
  ),
  place_ambiguous: notFound(
    'Several places of this type have this `slug_en`: ask for one by the id that the list has.',
    'এই ধরনের একাধিক স্থানের একই `slug_en`: তালিকার id দিয়ে একটি চান।',
  ),
  place_code_changed: notFound(
    'The place has another id now: use the one that the sentence names.',
    'স্থানটির id বদলেছে: বাক্যে যেটি আছে সেটি ব্যবহার করুন।',
  ),
  parameter_not_encoded: invalid(
    'The value is not percent-encoded UTF-8: encode it so.',
    'মানটি শতকরা-এনকোড করা UTF-8 নয়: সেভাবে এনকোড করুন।',
  ),
  parameter_repeated: invalid(
    'The parameter came more than once: send it once, a list with commas between its values.',
    'প্যারামিটারটি একাধিকবার এসেছে: একবার পাঠান, তালিকা হলে মানের মাঝে কমা দিয়ে।',
  ),
  parameter_brackets: invalid(
    'The name of a list came with brackets, as in `places[]`: send it without, with commas between its values.',
    'তালিকার নাম বন্ধনীসহ এসেছে, যেমন `places[]`: বন্ধনী ছাড়া পাঠান, মানের মাঝে কমা দিয়ে।',
  ),
  type_invalid: invalid(
    'There is no such type: send division, district, upazila or union.',
    'এমন type নেই: division, district, upazila বা union পাঠান।',
  ),
  lang_invalid: invalid('There is no such language: send bn or en.', 'এমন ভাষা নেই: bn বা en পাঠান।'),
  include_invalid: invalid(
    'The endpoint has no such addition: send one that the sentence names.',
    'এই এন্ডপয়েন্টে এমন সংযোজন নেই: বাক্যে যা আছে তা পাঠান।',
  ),
  number_invalid: invalid(
    'The value is no whole number, or out of its range: send decimal digits within the range that the sentence names.',
    'মানটি পূর্ণ সংখ্যা নয়, বা সীমার বাইরে: বাক্যে বলা সীমার মধ্যে দশমিক অঙ্ক পাঠান।',
  ),
  degrees_invalid: invalid(
    'The value is no plain decimal number, such as 23.81: send one, without exponent.',
    'মানটি 23.81-এর মতো সাধারণ দশমিক সংখ্যা নয়: তেমনই পাঠান, ঘাত ছাড়া।',
  ),
  point_out_of_bounds: invalid(
    'The point lies outside the region: send one inside the bounds that the sentence names.',
    'বিন্দুটি এলাকার বাইরে: বাক্যে বলা সীমার ভেতরের বিন্দু পাঠান।',
  ),
  places_empty: invalid('Send places or points in `places`.', 'তালিকায় স্থান বা বিন্দু পাঠান।'),
  places_too_long: invalid('Send at most 5,000 characters in `places`.', 'তালিকায় সর্বোচ্চ ৫,০০০ অক্ষর পাঠান।'),
  places_too_many: invalid(
    'Send at most 100 places at once, and the others with another request.',
    'একবারে সর্বোচ্চ ১০০টি স্থান পাঠান, বাকিগুলো আরেক অনুরোধে।',
  ),
  place_invalid: invalid(
    'In a list of places alone: write it as `type/id` or `coords/lat/lng`.',
    'শুধু স্থানের তালিকায়: ধরন ও id, বা বিন্দুর lat ও lng লিখুন, যেমন বর্ণনায় আছে।',
  ),
  search_too_long: invalid('q is too long: send at most 100 characters.', 'q খুব দীর্ঘ: সর্বোচ্চ ১০০ অক্ষর পাঠান।'),
  test_error_unknown: invalid(
    'The test key asks for an error that there is not: send a code of this table in `x-test-error`.',
    'পরীক্ষার কী এমন ত্রুটি চেয়েছে যা নেই: `x-test-error`-এ এই তালিকার একটি `code` পাঠান।',
  ),
  internal_error: noWeather(
    'A fault of the gateway: try again after retry-after, and tell the operator the x-request-id.',
    'গেটওয়ের ত্রুটি: retry-after-এর পরে আবার চেষ্টা করুন এবং পরিচালককে x-request-id জানান।',
  ),
  provider_unreachable: later("The weather provider can't be reached", 'আবহাওয়া সরবরাহকারীর কাছে পৌঁছানো যাচ্ছে না'),
  provider_not_sent: later('The gateway could not ask the provider', 'গেটওয়ে সরবরাহকারীকে অনুরোধ পাঠাতে পারেনি'),
  provider_broke_off: later('The connection to the provider broke', 'সরবরাহকারীর সংযোগ ছিন্ন হয়েছে'),
  provider_circuit_open: later('The provider has been failing', 'সরবরাহকারী বারবার ব্যর্থ হচ্ছে'),
  provider_timeout: later('The provider was too slow', 'সরবরাহকারী খুব ধীর ছিল'),
  provider_failing: later('The provider is failing', 'সরবরাহকারী ব্যর্থ হচ্ছে'),
  provider_overloaded: later('The provider is overloaded', 'সরবরাহকারী অতিরিক্ত চাপে আছে'),
  provider_refused: noWeather(
    'The provider has no weather for this grid cell: ask for a place or point of another one.',
    'এই গ্রিড ঘরের আবহাওয়া সরবরাহকারীর কাছে নেই: অন্য ঘরের স্থান বা বিন্দু চান।',
  ),
  provider_too_much: noWeather(
    "The provider refused the size of the gateway's request: tell the operator.",
    'গেটওয়ের অনুরোধের আকার সরবরাহকারী প্রত্যাখ্যান করেছে: পরিচালককে জানান।',
  ),
  provider_denied: noWeather(
    'The provider does not accept this gateway: tell the operator.',
    'সরবরাহকারী এই গেটওয়ে গ্রহণ করে না: পরিচালককে জানান।',
  ),
  provider_limited: noWeather(
    "The gateway's share of the provider is used up: wait for retry-after.",
    'সরবরাহকারীর কাছে গেটওয়ের বরাদ্দ শেষ: retry-after পর্যন্ত অপেক্ষা করুন।',
  ),
  key_share_used_up: noWeather(
    'This key has used up its share of what the gateway may load: ask for fewer new places at once, and wait for retry-after.',
    'গেটওয়ে যতটা আনতে পারে তাতে এই কী-এর অংশ শেষ: একসঙ্গে কম নতুন স্থান চান, এবং retry-after পর্যন্ত অপেক্ষা করুন।',
  ),
  provider_busy: later('The provider is busy', 'সরবরাহকারী ব্যস্ত'),
  provider_cut_off: later("The provider's answer was cut off", 'সরবরাহকারীর উত্তর মাঝপথে কাটা পড়েছে'),
  provider_garbled: later("The provider's answer was not usable", 'সরবরাহকারীর উত্তর ব্যবহারযোগ্য ছিল না'),
  waited_too_long: later('No weather came in time', 'সময়মতো আবহাওয়া আসেনি'),
  timeline_exhausted: later(
    'What is cached ended and could not be renewed',
    'জমা রাখা তথ্য শেষ হয়েছে এবং নবায়ন করা যায়নি',
  ),
  tier_not_configured: uncounted(
    "The key's plan is missing on this gateway: tell the operator.",
    'কী-টির প্ল্যান এই গেটওয়েতে নেই: পরিচালককে জানান।',
  ),
  store_unavailable: uncounted(
    "The key can't be checked right now: try again after retry-after.",
    'এখন কী যাচাই করা যাচ্ছে না: retry-after-এর পরে আবার চেষ্টা করুন।',
  ),
}

/** Errors of the proxy before the gateway, as the nginx of the deployment kit gives them; no request with one reached a gateway. */
export const proxyErrors: Readonly<Record<string, Omit<ErrorMeaning, 'status'> & { status: 429 | 503 }>> = {
  address_rate_limited: {
    status: 429,
    counts: false,
    meaning: [
      'Too many requests or connections come from one address, and the proxy before the gateway refuses them: wait for retry-after, then send more slowly.',
      'একটি ঠিকানা থেকে অতিরিক্ত অনুরোধ বা সংযোগ আসছে, গেটওয়ের সামনের প্রক্সি তা প্রত্যাখ্যান করে: retry-after পর্যন্ত অপেক্ষা করুন, তারপর ধীরে পাঠান।',
    ],
  },
  gateway_unavailable: {
    status: 503,
    counts: false,
    meaning: [
      'The proxy before the gateway gets no answer from it: try again after retry-after.',
      'গেটওয়ের সামনের প্রক্সি তার কাছ থেকে উত্তর পাচ্ছে না: retry-after-এর পরে আবার চেষ্টা করুন।',
    ],
  },
}
