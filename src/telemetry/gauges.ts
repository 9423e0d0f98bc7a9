// The gauges that are read from the parts of the gateway at each scrape. An unknown value is NaN, for which no comparison of an alert
// holds.

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
  const readExpiry = watchCache(watch, parts, clock)
  watchProvider(watch, parts)
  const readStore = watchStore(watch, parts)
  return async () => {
    await Promise.all([readExpiry(), readStore()])
  }
}

const watchService = (
  { gauge, gaugeBy }: Watch,
  { api, catalogue, reload, logLinesDropped }: Gauges,
): void => {
  gauge(
    'abohawa_log_lines_dropped_total',
    'Log lines lost because of a failed write or a slow reader.',
    logLinesDropped,
    'counter',
  )
  gauge('abohawa_connections', 'Open connections to the API.', () => api.connections().open)
  gauge(
    'abohawa_connections_unauthenticated',
    'Open connections to the API without a valid key so far.',
    () => api.connections().unauthenticated,
  )
  gauge(
    'abohawa_tls_certificate_expiry_timestamp_seconds',
    'First expiry in the served certificate chain; NaN for plain HTTP.',
    () => secondsOf(api.certificateExpiresAt()),
  )
  gauge('abohawa_config_refused', '1 while a changed configuration is refused because of a fault.', () =>
    Number(reload.fault() !== undefined),
  )
  gauge(
    'abohawa_config_restart_needed',
    'Changed settings that wait for a restart.',
    () => reload.restartNeeded().length,
  )
  gauge('abohawa_catalogue_places', 'Published places.', () => catalogue.current.size)
  gauge(
    'abohawa_catalogue_generation',
    'Catalogues used since the start: 1 plus one for each reload.',
    catalogue.generation,
  )
  gaugeBy(
    'checksum',
    'abohawa_catalogue_info',
    "Always 1; the label has the catalogue's checksum (12 characters).",
    () => [[catalogue.current.checksum.slice(0, 12), 1]],
  )
  gauge('abohawa_catalogue_faulty', '1 while a faulty catalogue file is refused.', () =>
    Number(catalogue.fault() !== undefined),
  )
}

const watchCache = (
  { gauge, gaugeBy }: Watch,
  { upstream: { timelines } }: Gauges,
  clock: Clock,
): (() => Promise<void>) => {
  let firstExpiryAt: number | undefined
  gauge('abohawa_cache_memory_entries', 'Timelines in the memory tier.', () => timelines.cached().entries)
  gauge(
    'abohawa_cache_memory_bytes',
    'Bytes of the timelines in the memory tier.',
    () => timelines.cached().bytes,
  )
  gauge(
    'abohawa_cache_time_to_first_expiry_seconds',
    'Time until the first cached cell in demand expires without the provider; see above.',
    () => secondsOf(firstExpiryAt === undefined ? undefined : Math.max(0, firstExpiryAt - clock.now())),
  )
  gaugeBy('cause', 'abohawa_cache_backoff_cells', 'Cells in backoff after a failed load, by cause.', () => {
    const cells = new Map([...providerFailures, 'provider_circuit_open', 'other'].map(cause => [cause, 0]))
    for (const [code, count] of timelines.backoffs()) {
      const cause = cells.has(code) ? code : 'other'
      cells.set(cause, (cells.get(cause) ?? 0) + count)
    }
    return cells
  })
  gauge(
    'abohawa_cache_freshness_stretch',
    'How many times longer weather stays fresh, to save the daily budget.',
    timelines.stretch,
  )
  return async () => {
    // Only cached cells can run out; a cell that was never cached has errors anyway.
    firstExpiryAt = await timelines.firstExpiryAt('cached')
  }
}

const watchProvider = ({ gauge, gaugeBy }: Watch, { upstream, loads }: Gauges): void => {
  const { provider, budget, breaker, runs } = upstream.account
  gauge('abohawa_provider_waiting_cells', 'Cells that wait for a provider request.', provider.waiting)
  gaugeBy('window', 'abohawa_provider_budget_used', 'Weight spent in the current window, by the fleet.', () =>
    budget.state().windows.map(({ name, used }) => [name, used]),
  )
  gaugeBy(
    'window',
    'abohawa_provider_budget_limit',
    'Weight limit of a window, without the outage share.',
    () => budget.state().windows.map(({ name, limit }) => [name, limit]),
  )
  gauge('abohawa_provider_budget_shared', '1 while the fleet counts the budget together.', () =>
    Number(budget.state().shared),
  )
  gauge(
    'abohawa_provider_limited_until_timestamp_seconds',
    'End of the closure after a 429 of the provider; 0 when open.',
    () => (budget.state().closedUntil ?? 0) / 1000,
  )
  gauge(
    'abohawa_provider_top_key_share',
    'Daily budget share (0 to 1) that this gateway spent on its heaviest key; NaN without a limit.',
    () => loads.topShare() ?? unknown,
  )
  gaugeBy(
    'state',
    'abohawa_provider_circuit',
    '1 for the current state of the circuit to the provider.',
    states(['closed', 'open', 'half-open'], () => breaker.state().state),
  )
  gauge(
    'abohawa_provider_run_available_timestamp_seconds',
    'When the newest known model run became available.',
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
    '1 for the current state of quota counting.',
    states(['counting', 'away', 'reconciling'], () => metering.meter.state()),
  )
  gaugeBy('store', 'abohawa_store_up', '1 while the store answers a ping.', () => [
    [store.kind, Number(store.fault === null)],
  ])
  gauge(
    'abohawa_quota_allowance_instances',
    'Gateways that share each remaining quota in a store outage.',
    () => metering.instances() ?? unknown,
  )
  gauge(
    'abohawa_store_clock_offset_seconds',
    "How far the store's clock is ahead of this machine's.",
    () => metering.storeClock.offsetMs() / 1000,
  )
  gauge(
    'abohawa_redis_memory_used_bytes',
    'Memory that Redis uses; in a cluster, of the fullest master.',
    () => redisSize()?.usedBytes ?? unknown,
  )
  gauge(
    'abohawa_redis_memory_max_bytes',
    'maxmemory of that Redis; 0 for none.',
    () => redisSize()?.maxBytes ?? unknown,
  )
  gauge('abohawa_redis_evicts_keys', '1 while the maxmemory-policy lets Redis evict API keys.', () =>
    Number(eviction()?.takesKeys ?? unknown),
  )
  gauge(
    'abohawa_redis_evicted_records',
    'Records evicted by Redis since its start, by all masters.',
    () => eviction()?.evicted ?? unknown,
  )
  return async () => {
    store = await storeFacts()
  }
}
