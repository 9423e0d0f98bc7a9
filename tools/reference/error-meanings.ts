// The meaning of each error code in both languages: status, whether the request counts, cause and fix.

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
  noWeather(`${en}. Wait for \`retry-after\`.`, `${bn}। \`retry-after\` পর্যন্ত অপেক্ষা করুন।`)

export const errors: Readonly<Record<ErrorCode, ErrorMeaning>> = {
  https_required: invalidHttp(
    'The request used plain HTTP. Use HTTPS.',
    'অনুরোধটি সাধারণ HTTP-তে এসেছে। HTTPS ব্যবহার করুন।',
  ),
  host_missing: invalidHttp(
    'The `host` header is missing. HTTP/1.1 requires it.',
    '`host` হেডার নেই। HTTP/1.1-এ এটি আবশ্যক।',
  ),
  host_invalid: invalidHttp(
    'The `host` header is invalid. Send one host, with or without a port.',
    '`host` হেডার অবৈধ। পোর্টসহ বা ছাড়া একটি হোস্ট পাঠান।',
  ),
  http_version_not_supported: invalidHttp(
    'The HTTP version is not supported. Use HTTP/1.1 or 1.0.',
    'HTTP-র এই সংস্করণ চলে না। HTTP/1.1 বা 1.0 ব্যবহার করুন।',
  ),
  transfer_encoding_in_http_1_0: invalidHttp(
    'HTTP/1.0 has no `transfer-encoding`. Remove it or use HTTP/1.1.',
    'HTTP/1.0-এ `transfer-encoding` নেই। বাদ দিন, বা HTTP/1.1 ব্যবহার করুন।',
  ),
  transfer_encoding_not_supported: invalidHttp(
    'Only chunked `transfer-encoding` is supported. Send no body.',
    '`transfer-encoding` কেবল chunked হতে পারে। বডি ছাড়া পাঠান।',
  ),
  head_too_large: invalidHttp(
    'URL and headers exceed 16 KiB. Shorten the URL or remove headers and cookies.',
    'URL ও হেডার মিলে ১৬ KiB-এর বেশি। URL ছোট করুন, হেডার ও কুকি কমান।',
  ),
  url_not_encoded: invalidHttp(
    'The URL contains raw characters such as ঢ. Percent-encode them.',
    'URL-এ ঢ-এর মতো অক্ষর সরাসরি আছে। শতকরা-এনকোড করুন।',
  ),
  request_timeout: invalidHttp(
    'The request did not arrive completely in time. Send it again.',
    'অনুরোধ সময়মতো সম্পূর্ণ আসেনি। আবার পাঠান।',
  ),
  http_invalid: invalidHttp(
    'The request is not valid HTTP. Check your client.',
    'অনুরোধটি বৈধ HTTP নয়। আপনার ক্লায়েন্ট যাচাই করুন।',
  ),
  method_not_allowed: of(405, true)(
    'The API is read-only. Use GET or HEAD. CONNECT does not count.',
    'API শুধু পড়ার জন্য। GET বা HEAD পাঠান। CONNECT গণনা হয় না।',
  ),
  key_missing: refusedKey(
    'The key is missing. Send it in the header `x-api-key`.',
    'কী নেই। `x-api-key` হেডারে পাঠান।',
  ),
  key_wrong_prefix: refusedKey(
    'The key belongs to another service. Use a key of this gateway.',
    'কী-টি অন্য সেবার। এই গেটওয়ের কী ব্যবহার করুন।',
  ),
  key_malformed: refusedKey(
    'The key is mistyped or cut off. Copy it again.',
    'কী-টি ভুল টাইপ করা বা কাটা। আবার কপি করুন।',
  ),
  key_unknown: refusedKey(
    'This gateway does not know the key. Check the address, or ask the operator.',
    'এই গেটওয়ে কী-টি চেনে না। ঠিকানা মিলিয়ে দেখুন, বা পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  key_replaced: refusedKey(
    'The key was replaced and no longer works. Use the newer one.',
    'কী-টি বদলানো হয়েছে, আর চলে না। নতুনটি ব্যবহার করুন।',
  ),
  key_revoked: refusedKey(
    'The operator has revoked the key. Ask for a new one.',
    'পরিচালক কী-টি বাতিল করেছেন। নতুন একটি চান।',
  ),
  key_expired: refusedKey(
    'The key has expired. Ask the operator for a new one.',
    'কী-টির মেয়াদ শেষ। পরিচালকের কাছে নতুন একটি চান।',
  ),
  subscriber_revoked: refusedKey(
    'The operator has revoked all keys of the subscriber. Ask the operator.',
    'পরিচালক গ্রাহকের সব কী বাতিল করেছেন। তাঁর সঙ্গে যোগাযোগ করুন।',
  ),
  origin_not_allowed: of(403, false)(
    'The origin of the web page is not allowed. Ask the operator.',
    'ওয়েব পাতার উৎস অনুমোদিত নয়। পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  key_origin_not_allowed: refusedUse(
    'The key works only in web pages of certain origins. Use it there.',
    'কী-টি কেবল নির্দিষ্ট উৎসের ওয়েব পাতায় চলে। সেখানে ব্যবহার করুন।',
  ),
  key_address_not_allowed: refusedUse(
    'The key does not work from this address. Ask the operator.',
    'কী-টি এই ঠিকানা থেকে চলে না। পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  key_endpoint_not_allowed: refusedUse(
    'The key does not work for this endpoint. `error` names the endpoints it works for.',
    'কী-টি এই এন্ডপয়েন্টে চলে না। কোনগুলোতে চলে তা `error`-এ আছে।',
  ),
  quota_exhausted: of(429, false)(
    'The daily quota is used up. Wait for `retry-after`: quotas reset at local midnight.',
    'দিনের কোটা শেষ। `retry-after` পর্যন্ত অপেক্ষা করুন: স্থানীয় মধ্যরাতে কোটা নতুন হয়।',
  ),
  quota_insufficient: of(429, false)(
    'The quota is too small for this list of places. Request fewer, or wait for `retry-after`.',
    'স্থানের এই তালিকার জন্য কোটা যথেষ্ট নয়। কম স্থান চান, বা `retry-after` পর্যন্ত অপেক্ষা করুন।',
  ),
  rate_limited: of(429, false)(
    'The key exceeds its limit per second or minute (`policy`). Wait for `retry-after`, then slow down.',
    'কী-টি তার সেকেন্ড বা মিনিটের সীমা (`policy`) ছাড়িয়েছে। `retry-after` পর্যন্ত অপেক্ষা করুন, তারপর ধীরে পাঠান।',
  ),
  reference_busy: of(429, false)(
    'Too many requests for `/docs`, `/api/v1/openapi.json` or `/status` from one address. Wait for `retry-after`.',
    'এক ঠিকানা থেকে `/docs`, `/api/v1/openapi.json` বা `/status`-এ বেশি অনুরোধ এসেছে। `retry-after` পর্যন্ত অপেক্ষা করুন।',
  ),
  path_not_found: notFound(
    'No endpoint has this path. Compare it with the endpoints.',
    'এই পথে কোনো এন্ডপয়েন্ট নেই। এন্ডপয়েন্টগুলোর সঙ্গে মিলিয়ে দেখুন।',
  ),
  path_missing: invalid('The URL has no path. Add one.', 'URL-এ পথ নেই। পথসহ পাঠান।'),
  path_not_encoded: invalid(
    'The path is not percent-encoded UTF-8. Encode it.',
    'পথটি শতকরা-এনকোড করা UTF-8 নয়। এনকোড করুন।',
  ),
  longitude_missing: invalid(
    'The path has only one coordinate. Send both `lat` and `lng`.',
    'পথে কেবল একটি স্থানাঙ্ক আছে। `lat` ও `lng` দুটিই পাঠান।',
  ),
  place_not_found: notFound(
    'No published place has this type and id. Take both from `/api/v1/locations`.',
    'এই ধরন ও id-এর কোনো প্রকাশিত স্থান নেই। `/api/v1/locations` থেকে দুটিই নিন।',
  ),
  place_ambiguous: notFound(
    'Several places share this slug. Use the id from `/api/v1/locations`.',
    'একাধিক স্থানের একই `slug_en`। `/api/v1/locations`-এর id ব্যবহার করুন।',
  ),
  place_code_changed: notFound(
    'The place has a new id. `error` names it.',
    'স্থানটির id বদলেছে। নতুনটি `error`-এ আছে।',
  ),
  parameter_not_encoded: invalid(
    'The value is not percent-encoded UTF-8. Encode it.',
    'মানটি শতকরা-এনকোড করা UTF-8 নয়। এনকোড করুন।',
  ),
  parameter_repeated: invalid(
    'The parameter is repeated. Send it once; separate list values with commas.',
    'প্যারামিটারটি একাধিকবার আছে। একবার পাঠান; তালিকার মানের মাঝে কমা দিন।',
  ),
  parameter_brackets: invalid(
    'The name of a list has brackets, as in `places[]`. Remove them.',
    'তালিকার নামে বন্ধনী আছে, যেমন `places[]`। বাদ দিন।',
  ),
  type_invalid: invalid(
    'The type is invalid. Use division, district, upazila or union.',
    'type অবৈধ। division, district, upazila বা union পাঠান।',
  ),
  lang_invalid: invalid('The language is invalid. Use bn or en.', 'ভাষাটি অবৈধ। bn বা en পাঠান।'),
  include_invalid: invalid(
    'The endpoint has no such addition. `error` lists the valid ones.',
    'এই এন্ডপয়েন্টে এমন সংযোজন নেই। বৈধগুলো `error`-এ আছে।',
  ),
  number_invalid: invalid(
    'The value is not an integer in the range that `error` names.',
    'মানটি `error`-এ বলা সীমার মধ্যে পূর্ণ সংখ্যা নয়।',
  ),
  degrees_invalid: invalid(
    'The value is not a plain decimal number, such as 23.81.',
    'মানটি 23.81-এর মতো সাধারণ দশমিক সংখ্যা নয়।',
  ),
  point_out_of_bounds: invalid(
    'The point is outside the bounds that `error` names.',
    'বিন্দুটি `error`-এ বলা সীমার বাইরে।',
  ),
  places_empty: invalid(
    '`places` is empty. Send at least one place or point.',
    '`places` খালি। অন্তত একটি স্থান বা বিন্দু পাঠান।',
  ),
  places_too_long: invalid(
    '`places` is too long. Send at most 5,000 characters.',
    '`places` খুব দীর্ঘ। সর্বোচ্চ ৫,০০০ অক্ষর পাঠান।',
  ),
  places_too_many: invalid(
    'Too many places. Send at most 100 in a request.',
    'স্থান বেশি। এক অনুরোধে সর্বোচ্চ ১০০টি পাঠান।',
  ),
  place_invalid: invalid(
    'An entry of `places` is invalid. Write `type/id` or `coords/lat/lng`.',
    '`places`-এর একটি মান অবৈধ। `type/id` বা `coords/lat/lng` লিখুন।',
  ),
  search_too_long: invalid(
    '`q` is too long. Send at most 100 characters.',
    '`q` খুব দীর্ঘ। সর্বোচ্চ ১০০ অক্ষর পাঠান।',
  ),
  test_error_unknown: invalid(
    'The code in `x-test-error` is unknown. Use a code from `/docs`.',
    '`x-test-error`-এর কোডটি অজানা। `/docs`-এর একটি কোড দিন।',
  ),
  internal_error: noWeather(
    'The gateway failed. Wait for `retry-after`, and send the operator the `x-request-id`.',
    'গেটওয়ে ব্যর্থ হয়েছে। `retry-after` পর্যন্ত অপেক্ষা করুন, আর পরিচালককে `x-request-id` জানান।',
  ),
  provider_unreachable: later('The weather provider is unreachable', 'আবহাওয়া সরবরাহকারীর কাছে পৌঁছানো যাচ্ছে না'),
  provider_not_sent: later(
    'The gateway could not send its request to the provider',
    'গেটওয়ে সরবরাহকারীকে অনুরোধ পাঠাতে পারেনি',
  ),
  provider_broke_off: later('The connection to the provider broke', 'সরবরাহকারীর সংযোগ ছিন্ন হয়েছে'),
  provider_circuit_open: later('The provider keeps failing', 'সরবরাহকারী বারবার ব্যর্থ হচ্ছে'),
  provider_timeout: later('The provider was too slow', 'সরবরাহকারী খুব ধীর ছিল'),
  provider_failing: later('The provider is failing', 'সরবরাহকারী ব্যর্থ হচ্ছে'),
  provider_overloaded: later('The provider is overloaded', 'সরবরাহকারী অতিরিক্ত চাপে আছে'),
  provider_refused: noWeather(
    'The provider has no weather for this grid cell. Request another place.',
    'এই গ্রিড ঘরের আবহাওয়া সরবরাহকারীর কাছে নেই। অন্য স্থান চান।',
  ),
  provider_too_much: noWeather(
    "The provider refused the gateway's request as too large. Tell the operator.",
    'গেটওয়ের অনুরোধ বেশি বড় বলে সরবরাহকারী নেয়নি। পরিচালককে জানান।',
  ),
  provider_denied: noWeather(
    'The provider does not accept this gateway. Tell the operator.',
    'সরবরাহকারী এই গেটওয়েকে গ্রহণ করে না। পরিচালককে জানান।',
  ),
  provider_limited: noWeather(
    "The gateway's provider budget is used up. Wait for `retry-after`.",
    'সরবরাহকারীর কাছে গেটওয়ের বরাদ্দ শেষ। `retry-after` পর্যন্ত অপেক্ষা করুন।',
  ),
  key_share_used_up: noWeather(
    'The key requested too many new places. Request fewer, and wait for `retry-after`.',
    'কী-টি বেশি নতুন স্থান চেয়েছে। কম চান, আর `retry-after` পর্যন্ত অপেক্ষা করুন।',
  ),
  provider_busy: later('The provider is busy', 'সরবরাহকারী ব্যস্ত'),
  provider_cut_off: later("The provider's response was cut off", 'সরবরাহকারীর উত্তর মাঝপথে কাটা পড়েছে'),
  provider_garbled: later("The provider's response was unusable", 'সরবরাহকারীর উত্তর ব্যবহারযোগ্য ছিল না'),
  waited_too_long: later('No weather arrived in time', 'সময়মতো আবহাওয়া আসেনি'),
  timeline_exhausted: later(
    'The cached forecast has expired and could not be refreshed',
    'জমা রাখা পূর্বাভাসের মেয়াদ শেষ, নতুন আনা যায়নি',
  ),
  tier_not_configured: uncounted(
    'This gateway does not know the plan of the key. Tell the operator.',
    'কী-টির প্ল্যান এই গেটওয়েতে নেই। পরিচালককে জানান।',
  ),
  store_unavailable: uncounted(
    "The key can't be checked right now. Wait for `retry-after`.",
    'এখন কী যাচাই করা যাচ্ছে না। `retry-after` পর্যন্ত অপেক্ষা করুন।',
  ),
}

/** Errors of the proxy before the gateway, as the nginx of the deployment kit gives them; no request with one reached a gateway. */
export const proxyErrors: Readonly<Record<string, Omit<ErrorMeaning, 'status'> & { status: 429 | 503 }>> = {
  address_rate_limited: {
    status: 429,
    counts: false,
    meaning: [
      'The proxy received too much from one address. Wait for `retry-after`, then slow down.',
      'প্রক্সি একটি ঠিকানা থেকে বেশি অনুরোধ বা সংযোগ পেয়েছে। `retry-after` পর্যন্ত অপেক্ষা করুন, তারপর ধীরে পাঠান।',
    ],
  },
  gateway_unavailable: {
    status: 503,
    counts: false,
    meaning: [
      'The proxy got no answer from the gateway. Wait for `retry-after`.',
      'প্রক্সি গেটওয়ের উত্তর পায়নি। `retry-after` পর্যন্ত অপেক্ষা করুন।',
    ],
  },
}
