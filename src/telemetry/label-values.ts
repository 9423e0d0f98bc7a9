// The values that the labels of metrics can have, so that every series exists from the first scrape: rate() and absent() need that.

import { endpointNames, type ResponseName } from '../common/endpoints.ts'
import { keyRefusals } from '../keys/authentication.ts'
import { restrictionRefusals } from '../keys/restrictions.ts'
import { providerErrorCodes } from '../provider/errors.ts'
import type { RedisOutcome } from '../stores/redis/connection.ts'
import { bytesRefusals } from '../weather/timeline-bytes.ts'

/** The statuses of refusals. */
export const problemStatuses = [400, 401, 403, 404, 405, 429, 500] as const
export type ProblemStatus = (typeof problemStatuses)[number]

/** Of every response of the API; with 499 the client disconnected before it started. */
type ResponseStatus = 200 | 204 | 304 | 308 | 499 | ProblemStatus

export const pairs = <First, Second>(
  firsts: readonly First[],
  seconds: readonly Second[],
): (readonly [First, Second])[] => firsts.flatMap(first => seconds.map(second => [first, second] as const))

const errors: readonly ResponseStatus[] = [...problemStatuses, 499]
/** Endpoint and status; with 204 `other` is a preflight request of a browser. */
export const requests: readonly (readonly [ResponseName, ResponseStatus])[] = [
  ...pairs(endpointNames, [200, 304, ...errors] as const),
  ...pairs(['other' as const], [204, ...errors] as const),
  ...pairs(['key' as const], [200, ...errors] as const),
  ...pairs(['reference' as const], [200, 304, 308, 400, 429, 499, 500] as const),
]

/** Of test keys. */
export const testStatuses: readonly string[] = [200, 304, ...errors].map(String)

export const decisions: readonly string[] = [
  'allowed',
  'rate_limited',
  'exhausted',
  'unavailable',
  ...keyRefusals,
  ...restrictionRefusals,
]

/**
 * Why a connection to the API was closed: too many in all, too many of its address without a good key, too many requests without
 * one, or too many that wait.
 */
export const closingReasons = ['connections', 'address', 'refusals', 'pipeline'] as const
export type ClosingReason = (typeof closingReasons)[number]

export const entryFaults: readonly string[] = ['wrong_type', ...bytesRefusals, 'out_of_range']

/** The codes with which a request to the provider can fail; `internal` is a fault of the gateway. */
export const providerFailures: readonly string[] = [
  ...providerErrorCodes.filter(code => code !== 'provider_circuit_open' && code !== 'key_share_used_up'),
  'internal',
]

/** Why the ops listener refused a request. */
export const opsRefusals = [
  ...(['host', 'origin', 'fetch_site', 'browser', 'token_missing', 'token_wrong', 'token_unset'] as const),
  ...(['method', 'path', 'query', 'body', 'budget', 'circuit', 'busy'] as const),
  ...(['unparsable', 'timeout', 'connections', 'unread_body'] as const),
]
export type RefusalReason = (typeof opsRefusals)[number]

// Not a list of the connection's own, because the client of Redis would be loaded with it.
export const redisOutcomes = Object.keys({
  ok: true,
  timeout: true,
  connection: true,
  reply: true,
} satisfies Record<RedisOutcome, true>)
