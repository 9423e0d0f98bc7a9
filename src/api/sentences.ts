// Every error for consumers, in one table: a stable code, and a sentence that says what the thing is, what was given and
// what is allowed. A code is never renamed or given another meaning; a sentence may become clearer. Where one parameter of the
// path, the query or the headers that the API defines is at fault, its name stands beside them. No sentence quotes the provider, its address
// or a key; what a client sent is quoted and cut. Statuses are for those who throw.

import { quoted } from '../common/outside-text.ts'
import { keyPrefix, testKeyPrefix } from '../keys/key-form.ts'

/** An error as a consumer reads it. */
export type Sentence<Code extends string = string> = {
  /** For programs. */
  readonly code: Code
  /** For people. */
  readonly text: string
  /** The parameter at fault, where it is one alone. */
  readonly parameter?: string
}

const say = <const Code extends string>(code: Code, text: string, parameter?: string): Sentence<Code> =>
  parameter === undefined ? { code, text } : { code, text, parameter }

const sayOfKey = <const Code extends string>(code: Code, text: string): Sentence<Code> =>
  say(code, `the API key is ${text}`, 'x-api-key')

const noWeather = 'no weather can be given for this place right now'
const ofList = 'places or points, such as district/3026,coords/23.81/90.41'
const withCommas = (name: string, list: string): string =>
  `with commas between its values, as in ${name}=${list}`

// Each may have 400 characters.
const maxListed = 5
const listed = (values: readonly string[]): string =>
  [
    ...values.slice(0, maxListed),
    ...(values.length > maxListed ? [`and ${values.length - maxListed} more`] : []),
  ].join(', ')

export const sentences = {
  http: {
    hostMissing: say('host_missing', 'the host header is missing; HTTP/1.1 requires it'),
    host: (given: string) =>
      say('host_invalid', `the host header is ${quoted(given)}; allowed: one host, with or without a port`),
    version: (given: string) =>
      say('http_version_not_supported', `the HTTP version is ${given}; allowed: 1.1, 1.0`),
    transferEncodingInHttp10: say(
      'transfer_encoding_in_http_1_0',
      'transfer-encoding is given with HTTP/1.0; allowed: HTTP/1.1',
    ),
    transferEncoding: (given: string) =>
      say('transfer_encoding_not_supported', `transfer-encoding is ${quoted(given)}; allowed: chunked`),
    plain: say('https_required', 'the request came over plain HTTP; HTTPS is required'),
    tooLarge: say('head_too_large', 'the URL and headers are too large; allowed: 16 KiB together'),
    notEncoded: say(
      'url_not_encoded',
      'the URL holds characters that must be percent-encoded, such as %E0%A6%A2 for ঢ',
    ),
    late: say('request_timeout', 'the request did not arrive completely in time'),
    invalid: say('http_invalid', 'the request is not valid HTTP'),
    method: (given: string | undefined) =>
      say('method_not_allowed', `the method is ${given}; allowed: GET, HEAD`),
  },
  /** By the reason why a key is refused. */
  key: {
    /** @param elsewhere where it may have been sent, such as `the URL` */
    missing: (elsewhere: string | undefined) =>
      sayOfKey(
        'key_missing',
        `missing: ${elsewhere === undefined ? '' : `${elsewhere} is not read; `}send it in the header x-api-key`,
      ),
    'wrong-prefix': sayOfKey(
      'key_wrong_prefix',
      `invalid: a key begins with ${keyPrefix}, one for tests with ${testKeyPrefix}`,
    ),
    malformed: sayOfKey('key_malformed', 'invalid: it is mistyped or cut off'),
    unknown: sayOfKey('key_unknown', 'invalid: it is not known'),
    replaced: sayOfKey('key_replaced', 'invalid: it was replaced by a newer one'),
    'key-revoked': sayOfKey('key_revoked', 'invalid: it was revoked'),
    'key-expired': sayOfKey('key_expired', 'invalid: it has expired'),
    'subscriber-revoked': sayOfKey('subscriber_revoked', 'invalid: its subscriber was revoked'),
  },
  originNotAllowed: (given: string) =>
    say(
      'origin_not_allowed',
      `the origin is ${quoted(given)}; allowed: those that the operator of this gateway lists`,
    ),
  /** Of a key that is bound to something else. The operator's ranges of addresses are named to nobody. */
  bound: {
    origin: (given: string | undefined, allowed: readonly string[]) =>
      say(
        'key_origin_not_allowed',
        `the header origin is ${given === undefined ? 'missing' : quoted(given)}; allowed with this key: ${listed(allowed)}`,
      ),
    address: (given: string) =>
      say(
        'key_address_not_allowed',
        `the address of the client is ${quoted(given)}; allowed with this key: the addresses that the operator has bound it to`,
      ),
    endpoint: (given: string, allowed: readonly string[]) =>
      say('key_endpoint_not_allowed', `the endpoint is ${given}; allowed with this key: ${listed(allowed)}`),
  },
  quotaExhausted: (limit: number) =>
    say('quota_exhausted', `the daily quota of ${limit} requests of this key is exhausted`),
  rateLimited: (policy: string, limit: number) =>
    say(
      'rate_limited',
      `this key sends too fast; allowed: ${limit === 1 ? '1 request' : `${limit} requests`} a ${policy}`,
    ),
  quotaInsufficient: (limit: number, cost: number, remaining: number) =>
    say(
      'quota_insufficient',
      `the request costs ${cost} of the daily quota of ${limit} requests of this key; ${remaining} ${remaining === 1 ? 'is' : 'are'} left`,
    ),
  referenceBusy: (perMinute: number, page = 'the reference') =>
    say(
      'reference_busy',
      `${page} was asked for too often; allowed: ${perMinute} requests a minute from one address`,
    ),
  testErrorUnknown: (given: string) =>
    say(
      'test_error_unknown',
      `x-test-error is ${quoted(given)}; allowed: a code of the errors that /docs lists, such as quota_exhausted`,
      'x-test-error',
    ),
  path: {
    missing: (url: string) =>
      say('path_missing', `the URL is ${quoted(url)}, without a path; allowed: one with a path`),
    notEncoded: (path: string) =>
      say('path_not_encoded', `the path is ${quoted(path)}; allowed: percent-encoded UTF-8`),
    nothing: (path: string, endpoints: string) =>
      say('path_not_found', `there is nothing at ${quoted(path)}; the endpoints are ${endpoints}`),
    longitudeMissing: say(
      'longitude_missing',
      'lng is missing; a point is asked for as /api/v1/weather/coords/{lat}/{lng}',
      'lng',
    ),
    place: (type: string, id: string) =>
      say('place_not_found', `the ${type} ${quoted(id)} was not found or is not published`, 'id'),
    /** @param ids some of theirs, as a list in words */
    ambiguous: (type: string, slug: string, count: number, ids: string) =>
      say(
        'place_ambiguous',
        `${quoted(slug)} is the slug of ${count} places of the type ${type}, such as ${ids}; ask for one by its id, which /api/v1/locations?type=${type}&q=${slug} has`,
        'id',
      ),
    formerCode: (type: string, id: string, code: string, since: string | undefined) =>
      say(
        'place_code_changed',
        `the ${type} ${quoted(id)} was not found: its code is ${code} ${since === undefined ? 'now' : `since ${since}`}; ask for that`,
        'id',
      ),
  },
  parameter: {
    notEncoded: (name: string, given: string) =>
      say('parameter_not_encoded', `${name} is ${quoted(given)}; allowed: percent-encoded UTF-8`, name),
    /** @param list of a list, values with commas between */
    twice: (name: string, list?: string) =>
      say(
        'parameter_repeated',
        list === undefined
          ? `${name} is given more than once; allowed: at most once`
          : `${name} is given more than once; send it once, ${withCommas(name, list)}`,
        name,
      ),
    brackets: (name: string, given: string, list: string) =>
      say(
        'parameter_brackets',
        `${name} is given as ${quoted(given)}; send it without brackets, ${withCommas(name, list)}`,
        name,
      ),
    type: (given: string | undefined, allowed: readonly string[]) =>
      say(
        'type_invalid',
        `type is ${given === undefined ? 'missing' : quoted(given)}; allowed: ${allowed.join(', ')}`,
        'type',
      ),
    language: (given: string) => say('lang_invalid', `lang is ${quoted(given)}; allowed: bn, en`, 'lang'),
    include: (given: string, allowed: string) =>
      say('include_invalid', `include is ${quoted(given)}; allowed: ${allowed}`, 'include'),
    wholeNumber: (name: string, given: string, min: number, max: number) =>
      say(
        'number_invalid',
        `${name} is ${quoted(given)}; allowed: a whole number from ${min} to ${max}`,
        name,
      ),
    degrees: (name: string, given: string, min: number, max: number) =>
      say(
        'degrees_invalid',
        `${name} is ${quoted(given)}; allowed: decimal degrees such as 23.81, from ${min} to ${max}`,
        name,
      ),
    outOfBounds: (name: string, given: string, area: string, min: number, max: number) =>
      say(
        'point_out_of_bounds',
        `${name} is ${quoted(given)}, outside the bounds of ${area}; allowed: ${min} to ${max}`,
        name,
      ),
    noPlaces: (max: number) =>
      say('places_empty', `places is empty; allowed: 1 to ${max} ${ofList}`, 'places'),
    longPlaces: (length: number, longest: number) =>
      say('places_too_long', `places has ${length} characters; allowed: at most ${longest}`, 'places'),
    manyPlaces: (count: number, max: number) =>
      say('places_too_many', `places names ${count} places; allowed: 1 to ${max} ${ofList}`, 'places'),
    place: (given: string) =>
      say(
        'place_invalid',
        `a place is ${quoted(given)}; allowed: a type and an id such as district/3026, or a point such as coords/23.81/90.41`,
        'places',
      ),
    longSearch: (given: string, length: number, longest: number) =>
      say(
        'search_too_long',
        `q is ${quoted(given)}, ${length} characters; allowed: at most ${longest} characters`,
        'q',
      ),
  },
  unexpected: say('internal_error', 'the gateway failed unexpectedly'),
} as const

/** By the code of a failure below the API, which the consumer gets too; any other code is unexpected. */
export const failureSentences = {
  provider_unreachable: `${noWeather}: the weather provider can't be reached`,
  provider_not_sent: `${noWeather}: this gateway could not send its request to the weather provider`,
  provider_broke_off: `${noWeather}: the connection to the weather provider broke`,
  provider_circuit_open: `${noWeather}: the weather provider has been failing, and is tried again shortly`,
  provider_timeout: `${noWeather}: the weather provider did not answer in time`,
  provider_failing: `${noWeather}: the weather provider is failing`,
  provider_overloaded: `${noWeather}: the weather provider is overloaded`,
  provider_refused: `${noWeather}: the weather provider has none for this grid cell`,
  provider_too_much: `${noWeather}: the weather provider refused the size of our request`,
  provider_denied: `${noWeather}: the weather provider does not accept this gateway`,
  provider_limited: `${noWeather}: the gateway's share of the weather provider is used up`,
  key_share_used_up: `${noWeather}: this key has used up its share of what the gateway may load from the weather provider`,
  provider_busy: `${noWeather}: the weather provider is busy`,
  provider_cut_off: `${noWeather}: the weather provider's answer was cut off`,
  provider_garbled: `${noWeather}: the weather provider's answer was not usable`,
  waited_too_long: `${noWeather}: the weather provider did not answer in time`,
  timeline_exhausted: `${noWeather}: what is cached ended and could not be renewed`,
  tier_not_configured:
    'the plan of this key is not configured on this gateway; only its operator can mend that',
  store_unavailable: 'the key or its quota could not be checked: the store of the gateway is not available',
} as const

/** The error that a consumer reads for a failure below the API. */
export const failureSentence = (code: string): Sentence =>
  Object.hasOwn(failureSentences, code)
    ? say(code, failureSentences[code as keyof typeof failureSentences])
    : sentences.unexpected

type CodesIn<Table> =
  Table extends Sentence<infer Code>
    ? Code
    : Table extends (...given: never[]) => Sentence<infer Code>
      ? Code
      : Table extends object
        ? { [Name in keyof Table]: CodesIn<Table[Name]> }[keyof Table]
        : never

/** Every `code` that a consumer may see. */
export type ErrorCode = CodesIn<typeof sentences> | keyof typeof failureSentences
