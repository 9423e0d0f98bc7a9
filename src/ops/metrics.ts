// What is counted and timed, in Prometheus' terms. Listens to the parts through the observers they declare; labels
// are outcomes, tiers and routes, never keys, cells or places.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

// Hits take well under a millisecond and provider calls up to seconds, so the buckets reach from one to the other.
const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Read when the metrics are. */
export type Gauges = {
  readonly memoryEntries: () => number
  readonly memoryBytes: () => number
  readonly places: () => number
}

export type Metrics = ReturnType<typeof createMetrics>

export const createMetrics = () => {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const requests = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Requests to the API from arrival to the end of the answer.',
    labelNames: ['endpoint', 'status'],
    buckets: secondsBuckets,
    registers,
  })
  const admissions = new Counter({
    name: 'abohawa_admissions_total',
    help: 'Decisions on keys and quotas: allowed, exhausted, or why a key was refused.',
    labelNames: ['decision'],
    registers,
  })
  const reads = new Counter({
    name: 'abohawa_cache_reads_total',
    help: 'Reads of the weather cache by outcome and by the tier that answered.',
    labelNames: ['outcome', 'source'],
    registers,
  })
  const refreshFailures = new Counter({
    name: 'abohawa_cache_refresh_failures_total',
    help: 'Refreshes behind a stale answer that failed.',
    registers,
  })
  const sharedTierFailures = new Counter({
    name: 'abohawa_cache_shared_tier_failures_total',
    help: 'Reads, writes and decodings of the shared cache tier that failed and counted as absent.',
    labelNames: ['step'],
    registers,
  })
  const providerRequests = new Histogram({
    name: 'abohawa_provider_request_duration_seconds',
    help: 'Requests to the provider by outcome: ok, or what went wrong.',
    labelNames: ['outcome'],
    buckets: secondsBuckets,
    registers,
  })
  const providerPoints = new Counter({
    name: 'abohawa_provider_points_total',
    help: 'Points asked of the provider.',
    registers,
  })
  const catalogueLoads = new Counter({
    name: 'abohawa_catalogue_loads_total',
    help: 'Loads of the catalogue: taken, or refused for a fault.',
    labelNames: ['outcome'],
    registers,
  })

  return {
    contentType: registry.contentType,
    exposition: () => registry.metrics(),
    requestAnswered: (endpoint: string, status: number, ms: number) =>
      requests.observe({ endpoint, status }, ms / 1000),
    admission: (decision: string) => admissions.inc({ decision }),
    read: (outcome: string, source: string) => reads.inc({ outcome, source }),
    refreshFailed: () => refreshFailures.inc(),
    sharedTierFailed: (step: string) => sharedTierFailures.inc({ step }),
    providerRequest: (outcome: string, points: number, ms: number) => {
      providerRequests.observe({ outcome }, ms / 1000)
      providerPoints.inc(points)
    },
    catalogueLoaded: (outcome: 'taken' | 'refused') => catalogueLoads.inc({ outcome }),
    watch: (gauges: Gauges) => {
      const gauge = (name: string, help: string, read: () => number) =>
        new Gauge({
          name,
          help,
          registers,
          collect() {
            this.set(read())
          },
        })
      gauge('abohawa_cache_memory_entries', 'Timelines in the memory tier.', gauges.memoryEntries)
      gauge(
        'abohawa_cache_memory_bytes',
        'Bytes that the timelines in the memory tier account for.',
        gauges.memoryBytes,
      )
      gauge('abohawa_catalogue_places', 'Published places.', gauges.places)
    },
  }
}
