// Composes the upstream: the provider behind its budget and circuit breaker, the watch of model runs, and the cached
// timelines. The one place that chooses the provider's protocol.

import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { longestUseMs } from '../cache/freshness.ts'
import { createCalendar } from '../calendar.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Bounds } from '../catalogue/location-schema.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { type Breaker, createBreaker } from '../provider/breaker.ts'
import { type Budget, type BudgetSettings, createBudget } from '../provider/budget.ts'
import { createProvider, type Provider, type ProviderOptions } from '../provider/client.ts'
import { createLastRequests, type LastRequests } from '../provider/last-requests.ts'
import { createOpenMeteo } from '../provider/open-meteo/protocol.ts'
import { createPassthrough, type Passthrough } from '../provider/passthrough.ts'
import type { ProviderProtocol } from '../provider/protocol.ts'
import { createProviderCall, type ProviderCall } from '../provider/provider-call.ts'
import { createRunWatch, type RunWatch } from '../provider/runs.ts'
import type { LedgerParts } from '../provider/spending-ledger.ts'
import type { Store } from '../stores/store.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import { namespaceOf } from '../timelines/cache-namespace.ts'
import { createTimelines, type Timelines, type TimelinesParts } from '../timelines/timelines.ts'
import { type Cell, createGrid, type Grid } from '../weather/cell.ts'
import { type Horizon, horizonFor } from '../weather/horizon.ts'
import { createLoadsByKey, type LoadsByKey } from './loads-by-key.ts'
import { mostPopulous } from './most-populous.ts'
import type { UpstreamObserver } from './observer.ts'

export type Upstream = {
  readonly grid: Grid
  readonly timelines: Timelines
  readonly provider: Provider
  readonly budget: Budget
  readonly passthrough: Passthrough
  readonly breaker: Breaker
  readonly lastRequests: LastRequests
  /** The cells that were loaded for each key. */
  readonly loads: Pick<LoadsByKey, 'all' | 'topShare'>
  /** Undefined when `cache.freshness` is `age`. */
  readonly runs: RunWatch | undefined
  /** Reads runs, budget and cached timelines before the first request; bounded in time. */
  start(): Promise<{ warmed: number; wanted: number }>
  /** The budget from now on. */
  applyBudget(config: Config): void
  /** Freshness and staleness from now on, for what is cached too. */
  applyFreshness(config: Config): void
  close(): Promise<void>
}

export type UpstreamParts = {
  readonly store: Store
  readonly catalogue: { readonly current: Catalogue }
  readonly clock: Clock
  /** The largest possible number of instances; undefined while it is unknown. */
  readonly instances: () => number | undefined
  /** The hash of the settings in effect that all instances should have in common. */
  readonly settings: () => string
  /** The text of the instance's report of itself. */
  readonly report: () => string
  readonly observer: UpstreamObserver
  /** Undefined where requests are not traced. */
  readonly tracing?: Pick<Tracing, 'call'> | undefined
  /** The stand-ins of tools for the provider's HTTP and the bytes of the shared tier; a gateway has none. */
  readonly standIns?: StandIns | undefined
}

/** Parts of an upstream that sends nothing: its own rules, weights and batches, and timelines that are made at once. */
export type StandIns = {
  readonly call: ProviderCall
  readonly protocol: Pick<ProviderProtocol, 'decode' | 'runs'>
  readonly codec: TimelinesParts['codec']
}

/** How far ahead a gateway of this configuration requests weather. */
export const horizonOf = ({ cache, weather }: Config): Horizon =>
  horizonFor(longestUseMs(cache), weather.hourlyHours)

// The centre of a cell on the edge may lie outside the bounds.
const maxCellsIn = (bounds: Bounds, cellDegrees: number): number =>
  (Math.ceil((bounds.north - bounds.south) / cellDegrees) + 2) *
  (Math.ceil((bounds.east - bounds.west) / cellDegrees) + 2)

/** The provider's protocol under this configuration. */
export const protocolIn = (config: Config): ProviderProtocol =>
  createOpenMeteo({ horizon: horizonOf(config), calendar: createCalendar(config.quota.timeZone) })

/** The cache namespace of this configuration. */
export const cacheNamespaceIn = (config: Config): string =>
  namespaceOf(config.provider.baseUrl, protocolIn(config))

/**
 * The limits of an account at the provider that need a restart, because they came with another host or key, which do: no
 * account is asked under the limits of another.
 */
export const ofAnotherAccount = (
  { provider: started }: Config,
  { provider: next }: Config,
): readonly string[] =>
  next.baseUrl === started.baseUrl && next.apiKey === started.apiKey
    ? []
    : ['perMinute', 'perHour', 'perDay'].map(name => `provider.budget.${name}`)

/** The budget that gateways of this configuration share, by the account at the provider. */
export const budgetSettingsIn = ({
  provider: { baseUrl, apiKey, budget, totalTimeoutMs },
  redis,
  server,
}: Config): BudgetSettings => ({
  provider: hash('sha256', `${baseUrl} ${apiKey}`).slice(0, 12),
  limits: { minute: budget.perMinute, hour: budget.perHour, day: budget.perDay },
  reserve: budget.reserve,
  consumerShare: budget.keyShare,
  outageShare: redis.url === null && server.workers === 1 ? null : budget.outageShare,
  longestRequestMs: totalTimeoutMs,
})

// Half of `cache.waitFor` for the budget's next window, half for the provider's response.
const providerOptionsIn = ({ provider, cache }: Config): ProviderOptions => ({
  ...provider,
  queueForMs: cache.waitForMs / 2,
})

/** The budget of this configuration's account at the provider. */
export const openBudget = (
  config: Config,
  { instances, ...parts }: LedgerParts & Pick<UpstreamParts, 'instances'>,
): Budget => {
  const { weightPerCell, weightOfFailure } = protocolIn(config)
  return createBudget({ ...budgetSettingsIn(config), unit: weightPerCell, weightOfFailure, instances }, parts)
}

export const openUpstream = (
  config: Config,
  { store, catalogue, clock, instances, settings, report, observer: given, tracing, standIns }: UpstreamParts,
): Upstream => {
  const lastRequests = createLastRequests(clock)
  const observer: UpstreamObserver = {
    ...given,
    request: (outcome, points, ms, message) => {
      lastRequests.record(outcome, message)
      given.request(outcome, points, ms, message)
    },
    loaded: keyId => {
      loads.record(keyId)
      given.loaded(keyId)
    },
  }
  const { cache } = config
  const { bounds } = catalogue.current
  const calendar = createCalendar(config.quota.timeZone)
  // How far a request reaches is live; its body is checked against what it asked for.
  let fetching = protocolIn(config)
  const sentWith = new WeakMap<readonly Cell[], ProviderProtocol>()
  const protocol: ProviderProtocol = {
    ...fetching,
    requestFor: cells => {
      sentWith.set(cells, fetching)
      return fetching.requestFor(cells)
    },
    decode: (body, requested) => (sentWith.get(requested.cells) ?? fetching).decode(body, requested),
    ...standIns?.protocol,
  }
  const grid = createGrid(cache.cellDegrees, bounds)
  const plainCall = standIns?.call ?? createProviderCall(config.provider, { protocol, clock })
  const call = tracing?.call(plainCall, config.provider.baseUrl) ?? plainCall
  const breaker = createBreaker(config.provider.breaker, clock, state => {
    observer.breaker(state)
    if (state === 'closed') timelines.endBackoff()
  })
  const budget = openBudget(config, { store, clock, instances, observer })
  const loads = createLoadsByKey({
    now: clock.now,
    weightPerCell: protocol.weightPerCell,
    limitOfDay: () => budget.state().windows.find(({ name }) => name === 'day')?.limit,
  })
  const provider = createProvider(providerOptionsIn(config), {
    call,
    protocol,
    breaker,
    budget,
    recentConsumers: () => timelines.recentConsumers(),
    clock,
    observer,
  })
  const account = budgetSettingsIn(config).provider
  const passthrough = createPassthrough(() => config.provider.totalTimeoutMs, {
    call,
    inTurn: provider.inTurn,
    protocol,
    breaker,
    budget,
    clock,
    observer,
  })
  const runs =
    cache.freshness === 'run'
      ? createRunWatch(config.provider.runs, { call, protocol, clock, observer })
      : undefined
  const pinned = cache.prefetchPlaces > 0 ? mostPopulous(catalogue, grid, cache.prefetchPlaces) : () => []
  const timelines = createTimelines(
    {
      ...cache,
      refusedForMs: config.provider.refusedForMs,
      batch: config.provider.maxPointsPerRequest,
      freshness: cache.freshness,
      memoryBytes: cache.memoryBytes,
      maxCells: maxCellsIn(bounds, cache.cellDegrees),
      weightPerLoad: protocol.weightPerCell,
      namespace: namespaceOf(config.provider.baseUrl, protocol),
      hourlyHours: config.weather.hourlyHours,
    },
    {
      provider,
      breaker,
      store,
      grid,
      pinned,
      recentRuns: () => runs?.recent() ?? [],
      stretch: budget.stretch,
      isLimitLifted: budget.isLifted,
      account: () => account,
      settings,
      report,
      calendar,
      clock,
      codec: standIns?.codec,
      observer: {
        ...observer,
        onHeartbeat: fleet => {
          observer.onHeartbeat(fleet)
          void budget.reconcile()
        },
        // So that a gateway that sends no requests also switches to its local budget when the store is unavailable.
        onHeartbeatFailure: () => void budget.reconcile(),
      },
    },
  )

  return {
    grid,
    timelines,
    provider,
    budget,
    passthrough,
    breaker,
    lastRequests,
    loads,
    runs,
    start: async () => {
      // A provider or store that hangs must not keep the gateway from becoming ready.
      const timeout = new AbortController()
      await Promise.race([
        Promise.all([runs?.poll(), budget.reconcile()]),
        pause(cache.warmForMs, undefined, { signal: timeout.signal }),
      ])
      timeout.abort()
      return timelines.start(cache.warmForMs)
    },
    applyBudget: next => {
      budget.apply(budgetSettingsIn(next))
      provider.budgetChanged()
    },
    applyFreshness: next => {
      fetching = protocolIn(next)
      timelines.apply(next.cache)
    },
    close: async () => {
      await timelines.close()
      runs?.close()
      const ended = provider.close()
      await call.close()
      await ended
      await budget.end()
    },
  }
}
