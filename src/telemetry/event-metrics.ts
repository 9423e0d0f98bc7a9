// The counters and times of events in the parts of a gateway, by part. What is counted of requests and reads of the cache, which the
// dashboard and the status page read back, stands in metrics.ts.

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
      'Requests with test keys by status; no other metric of requests has them, nor any of weather.',
      'status',
      known.testStatuses,
    ),
    admission: count(
      'abohawa_admissions_total',
      'Decisions on keys and quotas: allowed, rate_limited (by the second or minute), exhausted (by the day), or why a key was refused.',
      'decision',
      known.decisions,
    ),
    rateLimited: count(
      'abohawa_rate_limited_total',
      'Requests that were refused by a limit of their key beside that of the day, by which one.',
      'policy',
      ratePolicies,
    ),
    connectionClosed: count(
      'abohawa_connections_closed_total',
      'Connections to the API that were closed because of a limit: connections, address, refusals or pipeline.',
      'reason',
      known.closingReasons,
    ),
    nearLimit: count(
      'abohawa_keys_near_limit_total',
      'Keys whose count of a day reached 80 or 100 per cent of the limit; one instance counts each.',
      'percent',
      ['80', '100'],
    ),
    opsRefused: count(
      'abohawa_ops_refused_total',
      'Requests to the ops listener that were refused, by what was wrong with them.',
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
      'Reads that shared a load which another request had started, here or in another instance.',
    ),
    refreshFailed: count(
      'abohawa_cache_refresh_failures_total',
      'Failed loads behind a stale answer (refresh) or before an entry turns stale (refresh_ahead).',
      'purpose',
      ['refresh', 'refresh_ahead'],
    ),
    purged: count(
      'abohawa_cache_purges_total',
      'Purges that this instance has applied since its start.',
      'kind',
      ['soft', 'hard'],
    ),
    sharedTierFailed: count(
      'abohawa_cache_shared_tier_failures_total',
      'Failed steps of the shared cache tier: read, write, or lease (of the fleet-wide single-flight).',
      'step',
      ['read', 'write', 'lease'],
    ),
    entryRefused: count(
      'abohawa_cache_entries_refused_total',
      'Entries of the shared cache tier that were refused and counted as a miss, by reason.',
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
    'Requests to the provider by outcome: ok, or what went wrong.',
    callBuckets,
    ['ok', 'left', ...known.providerFailures],
  )
  let lastSuccess = 0
  gauge(
    'abohawa_provider_last_success_timestamp_seconds',
    'When the provider last answered a request as it should; 0 for never since the start.',
    () => lastSuccess,
  )
  const lastFailures = new Map<string, number>(known.providerFailures.map(cause => [cause, 0]))
  gaugeBy(
    'cause',
    'abohawa_provider_last_failure_timestamp_seconds',
    'When a request to the provider last failed, by cause; 0 for never since the start.',
    () => lastFailures,
  )
  return {
    budgetReopened: countAll(
      'abohawa_provider_budget_reopenings_total',
      'Reopenings of the budget by an operator that this instance has followed.',
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
      "Loads refused because their key had used up its share of the provider's limits, by what was cached: nothing (cold), or a stale entry (refresh).",
      'urgency',
      ['cold', 'refresh', 'refresh_ahead'],
    ),
    providerAnswerRefused: count(
      'abohawa_provider_refused_answers_total',
      'Answers of the provider, or elements of them, that came and were refused, by what was wrong with them.',
      'reason',
      refusedAnswers,
    ),
  }
}

export const upkeepMetrics = (counters: Counters) => {
  const { gauge } = counters
  const count = countOf(counters)
  let fleet = { instances: 0, variants: 0, wanted: 0 }
  gauge(
    'abohawa_instances',
    'Gateways that share the store and were alive at the last heartbeat.',
    () => fleet.instances,
  )
  gauge('abohawa_cache_wanted_cells', 'Cells in demand, over all gateways.', () => fleet.wanted)
  gauge(
    'abohawa_config_variants',
    'Different settings that the gateways of the fleet ran with at the last heartbeat; 1 when they agree.',
    () => fleet.variants,
  )
  const timeRedis = timeOf(counters)(
    'abohawa_redis_request_duration_seconds',
    'Requests to Redis by outcome: ok, timeout, connection (lost or refused) or reply (an error of Redis).',
    redisBuckets,
    known.redisOutcomes,
  )
  return {
    configReloaded: count(
      'abohawa_config_reloads_total',
      'Readings of the configuration while the gateway ran: applied, unchanged or refused.',
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
    catalogueLoaded: count(
      'abohawa_catalogue_loads_total',
      'Loads of the catalogue: taken, or refused for a fault.',
      'outcome',
      ['taken', 'refused'],
    ),
  }
}
