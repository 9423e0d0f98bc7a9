// Every error sentence for consumers, in one table: what the thing is, what was given, what is allowed. No
// sentence quotes the provider, its address or a key; what a client sent is quoted and cut. Statuses are for those who
// throw.

import { keyPrefix } from '../metering/key-form.ts'
import { quoted } from '../outside-text.ts'

const noWeather = 'no weather can be given for this place right now'
const key = 'the API key is'

export const sentences = {
  http: {
    hostMissing: 'the host header is missing; HTTP/1.1 requires it',
    host: (given: string) => `the host header is ${quoted(given)}; allowed: one host, with or without a port`,
    version: (given: string) => `the HTTP version is ${given}; allowed: 1.1, 1.0`,
    transferEncodingInHttp10: 'transfer-encoding is given with HTTP/1.0; allowed: HTTP/1.1',
    transferEncoding: (given: string) => `transfer-encoding is ${quoted(given)}; allowed: chunked`,
    plain: 'the request came over plain HTTP; HTTPS is required',
    tooLarge: 'the URL and headers are too large; allowed: 16 KiB together',
    notEncoded: 'the URL holds characters that must be percent-encoded, such as %E0%A6%A2 for ঢ',
    late: 'the request did not arrive completely in time',
    invalid: 'the request is not valid HTTP',
    method: (given: string | undefined) => `the method is ${given}; allowed: GET, HEAD`,
  },
  /** By the reason why a key is refused. */
  key: {
    missing: `${key} missing: send it in the header x-api-key`,
    'wrong-prefix': `${key} invalid: a key begins with ${keyPrefix}`,
    malformed: `${key} invalid: it is mistyped or cut off`,
    unknown: `${key} invalid: it is not known`,
    replaced: `${key} invalid: it was replaced by a newer one`,
    'key-revoked': `${key} invalid: it was revoked`,
    'key-expired': `${key} invalid: it has expired`,
    'subscriber-revoked': `${key} invalid: its subscriber was revoked`,
  },
  quotaExhausted: (limit: number) => `the daily quota of ${limit} requests of this key is exhausted`,
  path: {
    notEncoded: (path: string) => `the path is ${quoted(path)}; allowed: percent-encoded UTF-8`,
    nothing: (path: string, endpoints: string) =>
      `there is nothing at ${quoted(path)}; the endpoints are ${endpoints}`,
    longitudeMissing: 'lng is missing; a point is asked for as /api/v1/weather/coords/{lat}/{lng}',
    place: (type: string, id: string) => `the ${type} ${quoted(id)} was not found or is not published`,
    formerCode: (type: string, id: string, code: string, since: string | undefined) =>
      `the ${type} ${quoted(id)} was not found: its code is ${code} ${since === undefined ? 'now' : `since ${since}`}; ask for that`,
  },
  parameter: {
    notEncoded: (name: string, given: string) =>
      `${name} is ${quoted(given)}; allowed: percent-encoded UTF-8`,
    twice: (name: string) => `${name} is given more than once; allowed: at most once`,
    type: (given: string | undefined, allowed: readonly string[]) =>
      `type is ${given === undefined ? 'missing' : quoted(given)}; allowed: ${allowed.join(', ')}`,
    language: (given: string) => `lang is ${quoted(given)}; allowed: bn, en`,
    wholeNumber: (name: string, given: string, min: number, max: number) =>
      `${name} is ${quoted(given)}; allowed: a whole number from ${min} to ${max}`,
    degrees: (name: string, given: string, min: number, max: number) =>
      `${name} is ${quoted(given)}; allowed: decimal degrees such as 23.81, from ${min} to ${max}`,
    outOfBounds: (name: string, given: string, area: string, min: number, max: number) =>
      `${name} is ${quoted(given)}, outside the bounds of ${area}; allowed: ${min} to ${max}`,
    longSearch: (given: string, length: number, longest: number) =>
      `q is ${quoted(given)}, ${length} characters; allowed: at most ${longest} characters`,
  },
  unexpected: 'the gateway failed unexpectedly',
} as const

/** By the code of a failure below the API; what is not here is unexpected. */
export const failureSentences: Readonly<Record<string, string>> = {
  provider_unreachable: `${noWeather}: the weather provider can't be reached`,
  provider_not_sent: `${noWeather}: this gateway stood still before it could ask the weather provider`,
  provider_broke_off: `${noWeather}: the connection to the weather provider broke`,
  provider_circuit_open: `${noWeather}: the weather provider has been failing, and is tried again shortly`,
  provider_timeout: `${noWeather}: the weather provider did not answer in time`,
  provider_failing: `${noWeather}: the weather provider is failing`,
  provider_overloaded: `${noWeather}: the weather provider is overloaded`,
  provider_refused: `${noWeather}: the weather provider has none for this grid cell`,
  provider_too_much: `${noWeather}: the weather provider refused the size of our request`,
  provider_denied: `${noWeather}: the weather provider does not accept this gateway`,
  provider_limited: `${noWeather}: the gateway's share of the weather provider is used up`,
  provider_busy: `${noWeather}: the weather provider is busy`,
  provider_cut_off: `${noWeather}: the weather provider's answer was cut off`,
  provider_garbled: `${noWeather}: the weather provider's answer was not usable`,
  waited_too_long: `${noWeather}: the weather provider did not answer in time`,
  timeline_exhausted: `${noWeather}: what is cached ended and could not be renewed`,
  tier_not_configured:
    'the plan of this key is not configured on this gateway; only its operator can mend that',
  record_damaged: 'the record of this key is damaged on this gateway; only its operator can mend that',
  store_unavailable: 'the key or its quota could not be checked: the store of the gateway is not available',
}
