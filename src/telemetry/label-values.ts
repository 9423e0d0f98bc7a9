// The values that the labels of metrics can have, so that every series is there from the first scrape on: rate() and
// absent() are right only then. The types of the parts keep the lists complete. Statuses are those that the API answers with; what
// each means to consumers is in api/reference/.

import { endpointNames, type ResponseName } from '../common/endpoints.ts'
import type { KeyRefusal } from '../keys/authentication.ts'
import { providerErrorCodes } from '../provider/errors.ts'
import type { RedisOutcome } from '../stores/redis/connection.ts'
import type { BytesRefusal } from '../weather/timeline-bytes.ts'

/** The statuses of refusals. */
export const problemStatuses = [400, 401, 403, 404, 405, 429, 500] as const
export type ProblemStatus = (typeof problemStatuses)[number]

/** Of every response of the API; with 499 the client disconnected before it started. */
type ResponseStatus = 200 | 204 | 304 | 308 | 499 | ProblemStatus

/** The keys, in order: the type checker knows when one of the type's values is missing. */
const allOf = <Value extends string>(values: Record<Value, true>): readonly Value[] =>
  Object.keys(values) as Value[]

export const pairs = <First, Second>(
  firsts: readonly First[],
  seconds: readonly Second[],
): (readonly [First, Second])[] => firsts.flatMap(first => seconds.map(second => [first, second] as const))

const errors: readonly ResponseStatus[] = [...problemStatuses, 499]
/** Endpoint and status; with 204 `other` is a preflight request of a browser. */
export const requests: readonly (readonly [ResponseName, ResponseStatus])[] = [
  ...pairs(endpointNames, [200, 304, ...errors] as const),
  ...pairs(['other' as const], [204, ...errors] as const),
  ...pairs(['reference' as const], [200, 304, 308, 400, 429, 499, 500] as const),
]

export const decisions = allOf<'allowed' | 'exhausted' | 'unavailable' | KeyRefusal>({
  allowed: true,
  exhausted: true,
  missing: true,
  'wrong-prefix': true,
  malformed: true,
  unknown: true,
  replaced: true,
  'key-revoked': true,
  'subscriber-revoked': true,
  'key-expired': true,
  unavailable: true,
})

/**
 * Why a connection to the API was closed: too many in all, too many of its address without a good key, or too many requests without
 * one.
 */
export const closingReasons = ['connections', 'address', 'refusals'] as const
export type ClosingReason = (typeof closingReasons)[number]

export const entryFaults = allOf<BytesRefusal | 'wrong_type' | 'out_of_range'>({
  wrong_type: true,
  too_large: true,
  length: true,
  version: true,
  checksum: true,
  key: true,
  instant: true,
  malformed: true,
  out_of_range: true,
})

/** The codes with which a request to the provider can fail; `internal` is a fault of the gateway. */
export const providerFailures: readonly string[] = [
  ...providerErrorCodes.filter(code => code !== 'provider_circuit_open' && code !== 'key_share_used_up'),
  'internal',
]

/** Why the ops listener refused a request. */
export const opsRefusals = [
  ...(['host', 'origin', 'fetch_site', 'browser', 'token_missing', 'token_wrong', 'token_unset'] as const),
  ...(['method', 'path', 'query', 'body', 'budget', 'circuit', 'busy', 'draining', 'streams'] as const),
  ...(['unparsable', 'timeout', 'connections', 'unread_body'] as const),
]
export type RefusalReason = (typeof opsRefusals)[number]

export const redisOutcomes = allOf<RedisOutcome>({ ok: true, timeout: true, connection: true, reply: true })
