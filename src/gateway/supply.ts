// Where the weather comes from, put together: the provider behind its budget and its breaker, the runs it is made of,
// and the timelines that are kept of it. The one place that says which protocol the provider speaks.

import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { longestUseMs } from '../cache/freshness.ts'
import { createCalendar } from '../calendar.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { type Breaker, createBreaker } from '../provider/breaker.ts'
import { type Budget, createBudget } from '../provider/budget.ts'
import { createProvider, type Provider } from '../provider/client.ts'
import { createOpenMeteo } from '../provider/open-meteo/protocol.ts'
import type { ProviderProtocol } from '../provider/protocol.ts'
import { createProviderCall } from '../provider/provider-call.ts'
import { createRunWatch, type RunWatch } from '../provider/runs.ts'
import type { Store } from '../stores/store.ts'
import { questionOf } from '../timelines/question.ts'
import { createTimelines, type Timelines } from '../timelines/timelines.ts'
import { type Cell, createGrid, type Grid } from '../weather/cell.ts'
import { type Horizon, horizonFor } from '../weather/horizon.ts'
import type { SupplyObserver } from './observers.ts'

export type Supply = {
  readonly grid: Grid
  readonly timelines: Timelines
  readonly provider: Provider
  readonly budget: Budget
  readonly protocol: ProviderProtocol
  readonly breaker: Breaker
  /** Undefined where freshness does not go by runs. */
  readonly runs: RunWatch | undefined
  /** Learns what it has to know before the first answer; bounded in time. */
  start(): Promise<{ warmed: number; wanted: number }>
  close(): Promise<void>
}

export type SupplyParts = {
  readonly store: Store
  readonly catalogue: () => Catalogue
  readonly clock: Clock
  /** How many instances there are at the most; undefined while that is not known. */
  readonly instances: () => number | undefined
  readonly observer: SupplyObserver
}

/** How much of the future a gateway of this configuration asks for. */
export const horizonOf = ({ cache, weather }: Config): Horizon =>
  horizonFor(longestUseMs(cache), weather.hourlyHours)

// The centre of a cell on the edge may lie outside the bounds.
const mostCellsIn = ({ catalogue: { bounds }, cache: { cellDegrees } }: Config): number =>
  (Math.ceil((bounds.north - bounds.south) / cellDegrees) + 2) *
  (Math.ceil((bounds.east - bounds.west) / cellDegrees) + 2)

/** The protocol in which a gateway of this configuration asks. */
const protocolIn = (config: Config): ProviderProtocol =>
  createOpenMeteo({ horizon: horizonOf(config), calendar: createCalendar(config.quota.timeZone) })

/** The name of what a gateway of this configuration asks: cached timelines of another are not its own. */
export const questionIn = (config: Config): string => questionOf(config.provider.baseUrl, protocolIn(config))

export const openSupply = (
  config: Config,
  { store, catalogue, clock, instances, observer }: SupplyParts,
): Supply => {
  const { cache } = config
  const horizon = horizonOf(config)
  const calendar = createCalendar(config.quota.timeZone)
  const protocol = protocolIn(config)
  const grid = createGrid(cache.cellDegrees)
  const call = createProviderCall(config.provider, { protocol, clock })
  const breaker = createBreaker(config.provider.breaker, clock, state => {
    observer.breaker(state)
    if (state === 'closed') timelines.providerIsBack()
  })
  const { perMinute, perHour, perDay, reserve } = config.provider.budget
  const budget = createBudget(
    {
      provider: hash('sha256', `${config.provider.baseUrl} ${config.provider.apiKey}`).slice(0, 12),
      limits: { minute: perMinute, hour: perHour, day: perDay },
      reserve,
      unit: protocol.weightPerCell,
      weightOfFailure: protocol.weightOfFailure,
      longestRequestMs: config.provider.totalTimeoutMs,
      instances,
    },
    { store, clock, observer },
  )
  const provider = createProvider(
    // Half of what a consumer waits for the budget's next window, half for the answer.
    { ...config.provider, queueForMs: cache.waitForMs / 2 },
    { call, protocol, breaker, budget, clock, observer },
  )
  const runs =
    cache.freshness === 'run'
      ? createRunWatch(config.provider.runs, { call, protocol, clock, observer })
      : undefined
  const timelines = createTimelines(
    {
      ...cache,
      refusedForMs: config.provider.refusedForMs,
      batch: config.provider.maxPointsPerRequest,
      mostCells: mostCellsIn(config),
      weightPerLoad: protocol.weightPerCell,
      question: questionOf(config.provider.baseUrl, protocol),
      horizon,
    },
    {
      provider,
      breaker,
      store,
      grid,
      standing:
        cache.prefetch === 'population' ? mostPopulous(catalogue, grid, cache.prefetchPlaces) : () => [],
      recentRuns: () => runs?.recent() ?? [],
      stretch: budget.stretch,
      calendar,
      clock,
      observer: {
        ...observer,
        pulsed: seen => {
          observer.pulsed(seen)
          void budget.reconcile()
        },
        // A gateway that spends nothing notices too that the store is away, and from when on it counts for itself.
        heartbeatFailed: () => void budget.reconcile(),
      },
    },
  )

  return {
    grid,
    timelines,
    provider,
    budget,
    protocol,
    breaker,
    runs,
    start: async () => {
      // Neither a provider nor a store that hangs keeps the gateway from being ready.
      const patience = new AbortController()
      await Promise.race([
        Promise.all([runs?.poll(), budget.reconcile()]),
        pause(cache.warmForMs, undefined, { signal: patience.signal }),
      ])
      patience.abort()
      return timelines.start(cache.warmForMs)
    },
    close: async () => {
      await timelines.close()
      runs?.close()
      provider.close()
      await call.close()
    },
  }
}

// The cells of the places with the most people, most first; worked out again when the catalogue changes.
const mostPopulous = (catalogue: () => Catalogue, grid: Grid, places: number): (() => readonly Cell[]) => {
  let from: Catalogue | undefined
  let cells: readonly Cell[] = []
  return () => {
    const current = catalogue()
    if (current !== from) {
      const chosen = current
        .all()
        .toSorted((a, b) => b.population - a.population)
        .slice(0, places)
        .map(({ latitude, longitude }) => grid.cellOf(latitude, longitude))
      cells = [...new Map(chosen.map(cell => [cell.id, cell])).values()]
      from = current
    }
    return cells
  }
}
