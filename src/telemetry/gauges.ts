// The gauges that are read at each scrape, from the parts that know. What is not known has no number: NaN, for which no
// comparison of an alert holds. Events are counted in metrics.ts.

import type { Catalogue } from '../catalogue/catalogue.ts'
import type { LiveCatalogue } from '../catalogue/live-catalogue.ts'
import type { Clock } from '../common/clock.ts'
import type { MeterState } from '../keys/outage.ts'
import type { BreakerState } from '../provider/breaker.ts'
import type { BudgetState } from '../provider/budget.ts'
import type { Counters } from './counters.ts'
import { providerFailures } from './label-values.ts'
import type { StoreFacts } from './store-watch.ts'

/** Read at each scrape. Instants are ms since the epoch. */
export type Gauges = {
  readonly connections: () => { readonly open: number; readonly unauthenticated: number }
  /** When the served certificate expires; undefined without TLS. */
  readonly certificateExpiresAt: () => number | undefined
  readonly memoryEntries: () => number
  readonly memoryBytes: () => number
  /** When the first cell in demand can't be served if nothing is loaded, past where one can't; undefined where that is not known. */
  readonly firstExpiryAt: () => number | undefined
  /** Cells that are backing off, by the code of their last failure. */
  readonly backoffs: () => ReadonlyMap<string, number>
  readonly catalogue: Pick<LiveCatalogue, 'generation' | 'fault'> & {
    readonly current: Pick<Catalogue, 'size' | 'checksum'>
  }
  /** Whether the newest configuration has a fault. */
  readonly configRefused: () => boolean
  /** How many settings differ from those in effect. */
  readonly configRestartNeeded: () => number
  readonly waitingCells: () => number
  /** Since the start. */
  readonly logLinesDropped: () => number
  readonly stretch: () => number
  readonly budget: () => Pick<BudgetState, 'windows' | 'closedUntil' | 'shared'>
  /** The gateways among which quotas are divided while the store is away; undefined while that is not known. */
  readonly allowanceInstances: () => number | undefined
  readonly meter: () => MeterState
  readonly store: () => Promise<StoreFacts>
  readonly storeClockOffsetMs: () => number
  /** The share of the day's limit that the key that loaded most has used; null without a limit. */
  readonly topKeyShare: () => number | null
  readonly breaker: () => BreakerState
  /** Undefined where runs are not followed or not known. */
  readonly runAvailableAt: () => number | undefined
}

const unknown = Number.NaN
const secondsOf = (ms: number | undefined): number => (ms === undefined ? unknown : ms / 1000)

/** Returns what is to be awaited before each scrape. */
export const watchGauges = (
  { gauge, gaugeBy }: Pick<Counters, 'gauge' | 'gaugeBy'>,
  gauges: Gauges,
  clock: Clock,
): (() => Promise<void>) => {
  let store: StoreFacts = { kind: 'embedded', latencyMs: null, fault: 'not read yet', size: undefined }
  const redisSize = () => (store.kind === 'redis' ? store.size : undefined)
  const states =
    <State extends string>(names: readonly State[], read: () => State) =>
    () =>
      names.map(state => [state, Number(read() === state)] as const)

  gauge(
    'abohawa_log_lines_dropped_total',
    'Lines of the log that could not be written, or that waited too long for their reader.',
    gauges.logLinesDropped,
    'counter',
  )
  gauge('abohawa_connections', 'Open connections to the API.', () => gauges.connections().open)
  gauge(
    'abohawa_connections_unauthenticated',
    'Open connections to the API on which no good key came yet.',
    () => gauges.connections().unauthenticated,
  )
  gauge(
    'abohawa_tls_certificate_expiry_timestamp_seconds',
    'When the certificate that the API serves expires; NaN where it serves plain HTTP.',
    () => secondsOf(gauges.certificateExpiresAt()),
  )
  gauge('abohawa_cache_memory_entries', 'Timelines in the memory tier.', gauges.memoryEntries)
  gauge(
    'abohawa_cache_memory_bytes',
    'Bytes that the timelines in the memory tier account for.',
    gauges.memoryBytes,
  )
  gauge(
    'abohawa_cache_time_to_first_expiry_seconds',
    'Time until the first cached cell in demand can not be served any more, and requests for it end in 500, if the provider stays away; 0 where nothing in demand is cached, NaN while none is known to be in demand.',
    () => {
      const at = gauges.firstExpiryAt()
      return secondsOf(at === undefined ? undefined : Math.max(0, at - clock.now()))
    },
  )
  gaugeBy(
    'cause',
    'abohawa_cache_backoff_cells',
    'Cells that are not loaded for a while after a failure, by the cause of the last one.',
    () => {
      const cells = new Map([...providerFailures, 'provider_circuit_open', 'other'].map(cause => [cause, 0]))
      for (const [code, count] of gauges.backoffs()) {
        const cause = cells.has(code) ? code : 'other'
        cells.set(cause, (cells.get(cause) ?? 0) + count)
      }
      return cells
    },
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
  gauge('abohawa_catalogue_places', 'Published places.', () => gauges.catalogue.current.size)
  gauge(
    'abohawa_catalogue_generation',
    'Catalogues that were in force since the start: 1, and one more for each swap.',
    gauges.catalogue.generation,
  )
  gaugeBy(
    'checksum',
    'abohawa_catalogue_info',
    'Always 1; the checksum of the catalogue in force, cut to 12 characters, is a label.',
    () => [[gauges.catalogue.current.checksum.slice(0, 12), 1]],
  )
  gauge(
    'abohawa_catalogue_faulty',
    '1 while the file of the catalogue has a fault, and an older one is in force.',
    () => Number(gauges.catalogue.fault() !== undefined),
  )
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
  gaugeBy(
    'window',
    'abohawa_provider_budget_limit',
    "The provider's limits, in weight, less what is set aside for gateways without Redis.",
    () => gauges.budget().windows.map(({ name, limit }) => [name, limit]),
  )
  gauge('abohawa_provider_budget_shared', '1 while the budget is counted over all gateways.', () =>
    Number(gauges.budget().shared),
  )
  gauge(
    'abohawa_provider_limited_until_timestamp_seconds',
    'Until when nothing is sent, because the provider said that a limit is reached; 0 while requests are sent.',
    () => (gauges.budget().closedUntil ?? 0) / 1000,
  )
  gauge(
    'abohawa_provider_top_key_share',
    'Share of the limit of the day, 0 to 1, that this gateway spent on cells of the key that loaded most today; NaN without a limit.',
    () => gauges.topKeyShare() ?? unknown,
  )
  gaugeBy(
    'state',
    'abohawa_provider_circuit',
    '1 for the state the circuit to the provider is in.',
    states(['closed', 'open', 'half-open'], gauges.breaker),
  )
  gaugeBy(
    'state',
    'abohawa_quota_counting',
    '1 for the present state of quota counting.',
    states(['counting', 'away', 'reconciling'], gauges.meter),
  )
  gaugeBy('store', 'abohawa_store_up', '1 while the store answers, pinged at each scrape.', () => [
    [store.kind, Number(store.fault === null)],
  ])
  gauge(
    'abohawa_quota_allowance_instances',
    'Gateways among which what is left of a quota is divided while the store is away; NaN while it is not known.',
    () => gauges.allowanceInstances() ?? unknown,
  )
  gauge(
    'abohawa_store_clock_offset_seconds',
    "How far the store's clock, which decides the day of quotas, is ahead of this machine's.",
    () => gauges.storeClockOffsetMs() / 1000,
  )
  gauge(
    'abohawa_redis_memory_used_bytes',
    'What Redis says it uses, on a cluster the master with least room; NaN where that is not known.',
    () => redisSize()?.usedBytes ?? unknown,
  )
  gauge(
    'abohawa_redis_memory_max_bytes',
    'The maxmemory of that Redis, 0 where it has none; NaN where that is not known.',
    () => redisSize()?.maxBytes ?? unknown,
  )
  gauge(
    'abohawa_provider_run_available_timestamp_seconds',
    'When the newest model run became available; 0 where none is known.',
    () => (gauges.runAvailableAt() ?? 0) / 1000,
  )

  return async () => {
    store = await gauges.store()
  }
}
