// The gauges that are read at each scrape, from the parts that know. What is not known has no number: NaN, for which no
// comparison of an alert holds. Events are counted in metrics.ts.

import type { Timelines } from '../cache/upstream.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { LiveCatalogue } from '../catalogue/live-catalogue.ts'
import type { Clock } from '../common/clock.ts'
import type { Reload } from '../config/reload.ts'
import type { LoadsByKey } from '../keys/loads-by-key.ts'
import type { Meter } from '../keys/meter.ts'
import type { Metering } from '../keys/metering.ts'
import type { Breaker } from '../provider/breaker.ts'
import type { Budget } from '../provider/budget.ts'
import type { Provider } from '../provider/client.ts'
import type { RunWatch } from '../provider/runs.ts'
import type { Counters } from './counters.ts'
import { providerFailures } from './label-values.ts'
import type { StoreFacts } from './store-watch.ts'

/** The parts that are read at each scrape. */
export type Gauges = {
  readonly api: {
    connections(): { readonly open: number; readonly unauthenticated: number }
    /** Ms since the epoch; undefined without TLS. */
    certificateExpiresAt(): number | undefined
  }
  readonly upstream: {
    readonly timelines: Pick<Timelines, 'cached' | 'firstExpiryAt' | 'backoffs' | 'stretch'>
    readonly account: {
      readonly provider: Pick<Provider, 'waiting'>
      readonly budget: Pick<Budget, 'state'>
      readonly breaker: Pick<Breaker, 'state'>
      readonly runs: Pick<RunWatch, 'newestRead'> | undefined
    }
  }
  readonly loads: Pick<LoadsByKey, 'topShare'>
  readonly catalogue: Pick<LiveCatalogue, 'fault' | 'generation'> & {
    readonly current: Pick<Catalogue, 'size' | 'checksum'>
  }
  readonly reload: Pick<Reload, 'fault' | 'restartNeeded'>
  readonly metering: Pick<Metering, 'instances'> & {
    readonly meter: Pick<Meter, 'state'>
    readonly storeClock: Pick<Metering['storeClock'], 'offsetMs'>
  }
  readonly storeFacts: () => Promise<StoreFacts>
  /** Since the start. */
  readonly logLinesDropped: () => number
}

const unknown = Number.NaN
const secondsOf = (ms: number | undefined): number => (ms === undefined ? unknown : ms / 1000)

type Watch = Pick<Counters, 'gauge' | 'gaugeBy'>

const states =
  <State extends string>(names: readonly State[], read: () => State) =>
  () =>
    names.map(state => [state, Number(read() === state)] as const)

/** Returns what is to be awaited before each scrape. */
export const watchGauges = (watch: Watch, parts: Gauges, clock: Clock): (() => Promise<void>) => {
  watchService(watch, parts)
  watchCache(watch, parts, clock)
  watchProvider(watch, parts)
  return watchStore(watch, parts)
}

const watchService = (
  { gauge, gaugeBy }: Watch,
  { api, catalogue, reload, logLinesDropped }: Gauges,
): void => {
  gauge(
    'abohawa_log_lines_dropped_total',
    'Lines of the log that could not be written, or that waited too long for their reader.',
    logLinesDropped,
    'counter',
  )
  gauge('abohawa_connections', 'Open connections to the API.', () => api.connections().open)
  gauge(
    'abohawa_connections_unauthenticated',
    'Open connections to the API on which no good key came yet.',
    () => api.connections().unauthenticated,
  )
  gauge(
    'abohawa_tls_certificate_expiry_timestamp_seconds',
    'When the first certificate of the chain that the API serves expires; NaN where it serves plain HTTP.',
    () => secondsOf(api.certificateExpiresAt()),
  )
  gauge(
    'abohawa_config_refused',
    '1 while the newest configuration is not in effect because of a fault.',
    () => Number(reload.fault() !== undefined),
  )
  gauge(
    'abohawa_config_restart_needed',
    'Settings that differ from those in effect until the next start.',
    () => reload.restartNeeded().length,
  )
  gauge('abohawa_catalogue_places', 'Published places.', () => catalogue.current.size)
  gauge(
    'abohawa_catalogue_generation',
    'Catalogues that were in force since the start: 1, and one more for each swap.',
    catalogue.generation,
  )
  gaugeBy(
    'checksum',
    'abohawa_catalogue_info',
    'Always 1; the checksum of the catalogue in force, cut to 12 characters, is a label.',
    () => [[catalogue.current.checksum.slice(0, 12), 1]],
  )
  gauge(
    'abohawa_catalogue_faulty',
    '1 while the file of the catalogue has a fault, and an older one is in force.',
    () => Number(catalogue.fault() !== undefined),
  )
}

const watchCache = ({ gauge, gaugeBy }: Watch, { upstream: { timelines } }: Gauges, clock: Clock): void => {
  gauge('abohawa_cache_memory_entries', 'Timelines in the memory tier.', () => timelines.cached().entries)
  gauge(
    'abohawa_cache_memory_bytes',
    'Bytes that the timelines in the memory tier account for.',
    () => timelines.cached().bytes,
  )
  gauge(
    'abohawa_cache_time_to_first_expiry_seconds',
    "Time until the first cached cell in demand can't be served any more, and requests for it end in 500, if the provider stays away; 0 where nothing in demand is cached, NaN while none is known to be in demand.",
    () => {
      // A page at night is for what runs out; a point that was never cached has errors whatever the cache holds.
      const at = timelines.firstExpiryAt('cached')
      return secondsOf(at === undefined ? undefined : Math.max(0, at - clock.now()))
    },
  )
  gaugeBy(
    'cause',
    'abohawa_cache_backoff_cells',
    'Cells that are not loaded for a while after a failure, by the cause of the last one.',
    () => {
      const cells = new Map([...providerFailures, 'provider_circuit_open', 'other'].map(cause => [cause, 0]))
      for (const [code, count] of timelines.backoffs()) {
        const cause = cells.has(code) ? code : 'other'
        cells.set(cause, (cells.get(cause) ?? 0) + count)
      }
      return cells
    },
  )
  gauge(
    'abohawa_cache_freshness_stretch',
    'How many times longer than configured weather stays fresh, so that the budget of the day suffices.',
    timelines.stretch,
  )
}

const watchProvider = ({ gauge, gaugeBy }: Watch, { upstream, loads }: Gauges): void => {
  const { provider, budget, breaker, runs } = upstream.account
  gauge(
    'abohawa_provider_waiting_cells',
    'Cells that wait for a request to the provider with room.',
    provider.waiting,
  )
  gaugeBy(
    'window',
    'abohawa_provider_budget_used',
    "Weight spent in the running window of the provider's limits, over all gateways.",
    () => budget.state().windows.map(({ name, used }) => [name, used]),
  )
  gaugeBy(
    'window',
    'abohawa_provider_budget_limit',
    "The provider's limits, in weight, less what is set aside for gateways without Redis.",
    () => budget.state().windows.map(({ name, limit }) => [name, limit]),
  )
  gauge('abohawa_provider_budget_shared', '1 while the budget is counted over all gateways.', () =>
    Number(budget.state().shared),
  )
  gauge(
    'abohawa_provider_limited_until_timestamp_seconds',
    'Until when nothing is sent, because the provider said that a limit is reached; 0 while requests are sent.',
    () => (budget.state().closedUntil ?? 0) / 1000,
  )
  gauge(
    'abohawa_provider_top_key_share',
    'Share of the limit of the day, 0 to 1, that this gateway spent on cells of the key that loaded most today; NaN without a limit.',
    () => loads.topShare() ?? unknown,
  )
  gaugeBy(
    'state',
    'abohawa_provider_circuit',
    '1 for the state the circuit to the provider is in.',
    states(['closed', 'open', 'half-open'], () => breaker.state().state),
  )
  gauge(
    'abohawa_provider_run_available_timestamp_seconds',
    'When the newest model run that was read became available; 0 where none was read.',
    () => (runs?.newestRead()?.availableAt ?? 0) / 1000,
  )
}

/** Also of the quotas, which the store counts. Returns what reads the store. */
const watchStore = ({ gauge, gaugeBy }: Watch, { metering, storeFacts }: Gauges): (() => Promise<void>) => {
  let store: StoreFacts = { kind: 'embedded', latencyMs: null, fault: 'not read yet', size: undefined }
  const redisSize = () => (store.kind === 'redis' ? store.size : undefined)
  const eviction = () => redisSize()?.eviction
  gaugeBy(
    'state',
    'abohawa_quota_counting',
    '1 for the present state of quota counting.',
    states(['counting', 'away', 'reconciling'], () => metering.meter.state()),
  )
  gaugeBy('store', 'abohawa_store_up', '1 while the store answers, pinged at each scrape.', () => [
    [store.kind, Number(store.fault === null)],
  ])
  gauge(
    'abohawa_quota_allowance_instances',
    'Gateways among which what is left of a quota is divided while the store is away; NaN while it is not known.',
    () => metering.instances() ?? unknown,
  )
  gauge(
    'abohawa_store_clock_offset_seconds',
    "How far the store's clock, which decides the day of quotas, is ahead of this machine's.",
    () => metering.storeClock.offsetMs() / 1000,
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
    'abohawa_redis_evicts_keys',
    '1 while the maxmemory-policy of Redis lets it evict API keys; NaN where that is not known.',
    () => Number(eviction()?.takesKeys ?? unknown),
  )
  gauge(
    'abohawa_redis_evicted_records',
    'Records of any kind that Redis evicted since it started, on a cluster all masters; NaN where that is not known.',
    () => eviction()?.evicted ?? unknown,
  )
  return async () => {
    store = await storeFacts()
  }
}
