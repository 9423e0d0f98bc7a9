// The counters and times of events in the parts of a gateway, by part.

import type { Clock } from '../common/clock.ts'
import { ratePolicies } from '../keys/rates.ts'
import { refusedAnswers } from '../provider/errors.ts'
import { recordKinds } from '../stores/records.ts'
import type { Counters } from './counters.ts'
import * as known from './label-values.ts'
import type { createUpstreamMetrics } from './upstream-metrics.ts'

// A call may take provider.totalTimeout.
const callBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const redisBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]

/** Counts by one label. */
const countOf =
  ({ countBy }: Counters) =>
  (name: string, help: string, label: string, values: readonly string[]) =>
    countBy(
      name,
      help,
      [label],
      values.map(value => [value]),
    )

/** Times by outcome. */
const timeOf =
  ({ timeBy }: Counters) =>
  (name: string, help: string, bounds: readonly number[], outcomes: readonly string[]) =>
    timeBy(
      name,
      help,
      ['outcome'],
      bounds,
      outcomes.map(outcome => [outcome]),
    )

export const requestMetrics = (counters: Counters) => {
  const count = countOf(counters)
  return {
    /** With its status. */
    requestOfTestAnswered: count(
      'abohawa_test_key_requests_total',
      'Requests with test keys by status. No other request or weather metric counts them.',
      'status',
      known.testStatuses,
    ),
    admission: count(
      'abohawa_admissions_total',
      'Decisions on keys and quotas: allowed, rate_limited (second or minute), exhausted (day), or why a key was refused.',
      'decision',
      known.decisions,
    ),
    rateLimited: count(
      'abohawa_rate_limited_total',
      'Requests refused by a limit of their key per second or minute.',
      'policy',
      ratePolicies,
    ),
    connectionClosed: count(
      'abohawa_connections_closed_total',
      'API connections closed by a limit: connections, address, refusals or pipeline.',
      'reason',
      known.closingReasons,
    ),
    nearLimit: count(
      'abohawa_keys_near_limit_total',
      'Keys that reached 80 or 100 per cent of their daily limit; one instance counts each.',
      'percent',
      ['80', '100'],
    ),
    opsRefused: count(
      'abohawa_ops_refused_total',
      'Refused requests to the ops listener, by reason.',
      'reason',
      known.opsRefusals,
    ),
  }
}

export const cacheMetrics = (counters: Counters) => {
  const { countAll } = counters
  const count = countOf(counters)
  return {
    cacheCollapsed: countAll(
      'abohawa_cache_collapsed_total',
      "Reads that shared another request's load, in any instance.",
    ),
    refreshFailed: count(
      'abohawa_cache_refresh_failures_total',
      'Failed loads after a stale response (refresh) or before an entry turns stale (refresh_ahead).',
      'purpose',
      ['refresh', 'refresh_ahead'],
    ),
    purged: count('abohawa_cache_purges_total', 'Purges that this instance applied.', 'kind', [
      'soft',
      'hard',
    ]),
    sharedTierFailed: count(
      'abohawa_cache_shared_tier_failures_total',
      'Failed steps of the shared cache tier: read, write, or lease (fleet single-flight).',
      'step',
      ['read', 'write', 'lease'],
    ),
    entryRefused: count(
      'abohawa_cache_entries_refused_total',
      'Invalid entries of the shared cache tier, counted as misses, by reason.',
      'reason',
      known.entryFaults,
    ),
  }
}

export const providerMetrics = (
  counters: Counters,
  clock: Clock,
  upstreams: ReturnType<typeof createUpstreamMetrics>,
) => {
  const { countAll, gauge, gaugeBy } = counters
  const count = countOf(counters)
  const countPoints = countAll('abohawa_provider_points_total', 'Points requested from the provider.')
  const timeCall = timeOf(counters)(
    'abohawa_provider_request_duration_seconds',
    'Time of requests to the provider by outcome: ok, or the error.',
    callBuckets,
    ['ok', 'left', ...known.providerFailures],
  )
  let lastSuccess = 0
  gauge(
    'abohawa_provider_last_success_timestamp_seconds',
    'Last successful request to the provider.',
    () => lastSuccess,
  )
  const lastFailures = new Map<string, number>(known.providerFailures.map(cause => [cause, 0]))
  gaugeBy(
    'cause',
    'abohawa_provider_last_failure_timestamp_seconds',
    'Last failed request to the provider, by cause.',
    () => lastFailures,
  )
  return {
    budgetReopened: countAll(
      'abohawa_provider_budget_reopenings_total',
      'Budget reopenings by an operator that this instance applied.',
    ),
    providerRequest: (outcome: string, points: number, ms: number) => {
      timeCall(outcome, '', ms / 1000)
      const [first] = upstreams.names
      if (first !== undefined) upstreams.request(first, outcome)
      countPoints(points)
      const now = clock.now() / 1000
      if (outcome === 'ok') lastSuccess = now
      // An operator who did not wait is no failure of the provider.
      else if (outcome !== 'left') lastFailures.set(outcome, now)
    },
    keyShareUsedUp: count(
      'abohawa_provider_key_share_used_up_total',
      'Loads refused because their key used up its budget share; cold: nothing was cached.',
      'urgency',
      ['cold', 'refresh', 'refresh_ahead'],
    ),
    providerAnswerRefused: count(
      'abohawa_provider_refused_answers_total',
      'Invalid responses of the provider, or parts of them, by reason.',
      'reason',
      refusedAnswers,
    ),
  }
}

export const upkeepMetrics = (counters: Counters) => {
  const { gauge } = counters
  const count = countOf(counters)
  let fleet = { instances: 0, variants: 0, wanted: 0 }
  gauge('abohawa_instances', 'Gateways of the fleet alive at the last heartbeat.', () => fleet.instances)
  gauge('abohawa_cache_wanted_cells', 'Cells in demand, in the fleet.', () => fleet.wanted)
  gauge(
    'abohawa_config_variants',
    'Number of different configurations in the fleet; 1 when all agree.',
    () => fleet.variants,
  )
  const timeRedis = timeOf(counters)(
    'abohawa_redis_request_duration_seconds',
    'Time of requests to Redis by outcome: ok, timeout, connection (lost or refused) or reply (an error).',
    redisBuckets,
    known.redisOutcomes,
  )
  return {
    configReloaded: count(
      'abohawa_config_reloads_total',
      'Configuration reloads: applied, unchanged or refused.',
      'outcome',
      ['applied', 'unchanged', 'refused'],
    ),
    heartbeat: (found: typeof fleet) => {
      fleet = found
    },
    recordRefused: count(
      'abohawa_store_records_refused_total',
      'Invalid records of the store, by kind.',
      'record',
      recordKinds,
    ),
    redisRequest: timeRedis,
    catalogueLoaded: count('abohawa_catalogue_loads_total', 'Catalogue loads: taken or refused.', 'outcome', [
      'taken',
      'refused',
    ]),
  }
}
