// Every error for consumers, in one table: a stable code, and a sentence that says what is wrong and what to do. A code is never
// renamed or given another meaning; a sentence may become clearer. No sentence quotes the provider, its address or a key; what a
// client sent is quoted and cut.

import { bounded, quoted } from '../common/outside-text.ts'
import { keyPrefix, testKeyPrefix } from '../keys/key-form.ts'

export type Sentence<Code extends string = string> = {
  readonly code: Code
  readonly text: string
  /** The wrong parameter of path, query or headers, where it is only one. */
  readonly parameter?: string
}

const say = <const Code extends string>(code: Code, text: string, parameter?: string): Sentence<Code> =>
  parameter === undefined ? { code, text } : { code, text, parameter }

/** What a value must be, and what came. */
const must = <const Code extends string>(
  code: Code,
  name: string,
  rule: string,
  given: string,
  parameter?: string,
): Sentence<Code> => say(code, `${name} must ${rule}, got ${quoted(given)}`, parameter)

const sayOfKey = <const Code extends string>(code: Code, text: string): Sentence<Code> =>
  say(code, `the API key is ${text}`, 'x-api-key')

const noWeather = 'no weather is available for this place right now'
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
    hostMissing: say('host_missing', 'the host header is required by HTTP/1.1'),
    host: (given: string) =>
      must('host_invalid', 'the host header', 'name one host, with or without a port', given),
    version: (given: string) =>
      say('http_version_not_supported', `the HTTP version must be 1.1 or 1.0, got ${given}`),
    transferEncodingInHttp10: say('transfer_encoding_in_http_1_0', 'transfer-encoding requires HTTP/1.1'),
    transferEncoding: (given: string) =>
      must('transfer_encoding_not_supported', 'transfer-encoding', 'be chunked', given),
    plain: say('https_required', 'the request came over plain HTTP; HTTPS is required'),
    tooLarge: say('head_too_large', 'the URL and headers must have at most 16 KiB together'),
    notEncoded: say('url_not_encoded', 'the URL must be percent-encoded, such as %E0%A6%A2 for ঢ'),
    late: say('request_timeout', 'the request did not arrive completely in time'),
    invalid: say('http_invalid', 'the request is not valid HTTP'),
    method: (given: string) =>
      say('method_not_allowed', `the method must be GET or HEAD, got ${bounded(given, 60)}`),
  },
  /** By the reason why a key is refused. */
  key: {
    /** @param elsewhere where it may have been sent, such as `the URL` */
    missing: (elsewhere: string | undefined) =>
      sayOfKey(
        'key_missing',
        `missing: send it in the header x-api-key${elsewhere === undefined ? '' : `, not in ${elsewhere}`}`,
      ),
    'wrong-prefix': sayOfKey(
      'key_wrong_prefix',
      `invalid: it must begin with ${keyPrefix}, or with ${testKeyPrefix} for tests`,
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
      `the origin ${quoted(given)} is not allowed; ask the operator of this gateway to add it`,
    ),
  /** Of a key that is bound to something else. The operator's ranges of addresses are named to nobody. */
  bound: {
    origin: (given: string | undefined, allowed: readonly string[]) =>
      say(
        'key_origin_not_allowed',
        `with this key the header origin must be ${listed(allowed)}, got ${given === undefined ? 'none' : quoted(given)}`,
      ),
    address: (given: string) =>
      say(
        'key_address_not_allowed',
        `this key can't be used from the address ${quoted(given)}; ask the operator which addresses it is for`,
      ),
    endpoint: (given: string, allowed: readonly string[]) =>
      say('key_endpoint_not_allowed', `with this key the endpoint must be ${listed(allowed)}, got ${given}`),
  },
  quotaExhausted: (limit: number) =>
    say('quota_exhausted', `the daily quota of ${limit} requests of this key is exhausted`),
  rateLimited: (policy: string, limit: number) =>
    say(
      'rate_limited',
      `this key may send at most ${limit === 1 ? '1 request' : `${limit} requests`} a ${policy}`,
    ),
  quotaInsufficient: (limit: number, cost: number, remaining: number) =>
    say(
      'quota_insufficient',
      `the request counts as ${cost}, but the daily quota of this key has ${remaining} of ${limit} requests left`,
    ),
  referenceBusy: (perMinute: number, page = 'the reference') =>
    say('reference_busy', `${page} may be requested ${perMinute} times a minute from one address`),
  testErrorUnknown: (given: string) =>
    must(
      'test_error_unknown',
      'x-test-error',
      'be an error code that /docs lists, such as quota_exhausted',
      given,
      'x-test-error',
    ),
  path: {
    missing: (url: string) => must('path_missing', 'the URL', 'have a path', url),
    notEncoded: (path: string) => must('path_not_encoded', 'the path', 'be percent-encoded UTF-8', path),
    nothing: (path: string, endpoints: string) =>
      say('path_not_found', `there is nothing at ${quoted(path)}; the endpoints are ${endpoints}`),
    longitudeMissing: say(
      'longitude_missing',
      'lng is required; request a point as /api/v1/weather/coords/{lat}/{lng}',
      'lng',
    ),
    place: (type: string, id: string) =>
      say('place_not_found', `the ${type} ${quoted(id)} was not found or is not published`, 'id'),
    /** @param ids some of theirs, as a list in words */
    ambiguous: (type: string, slug: string, count: number, ids: string) =>
      say(
        'place_ambiguous',
        `${quoted(slug)} is the slug of ${count} places of the type ${type}, such as ${ids}; request one by its id, which /api/v1/locations?type=${type}&q=${slug} lists`,
        'id',
      ),
    previousCode: (type: string, id: string, code: string, since: string | undefined) =>
      say(
        'place_code_changed',
        `the ${type} ${quoted(id)} was not found; its code is ${code} ${since === undefined ? 'now' : `since ${since}`}`,
        'id',
      ),
  },
  parameter: {
    notEncoded: (name: string, given: string) =>
      must('parameter_not_encoded', name, 'be percent-encoded UTF-8', given, name),
    /** @param list of a list, values with commas between */
    twice: (name: string, list?: string) =>
      say(
        'parameter_repeated',
        `${name} must be given only once${list === undefined ? '' : `, ${withCommas(name, list)}`}`,
        name,
      ),
    brackets: (name: string, given: string, list: string) =>
      must('parameter_brackets', name, `be sent without brackets, ${withCommas(name, list)}`, given, name),
    type: (given: string | undefined, allowed: readonly string[]) => {
      const rule = `be one of ${allowed.join(', ')}`
      return given === undefined
        ? say('type_invalid', `type is required and must ${rule}`, 'type')
        : must('type_invalid', 'type', rule, given, 'type')
    },
    language: (given: string) => must('lang_invalid', 'lang', 'be bn or en', given, 'lang'),
    include: (given: string, allowed: readonly string[]) => {
      const list = allowed.length > 1 ? 'a comma-separated list of ' : ''
      return must('include_invalid', 'include', `be ${list}${allowed.join(', ')}`, given, 'include')
    },
    wholeNumber: (name: string, given: string, min: number, max: number) =>
      must('number_invalid', name, `be an integer from ${min} to ${max}`, given, name),
    degrees: (name: string, given: string, min: number, max: number) =>
      must('degrees_invalid', name, `be decimal degrees from ${min} to ${max}, such as 23.81`, given, name),
    outOfBounds: (name: string, given: string, area: string, min: number, max: number) =>
      must(
        'point_out_of_bounds',
        name,
        `be within the bounds of ${area}, from ${min} to ${max}`,
        given,
        name,
      ),
    noPlaces: (max: number) =>
      say(
        'places_empty',
        `places must name 1 to ${max} places or points, such as district/3026,coords/23.81/90.41`,
        'places',
      ),
    longPlaces: (length: number, longest: number) =>
      say('places_too_long', `places must have at most ${longest} characters, got ${length}`, 'places'),
    manyPlaces: (count: number, max: number) =>
      say('places_too_many', `places must name at most ${max} places or points, got ${count}`, 'places'),
    place: (given: string) =>
      must(
        'place_invalid',
        'a place in places',
        'be a type and an id such as district/3026, or a point such as coords/23.81/90.41',
        given,
        'places',
      ),
    longSearch: (given: string, length: number, longest: number) =>
      say(
        'search_too_long',
        `q must have at most ${longest} characters, got ${length} in ${quoted(given)}`,
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
  provider_circuit_open: `${noWeather}: the weather provider has been failing and is tried again shortly`,
  provider_timeout: `${noWeather}: the weather provider did not answer in time`,
  provider_failing: `${noWeather}: the weather provider is failing`,
  provider_overloaded: `${noWeather}: the weather provider is overloaded`,
  provider_refused: `${noWeather}: the weather provider has none for this grid cell`,
  provider_too_much: `${noWeather}: the weather provider refused the size of our request`,
  provider_denied: `${noWeather}: the weather provider does not accept this gateway`,
  provider_limited: `${noWeather}: the gateway has used up its quota at the weather provider`,
  key_share_used_up: `${noWeather}: this key has used up its share of what the gateway may load from the weather provider`,
  provider_busy: `${noWeather}: the weather provider is busy`,
  provider_cut_off: `${noWeather}: the weather provider's answer was cut off`,
  provider_garbled: `${noWeather}: the weather provider's answer was not usable`,
  waited_too_long: `${noWeather}: the weather provider did not answer in time`,
  timeline_exhausted: `${noWeather}: the cached forecast has expired and could not be refreshed`,
  tier_not_configured: 'the plan of this key is not configured on this gateway; ask its operator',
  store_unavailable: 'the key or its quota could not be checked: the store of the gateway is unavailable',
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

export type ErrorCode = CodesIn<typeof sentences> | keyof typeof failureSentences
