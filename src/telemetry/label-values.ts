// The values that the labels of metrics can have, so that every series is there from the first scrape on: rate() and
// absent() are right only then. The types of the parts keep the lists complete.

import { endpointNames, type ResponseName } from '../common/endpoints.ts'
import { problemStatuses, type ResponseStatus } from '../common/statuses.ts'
import type { KeyRefusal } from '../keys/authentication.ts'
import type { ProviderErrorCode, RefusedAnswer } from '../provider/errors.ts'
import type { RecordKind } from '../stores/records.ts'
import type { RedisOutcome } from '../stores/redis/connection.ts'
import type { BytesRefusal } from '../weather/timeline-bytes.ts'

/** Why the ops listener refused a request: the label of `abohawa_ops_refused_total`. */
export type RefusalReason =
  | 'host'
  | 'origin'
  | 'fetch_site'
  | 'browser'
  | 'token_missing'
  | 'token_wrong'
  | 'token_unset'
  | 'method'
  | 'path'
  | 'query'
  | 'body'
  | 'budget'
  | 'circuit'
  | 'busy'
  | 'streams'
  | 'draining'
  | 'unparsable'
  | 'timeout'
  | 'connections'
  | 'unread_body'

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
export type ClosingReason = 'connections' | 'address' | 'refusals'

export const closingReasons = allOf<ClosingReason>({ connections: true, address: true, refusals: true })

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

export const records = allOf<RecordKind>({
  key: true,
  subscriber: true,
  usage: true,
  usage_detail: true,
  message: true,
  lease: true,
  instances: true,
  wanted: true,
  change_records: true,
  spending: true,
  settings: true,
})

/** The codes with which a request to the provider can fail; `internal` is a fault of the gateway. */
export const providerFailures = allOf<
  Exclude<ProviderErrorCode, 'provider_circuit_open' | 'key_share_used_up'> | 'internal'
>({
  provider_unreachable: true,
  provider_not_sent: true,
  provider_broke_off: true,
  provider_timeout: true,
  provider_failing: true,
  provider_overloaded: true,
  provider_refused: true,
  provider_too_much: true,
  provider_denied: true,
  provider_limited: true,
  provider_busy: true,
  provider_cut_off: true,
  provider_garbled: true,
  internal: true,
})

export const refusedAnswers = allOf<RefusedAnswer>({
  too_large: true,
  too_deep: true,
  too_many_lists: true,
  too_many_elements: true,
  too_many_chunks: true,
  too_many_interim_responses: true,
  too_slow: true,
  damaged: true,
  wrong_encoding: true,
  too_few_elements: true,
  wrong_shape: true,
  wrong_place: true,
  wrong_time: true,
  wrong_unit: true,
  out_of_range: true,
  no_value: true,
  wrong_run: true,
})

export const opsRefusals = allOf<RefusalReason>({
  host: true,
  origin: true,
  fetch_site: true,
  browser: true,
  token_missing: true,
  token_wrong: true,
  token_unset: true,
  method: true,
  path: true,
  query: true,
  body: true,
  budget: true,
  circuit: true,
  busy: true,
  draining: true,
  streams: true,
  unparsable: true,
  timeout: true,
  connections: true,
  unread_body: true,
})

export const redisOutcomes = allOf<RedisOutcome>({ ok: true, timeout: true, connection: true, reply: true })
