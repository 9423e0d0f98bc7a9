// The Prometheus metrics of the gateway. The observers in gateway/observers.ts call these functions; the gauges are read at
// each scrape. Labels are outcomes, tiers and routes, never keys, cells or places.

// One by one: the whole library is 90 files, a twentieth of a start.
import Counter from 'prom-client/lib/counter.js'
import Gauge from 'prom-client/lib/gauge.js'
import Histogram from 'prom-client/lib/histogram.js'
import Registry from 'prom-client/lib/registry.js'
import { countBy, timeBy } from './counters.ts'
import { totalsOf } from './totals.ts'

// Hits take well under a millisecond and provider calls up to seconds, so the buckets reach from one to the other.
const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Read at each scrape. */
export type Gauges = {
  readonly connections: () => {
    readonly open: number
    readonly unauthenticated: number
    readonly queuedRequests: number
  }
  readonly memoryEntries: () => number
  readonly memoryBytes: () => number
  readonly places: () => number
  readonly configRefused: () => boolean
  readonly configRestartNeeded: () => number
  readonly waitingCells: () => number
  /** Since the start. */
  readonly logLinesDropped: () => number
  readonly stretch: () => number
  readonly budget: () => Budget
  readonly meter: () => 'counting' | 'away' | 'reconciling'
  readonly storeClockOffsetMs: () => number
  readonly breaker: () => 'closed' | 'open' | 'half-open'
  /** Ms since the epoch; undefined where runs are not followed or not known. */
  readonly runAvailableAt: () => number | undefined
}

type Budget = {
  readonly windows: readonly { readonly name: string; readonly limit: number; readonly used: number }[]
  readonly shared: boolean
}

export type Metrics = ReturnType<typeof createMetrics>

export const createMetrics = () => {
  const registry = new Registry()
  const registers = [registry]
  let defaults: Promise<void> | undefined
  /** Those of Node and the process, which are collected from the first scrape on. */
  const collectDefaults = async (): Promise<void> => {
    const { collectDefaultMetrics } = await import('prom-client')
    collectDefaultMetrics({ register: registry })
  }

  const timeRequest = timeBy(
    {
      name: 'http_server_request_duration_seconds',
      help: 'Requests to the API from arrival to the end of the answer.',
      registry,
    },
    ['endpoint', 'status'],
    secondsBuckets,
  )
  const countAdmission = countBy(
    {
      name: 'abohawa_admissions_total',
      help: 'Decisions on keys and quotas: allowed, exhausted, or why a key was refused.',
      registry,
    },
    ['decision'],
  )
  const connectionsClosed = new Counter({
    name: 'abohawa_connections_closed_total',
    help: 'Connections to the API that were closed because of a limit: connections, unauthenticated, pipelining or write_timeout.',
    labelNames: ['reason'],
    registers,
  })
  const nearLimits = new Counter({
    name: 'abohawa_keys_near_limit_total',
    help: 'Keys whose count of a day reached 80 or 100 per cent of the limit; one instance counts each.',
    labelNames: ['percent'],
    registers,
  })
  const countRead = countBy(
    {
      name: 'abohawa_cache_reads_total',
      help: 'Reads of the weather cache by outcome and by the tier that answered.',
      registry,
    },
    ['outcome', 'source'],
  )
  const collapses = new Counter({
    name: 'abohawa_cache_collapsed_total',
    help: 'Reads that shared a load which another request had started, here or in another instance.',
    registers,
  })
  const purges = new Counter({
    name: 'abohawa_cache_purges_total',
    help: 'Purges that this instance has applied since its start.',
    labelNames: ['kind'],
    registers,
  })
  const budgetReopenings = new Counter({
    name: 'abohawa_provider_budget_reopenings_total',
    help: 'Reopenings of the budget by an operator that this instance has followed.',
    registers,
  })
  const instances = new Gauge({
    name: 'abohawa_instances',
    help: 'Gateways that share the store and were alive at the last heartbeat.',
    registers,
  })
  const wanted = new Gauge({
    name: 'abohawa_cache_wanted_cells',
    help: 'Cells in demand, over all gateways.',
    registers,
  })
  const refreshFailures = new Counter({
    name: 'abohawa_cache_refresh_failures_total',
    help: 'Failed loads behind a stale answer (refresh) or before an entry turns stale (refresh_ahead).',
    labelNames: ['purpose'],
    registers,
  })
  const sharedTierFailures = new Counter({
    name: 'abohawa_cache_shared_tier_failures_total',
    help: 'Failed steps of the shared cache tier: read, write, or lease (of the fleet-wide single-flight).',
    labelNames: ['step'],
    registers,
  })
  const entriesRefused = new Counter({
    name: 'abohawa_cache_entries_refused_total',
    help: 'Entries of the shared cache tier that were refused and counted as a miss, by reason.',
    labelNames: ['reason'],
    registers,
  })
  const recordsRefused = new Counter({
    name: 'abohawa_store_records_refused_total',
    help: 'Invalid records of the store, by kind: ignored, or reset.',
    labelNames: ['record'],
    registers,
  })
  const quotaRecordsRepaired = new Counter({
    name: 'abohawa_quota_records_repaired_total',
    help: 'Quota records that could not be read and were repaired: of the running day, or of the month.',
    labelNames: ['record'],
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
    help: 'Points requested from the provider.',
    registers,
  })
  const refusedAnswers = new Counter({
    name: 'abohawa_provider_refused_answers_total',
    help: 'Answers of the provider, or elements of them, that came and were refused, by what was wrong with them.',
    labelNames: ['reason'],
    registers,
  })
  const countOpsRefusal = countBy(
    {
      name: 'abohawa_ops_refused_total',
      help: 'Requests to the ops listener that were refused, by what was wrong with them.',
      registry,
    },
    ['reason'],
  )
  const catalogueLoads = new Counter({
    name: 'abohawa_catalogue_loads_total',
    help: 'Loads of the catalogue: taken, or refused for a fault.',
    labelNames: ['outcome'],
    registers,
  })

  const configReloads = new Counter({
    name: 'abohawa_config_reloads_total',
    help: 'Readings of the configuration while the gateway ran: applied, unchanged or refused.',
    labelNames: ['outcome'],
    registers,
  })
  const configVariants = new Gauge({
    name: 'abohawa_config_variants',
    help: 'Different settings that the gateways of the fleet ran with at the last heartbeat; 1 when they agree.',
    registers,
  })

  return {
    contentType: registry.contentType,
    exposition: async () => {
      defaults ??= collectDefaults()
      await defaults
      return registry.metrics()
    },
    /** The counters of requests and of reads of the cache, since the start. */
    totals: () => totalsOf(registry),
    /** Of which endpoint, with which status, after how many seconds. */
    requestAnswered: timeRequest,
    admission: countAdmission,
    connectionClosed: (reason: string) => connectionsClosed.inc({ reason }),
    nearLimit: (percent: number) => nearLimits.inc({ percent }),
    cacheRead: countRead,
    staleReads: () => countRead.sum('stale'),
    cacheCollapsed: () => collapses.inc(),
    budgetReopened: () => budgetReopenings.inc(),
    refreshFailed: (purpose: string) => refreshFailures.inc({ purpose }),
    purged: (kind: string) => purges.inc({ kind }),
    configReloaded: (outcome: string) => configReloads.inc({ outcome }),
    heartbeat: (fleet: { instances: number; variants: number; wanted: number }) => {
      instances.set(fleet.instances)
      configVariants.set(fleet.variants)
      wanted.set(fleet.wanted)
    },
    sharedTierFailed: (step: string) => sharedTierFailures.inc({ step }),
    entryRefused: (reason: string) => entriesRefused.inc({ reason }),
    recordRefused: (record: string) => recordsRefused.inc({ record }),
    quotaRepaired: (record: string) => quotaRecordsRepaired.inc({ record }),
    providerRequest: (outcome: string, points: number, ms: number) => {
      providerRequests.observe({ outcome }, ms / 1000)
      providerPoints.inc(points)
    },
    providerAnswerRefused: (reason: string) => refusedAnswers.inc({ reason }),
    opsRefused: countOpsRefusal,
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
      const gaugeBy = (label: string, name: string, help: string, read: () => readonly [string, number][]) =>
        new Gauge({
          name,
          help,
          labelNames: [label],
          registers,
          collect() {
            this.reset()
            for (const [value, amount] of read()) this.set({ [label]: value }, amount)
          },
        })
      new Counter({
        name: 'abohawa_log_lines_dropped_total',
        help: 'Lines of the log that could not be written, or that waited too long for their reader.',
        registers,
        collect() {
          this.reset()
          this.inc(gauges.logLinesDropped())
        },
      })
      gauge('abohawa_connections', 'Open connections to the API.', () => gauges.connections().open)
      gauge(
        'abohawa_connections_unauthenticated',
        'Open connections to the API on which no good key came yet.',
        () => gauges.connections().unauthenticated,
      )
      gauge(
        'abohawa_requests_queued',
        'Requests to the API that wait behind another one on their connection.',
        () => gauges.connections().queuedRequests,
      )
      gauge('abohawa_cache_memory_entries', 'Timelines in the memory tier.', gauges.memoryEntries)
      gauge(
        'abohawa_cache_memory_bytes',
        'Bytes that the timelines in the memory tier account for.',
        gauges.memoryBytes,
      )
      gauge(
        'abohawa_cache_freshness_stretch',
        'How many times longer than configured weather stays fresh, so that the budget of the day suffices.',
        gauges.stretch,
      )
      gauge(
        'abohawa_config_refused',
        '1 while the newest configuration is not in effect because of a fault.',
        () => Number(gauges.configRefused()),
      )
      gauge(
        'abohawa_config_restart_needed',
        'Settings that differ from those in effect until the next start.',
        gauges.configRestartNeeded,
      )
      gauge('abohawa_catalogue_places', 'Published places.', gauges.places)
      gauge(
        'abohawa_provider_waiting_cells',
        'Cells that wait for a request to the provider with room.',
        gauges.waitingCells,
      )
      gaugeBy(
        'window',
        'abohawa_provider_budget_used',
        "Weight spent in the running window of the provider's limits, over all gateways.",
        () => gauges.budget().windows.map(({ name, used }) => [name, used]),
      )
      gaugeBy('window', 'abohawa_provider_budget_limit', "The provider's limits, in weight.", () =>
        gauges.budget().windows.map(({ name, limit }) => [name, limit]),
      )
      gauge('abohawa_provider_budget_shared', '1 while the budget is counted over all gateways.', () =>
        Number(gauges.budget().shared),
      )
      gaugeBy('state', 'abohawa_provider_circuit', '1 for the state the circuit to the provider is in.', () =>
        (['closed', 'open', 'half-open'] as const).map(state => [state, Number(gauges.breaker() === state)]),
      )
      gaugeBy('state', 'abohawa_quota_counting', '1 for the present state of quota counting.', () =>
        (['counting', 'away', 'reconciling'] as const).map(state => [
          state,
          Number(gauges.meter() === state),
        ]),
      )
      gauge(
        'abohawa_store_clock_offset_seconds',
        "How far the store's clock, which decides the day of quotas, is ahead of this machine's.",
        () => gauges.storeClockOffsetMs() / 1000,
      )
      gauge(
        'abohawa_provider_run_available_timestamp_seconds',
        'When the newest model run became available; 0 where none is known.',
        () => (gauges.runAvailableAt() ?? 0) / 1000,
      )
    },
  }
}
