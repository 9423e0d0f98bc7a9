// The Prometheus metrics of the gateway. Labels are outcomes, tiers and routes, never keys, cells or places, and every series exists from
// the start. The dashboard and the status page read the metrics of this file back.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { Clock } from '../common/clock.ts'
import type { ResponseName } from '../common/endpoints.ts'
import { version } from '../common/version.ts'
import { countAndTime, createCounters } from './counters.ts'
import { cacheMetrics, providerMetrics, requestMetrics, upkeepMetrics } from './event-metrics.ts'
import { type Gauges, watchGauges } from './gauges.ts'
import { totalsOf } from './history.ts'
import * as known from './label-values.ts'
import { createUpstreamMetrics, type WatchedUpstreams } from './upstream-metrics.ts'

// Hits take well under a millisecond, and a cold cell up to cache.waitFor.
const requestBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 15]
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

/**
 * Those of Node and the process. The library has 90 files, a twentieth of a start: it is loaded by the first scrape, and its two
 * largest parts in turns of their own, because responses wait for each.
 */
const processMetrics = async (): Promise<Registry> => {
  await import('node:https')
  await nextTurn()
  await import('@opentelemetry/api')
  await nextTurn()
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const register = new Registry()
  collectDefaultMetrics({ register })
  return register
}

export const createMetrics = ({ clock, store, upstreams: names = [] }: MetricsParts) => {
  const counters = createCounters()
  const { countBy, timeBy, timeAll, gaugeBy } = counters
  let ofProcess: Promise<Registry> | undefined
  let beforeScrape: () => Promise<void> = async () => {}
  const timeRequest = timeBy(
    'http_server_request_duration_seconds',
    "Time from a request's arrival to the end of its response.",
    ['endpoint', 'status'],
    requestBuckets,
    known.requests,
  )
  const countRead = countBy(
    'abohawa_cache_reads_total',
    'Reads of the weather cache by outcome and tier.',
    ['outcome', 'source'],
    [...known.pairs(['hit', 'stale'], ['memory', store]), ['miss', 'provider']],
  )
  let failedReads = 0
  counters.gauge(
    'abohawa_cache_failed_reads_total',
    'Reads of the weather cache that found no weather.',
    () => failedReads,
    'counter',
  )
  const timeAge = timeAll(
    'abohawa_cache_served_age_seconds',
    'Age of served weather since it was fetched from the provider.',
    ageBuckets,
  )
  const upstreams = createUpstreamMetrics(counters, names)
  gaugeBy(
    'version',
    'abohawa_build_info',
    "Always 1; the label has the gateway's version and commit.",
    () => [[version, 1]],
  )

  return {
    ...requestMetrics(counters),
    ...cacheMetrics(counters),
    ...providerMetrics(counters, clock, upstreams),
    ...upkeepMetrics(counters),
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    exposition: async () => {
      // One that failed is loaded anew: a descriptor may have been missing.
      ofProcess ??= processMetrics().catch(error => {
        ofProcess = undefined
        throw error
      })
      const [library] = await Promise.all([ofProcess, beforeScrape()])
      // The library writes Nan, and Prometheus NaN.
      return `${counters.text()}\n${(await library.metrics()).replaceAll(/ Nan$/gm, ' NaN')}`
    },
    /** The counters of requests and of reads of the cache, since the start. */
    totals: () => totalsOf(requestBuckets, timeRequest.all(), countRead.all(), failedReads),
    /** The answers of endpoints since the start, but those that refused a key or for its quota. */
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
    cacheReadFailed: (): void => {
      failedReads += 1
    },
    /** By outcome and tier; then the ms since the weather was fetched. */
    cacheRead: countAndTime(countRead, timeAge),
    /** Of several upstreams; of none where there is one. */
    upstreams,
    watch: (parts: Gauges & { readonly upstream: WatchedUpstreams }) => {
      upstreams.watch(parts.upstream)
      beforeScrape = watchGauges(counters, parts, clock)
    },
  }
}
