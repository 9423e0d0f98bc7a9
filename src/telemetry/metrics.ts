// The Prometheus metrics of the gateway. What observers.ts makes of events calls these functions; gauges.ts is read at each
// scrape. Labels are outcomes, tiers and routes, never keys, cells or places, and every series is there from the start.

import type { Registry } from 'prom-client'
import type { Clock } from '../common/clock.ts'
import type { ResponseName } from '../common/endpoints.ts'
import { version } from '../common/version.ts'
import { ratePolicies } from '../keys/rates.ts'
import { refusedAnswers } from '../provider/errors.ts'
import { recordKinds } from '../stores/records.ts'
import { countAndTime, createCounters } from './counters.ts'
import { type Gauges, watchGauges } from './gauges.ts'
import { totalsOf } from './history.ts'
import * as known from './label-values.ts'
import { createUpstreamMetrics, type WatchedUpstreams } from './upstream-metrics.ts'

// Hits take well under a millisecond, and a cold cell up to cache.waitFor.
const requestBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 15]
// A call may take provider.totalTimeout.
const callBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const redisBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
const minute = 60
const hour = 60 * minute
const ageBuckets = [
  5 * minute,
  15 * minute,
  30 * minute,
  // Until the next run it grows to 6 h 40 min: the bucket up to 7 h keeps that apart from what is older.
  ...[1, 1.25, 2, 4, 7, 9, 12, 24, 48].map(hours => hours * hour),
]

/** `errors` are those with 5xx among `all`. */
export type Answers = { readonly all: number; readonly errors: number }

// Refused for its key or quota, or the client was gone: says nothing of the service.
const notServed: ReadonlySet<number> = new Set([401, 403, 429, 499])

export type Metrics = ReturnType<typeof createMetrics>

export type MetricsParts = {
  readonly clock: Clock
  /** The name of the shared cache tier. */
  readonly store: 'redis' | 'embedded'
  /** The names of the upstreams, the first one first; absent where there is one. */
  readonly upstreams?: readonly string[]
}

/** Those of Node and the process. The library has 90 files, a twentieth of a start: it is loaded by the first scrape. */
const processMetrics = async (): Promise<Registry> => {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const register = new Registry()
  collectDefaultMetrics({ register })
  return register
}

export const createMetrics = ({ clock, store, upstreams: names = [] }: MetricsParts) => {
  const counters = createCounters()
  const { countAll, countBy, timeBy, timeAll, gauge, gaugeBy } = counters
  let ofProcess: Promise<Registry> | undefined
  let beforeScrape: () => Promise<void> = async () => {}
  const count = (name: string, help: string, label: string, values: readonly string[]) =>
    countBy(
      name,
      help,
      [label],
      values.map(value => [value]),
    )
  const timeOutcome = (name: string, help: string, bounds: readonly number[], outcomes: readonly string[]) =>
    timeBy(
      name,
      help,
      ['outcome'],
      bounds,
      outcomes.map(outcome => [outcome]),
    )

  const timeRequest = timeBy(
    'http_server_request_duration_seconds',
    'Requests to the API from arrival to the end of the answer.',
    ['endpoint', 'status'],
    requestBuckets,
    known.requests,
  )
  const countRead = countBy(
    'abohawa_cache_reads_total',
    'Reads of the weather cache by outcome and by the tier that answered.',
    ['outcome', 'source'],
    [...known.pairs(['hit', 'stale'], ['memory', store]), ['miss', 'provider']],
  )
  const timeAge = timeAll(
    'abohawa_cache_served_age_seconds',
    'Age of the weather that was served: how long ago it was fetched from the provider.',
    ageBuckets,
  )
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
  const countPoints = countAll('abohawa_provider_points_total', 'Points requested from the provider.')
  const timeCall = timeOutcome(
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
  const timeRedis = timeOutcome(
    'abohawa_redis_request_duration_seconds',
    'Requests to Redis by outcome: ok, timeout, connection (lost or refused) or reply (an error of Redis).',
    redisBuckets,
    known.redisOutcomes,
  )
  const upstreams = createUpstreamMetrics(counters, names)
  gaugeBy(
    'version',
    'abohawa_build_info',
    'Always 1; the version of the gateway, with its commit, is a label.',
    () => [[version, 1]],
  )

  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    exposition: async () => {
      ofProcess ??= processMetrics()
      const [library] = await Promise.all([ofProcess, beforeScrape()])
      // The library writes Nan, and Prometheus NaN.
      return `${counters.text()}\n${(await library.metrics()).replaceAll(/ Nan$/gm, ' NaN')}`
    },
    /** The counters of requests and of reads of the cache, since the start. */
    totals: () => totalsOf(requestBuckets, timeRequest.all(), countRead.all()),
    /** The answers of endpoints to good keys within their quota, since the start. */
    answered: (): Answers => {
      const answers = { all: 0, errors: 0 }
      for (const { first, second, counts } of timeRequest.all()) {
        if (first === 'reference' || first === 'key' || first === 'other' || notServed.has(Number(second)))
          continue
        const count = counts.reduce((sum, each) => sum + each, 0)
        answers.all += count
        if (Number(second) >= 500) answers.errors += count
      }
      return answers
    },
    staleReads: () =>
      countRead.all().reduce((sum, { first, count }) => (first === 'stale' ? sum + count : sum), 0),
    /** With its endpoint, its status, and the seconds that it took. */
    requestAnswered: timeRequest as (endpoint: ResponseName, status: number, seconds: number) => void,
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
    /** By outcome and tier; then the ms since the weather was fetched. */
    cacheRead: countAndTime(countRead, timeAge),
    cacheCollapsed: countAll(
      'abohawa_cache_collapsed_total',
      'Reads that shared a load which another request had started, here or in another instance.',
    ),
    budgetReopened: countAll(
      'abohawa_provider_budget_reopenings_total',
      'Reopenings of the budget by an operator that this instance has followed.',
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
    configReloaded: count(
      'abohawa_config_reloads_total',
      'Readings of the configuration while the gateway ran: applied, unchanged or refused.',
      'outcome',
      ['applied', 'unchanged', 'refused'],
    ),
    heartbeat: (found: typeof fleet) => {
      fleet = found
    },
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
    recordRefused: count(
      'abohawa_store_records_refused_total',
      'Invalid records of the store, by kind.',
      'record',
      recordKinds,
    ),
    redisRequest: timeRedis,
    /** Of several upstreams; of none where there is one. */
    upstreams,
    providerRequest: (outcome: string, points: number, ms: number) => {
      timeCall(outcome, '', ms / 1000)
      if (names[0] !== undefined) upstreams.request(names[0], outcome)
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
    opsRefused: count(
      'abohawa_ops_refused_total',
      'Requests to the ops listener that were refused, by what was wrong with them.',
      'reason',
      known.opsRefusals,
    ),
    catalogueLoaded: count(
      'abohawa_catalogue_loads_total',
      'Loads of the catalogue: taken, or refused for a fault.',
      'outcome',
      ['taken', 'refused'],
    ),
    watch: (parts: Gauges & { readonly upstream: WatchedUpstreams }) => {
      upstreams.watch(parts.upstream)
      beforeScrape = watchGauges(counters, parts, clock)
    },
  }
}
