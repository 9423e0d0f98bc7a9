// The meaning of each error code for a consumer, in both languages: its status, whether the request counts, and what to do.
// The reference and docs/api.md show it; the sentences themselves are in sentences.ts.

import type { ProblemStatus } from '../../telemetry/label-values.ts'
import type { ErrorCode } from '../sentences.ts'
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
const notFound = of(404, true)
const noWeather = of(500, true)
const uncounted = of(500, false)
const askOperator = refusedKey('Ask the operator.', 'পরিচালকের সঙ্গে যোগাযোগ করুন।')
const later = (en: string, bn: string): ErrorMeaning =>
  noWeather(`${en}: try again after retry-after.`, `${bn}: retry-after-এর পরে আবার চেষ্টা করুন।`)

export const errors: Readonly<Record<ErrorCode, ErrorMeaning>> = {
  https_required: invalidHttp('Send the request over HTTPS.', 'অনুরোধটি HTTPS দিয়ে পাঠান।'),
  host_missing: invalidHttp('Send the header host.', 'host হেডার পাঠান।'),
  host_invalid: invalidHttp('Send one host in the header host.', 'host হেডারে একটিই হোস্ট পাঠান।'),
  http_version_not_supported: invalidHttp('Send HTTP/1.1 or 1.0.', 'HTTP/1.1 বা 1.0 ব্যবহার করুন।'),
  transfer_encoding_in_http_1_0: invalidHttp(
    'Send no transfer-encoding with HTTP/1.0.',
    'HTTP/1.0-এ transfer-encoding পাঠাবেন না।',
  ),
  transfer_encoding_not_supported: invalidHttp(
    'Send no transfer-encoding but chunked.',
    'chunked ছাড়া অন্য transfer-encoding পাঠাবেন না।',
  ),
  head_too_large: invalid(
    'URL and headers are above 16 KiB together; the connection ends. Counts with a valid key alone.',
    'URL ও হেডার মিলে ১৬ KiB-এর বেশি; সংযোগ বন্ধ হয়। বৈধ কী থাকলেই কেবল গণনা হয়।',
  ),
  url_not_encoded: invalid(
    'Percent-encode the URL; the connection ends. Counts with a valid key alone.',
    'URL শতকরা-এনকোড করুন; সংযোগ বন্ধ হয়। বৈধ কী থাকলেই কেবল গণনা হয়।',
  ),
  request_timeout: invalidHttp(
    'Send the whole request at once; the connection ends.',
    'সম্পূর্ণ অনুরোধ একবারে পাঠান; সংযোগ বন্ধ হয়।',
  ),
  http_invalid: invalidHttp('Send valid HTTP; the connection ends.', 'বৈধ HTTP পাঠান; সংযোগ বন্ধ হয়।'),
  method_not_allowed: of(405, true)(
    'Send GET or HEAD. CONNECT does not count.',
    'GET বা HEAD পাঠান। CONNECT গণনা হয় না।',
  ),
  key_missing: refusedKey('Send the key in the header x-api-key.', 'x-api-key হেডারে কী পাঠান।'),
  key_wrong_prefix: refusedKey("The key is another service's.", 'কী-টি অন্য সেবার।'),
  key_malformed: refusedKey('Copy the key again; its checksum is wrong.', 'কী আবার কপি করুন; এর চেকসাম মেলে না।'),
  key_unknown: refusedKey("The key is another gateway's.", 'কী-টি অন্য গেটওয়ের।'),
  key_replaced: refusedKey('Use the newer key.', 'নতুন কী ব্যবহার করুন।'),
  key_revoked: askOperator,
  key_expired: askOperator,
  subscriber_revoked: askOperator,
  origin_not_allowed: of(403, false)(
    "The web page's origin is not listed: ask the operator.",
    'ওয়েব পাতার উৎস তালিকায় নেই: পরিচালকের সঙ্গে যোগাযোগ করুন।',
  ),
  quota_exhausted: of(429, false)(
    "The day's quota is used up: wait for retry-after, which ends at local midnight.",
    'দিনের কোটা শেষ: retry-after পর্যন্ত অপেক্ষা করুন, যা স্থানীয় মধ্যরাতে শেষ হয়।',
  ),
  reference_busy: of(429, false)(
    'The reference alone (`/docs`, `/api/v1/openapi.json`), never an endpoint: wait for retry-after.',
    'কেবল রেফারেন্স (`/docs`, `/api/v1/openapi.json`), কোনো এন্ডপয়েন্ট নয়: retry-after পর্যন্ত অপেক্ষা করুন।',
  ),
  path_not_found: notFound('The path is none of the endpoints.', 'পথটি কোনো এন্ডপয়েন্টের নয়।'),
  path_missing: invalid('Send a URL with a path.', 'পথসহ URL পাঠান।'),
  path_not_encoded: invalid('Percent-encode the path in UTF-8.', 'পথ UTF-8-এ শতকরা-এনকোড করুন।'),
  longitude_missing: invalid('Send both lat and lng in the path.', 'পথে lat ও lng দুটিই পাঠান।'),
  place_not_found: notFound(
    'No published place of this type has this id.',
    'এই ধরনের কোনো প্রকাশিত স্থানের এই id নেই।',
  ),
  place_code_changed: notFound(
    'The place has another id now; the sentence names it.',
    'স্থানটির id বদলেছে; বাক্যে নতুনটি আছে।',
  ),
  parameter_not_encoded: invalid('Percent-encode the value in UTF-8.', 'মানটি UTF-8-এ শতকরা-এনকোড করুন।'),
  parameter_repeated: invalid('Send the parameter once.', 'প্যারামিটারটি একবার পাঠান।'),
  type_invalid: invalid(
    'type is division, district, upazila or union.',
    'type হলো division, district, upazila বা union।',
  ),
  lang_invalid: invalid('lang is bn or en.', 'lang হলো bn বা en।'),
  number_invalid: invalid(
    'Send decimal digits within the range that the sentence names.',
    'বাক্যে বলা সীমার মধ্যে দশমিক অঙ্ক পাঠান।',
  ),
  degrees_invalid: invalid(
    'Send a plain decimal number such as 23.81, without exponent.',
    '23.81-এর মতো সাধারণ দশমিক সংখ্যা পাঠান, ঘাত ছাড়া।',
  ),
  point_out_of_bounds: invalid(
    'Send a point inside the bounds that the sentence names.',
    'বাক্যে বলা সীমার ভেতরের বিন্দু পাঠান।',
  ),
  search_too_long: invalid('Send at most 100 characters in q.', 'q-তে সর্বোচ্চ ১০০ অক্ষর পাঠান।'),
  test_error_unknown: invalid(
    'Of test keys alone: send a code of this table in x-test-error.',
    'কেবল পরীক্ষার কী-র জন্য: x-test-error-এ এই তালিকার একটি code পাঠান।',
  ),
  internal_error: noWeather(
    'A fault of the gateway: try again after retry-after, and tell the operator the x-request-id.',
    'গেটওয়ের ত্রুটি: retry-after-এর পরে আবার চেষ্টা করুন এবং পরিচালককে x-request-id জানান।',
  ),
  provider_unreachable: later("The weather provider can't be reached", 'আবহাওয়া সরবরাহকারীর কাছে পৌঁছানো যাচ্ছে না'),
  provider_not_sent: later('The gateway was held up', 'গেটওয়ে আটকে ছিল'),
  provider_broke_off: later('The connection to the provider broke', 'সরবরাহকারীর সংযোগ ছিন্ন হয়েছে'),
  provider_circuit_open: later('The provider has been failing', 'সরবরাহকারী বারবার ব্যর্থ হচ্ছে'),
  provider_timeout: later('The provider was too slow', 'সরবরাহকারী খুব ধীর ছিল'),
  provider_failing: later('The provider is failing', 'সরবরাহকারী ব্যর্থ হচ্ছে'),
  provider_overloaded: later('The provider is overloaded', 'সরবরাহকারী অতিরিক্ত চাপে আছে'),
  provider_refused: noWeather(
    'The provider has no weather for this grid cell.',
    'এই গ্রিড ঘরের আবহাওয়া সরবরাহকারীর কাছে নেই।',
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
