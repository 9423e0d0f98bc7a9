// Composes the upstream: the account at the provider, and the cached timelines over it.

import { setTimeout as pause } from 'node:timers/promises'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Bounds } from '../catalogue/location-schema.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { createLoadsByKey, type LoadsByKey } from '../keys/loads-by-key.ts'
import {
  type Account,
  type AccountObserver,
  type AccountStandIns,
  openAccount,
  protocolIn,
} from '../provider/account.ts'
import type { TracedCall } from '../provider/provider-call.ts'
import type { Store } from '../stores/store.ts'
import { type Cell, createGrid, type Grid } from '../weather/cell.ts'
import { namespaceOf } from './entry-codec.ts'
import { createTimelines, type Timelines, type TimelinesObserver, type TimelinesParts } from './timelines.ts'

export type UpstreamObserver = Omit<TimelinesObserver, 'onHeartbeatFailure'> & AccountObserver

export type Upstream = {
  readonly grid: Grid
  readonly timelines: Timelines
  /** The account that all weather comes from. */
  readonly account: Account
  /** The cells that were loaded for each key. */
  readonly loads: Pick<LoadsByKey, 'all' | 'topShare'>
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
  readonly tracing?: TracedCall | undefined
  /** The stand-ins of tools for the provider's HTTP and the bytes of the shared tier; a gateway has none. */
  readonly standIns?: StandIns | undefined
}

/** Parts of an upstream that sends nothing: its own rules, weights and batches, and timelines that are made at once. */
export type StandIns = AccountStandIns & {
  readonly codec: TimelinesParts['codec']
}

// The centre of a cell on the edge may lie outside the bounds.
const maxCellsIn = (bounds: Bounds, cellDegrees: number): number =>
  (Math.ceil((bounds.north - bounds.south) / cellDegrees) + 2) *
  (Math.ceil((bounds.east - bounds.west) / cellDegrees) + 2)

/**
 * The cells of the most populous places, largest first, which are kept warm without demand. Computes them again when the
 * catalogue changes. @param places how many
 */
export const mostPopulous = (
  catalogue: { readonly current: Catalogue },
  grid: Grid,
  places: number,
): (() => readonly Cell[]) => {
  let from: Catalogue | undefined
  let cells: readonly Cell[] = []
  return () => {
    const { current } = catalogue
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

/** The cache namespace of this configuration. */
export const cacheNamespaceIn = (config: Config): string =>
  namespaceOf(config.provider.baseUrl, protocolIn(config))

export const openUpstream = (
  config: Config,
  { store, catalogue, clock, instances, settings, report, observer: given, tracing, standIns }: UpstreamParts,
): Upstream => {
  const observer: UpstreamObserver = {
    ...given,
    loaded: keyId => {
      loads.record(keyId)
      given.loaded(keyId)
    },
    breaker: state => {
      given.breaker(state)
      if (state === 'closed') timelines.endBackoff()
    },
  }
  const { cache } = config
  const { bounds } = catalogue.current
  const grid = createGrid(cache.cellDegrees, bounds)
  const account = openAccount(config, {
    store,
    clock,
    instances,
    recentConsumers: () => timelines.recentConsumers(),
    observer,
    tracing,
    standIns,
  })
  const { protocol, budget, runs } = account
  const loads = createLoadsByKey({
    now: clock.now,
    weightPerCell: protocol.weightPerCell,
    limitOfDay: () => budget.state().windows.find(({ name }) => name === 'day')?.limit,
  })
  const pinned = cache.prefetchPlaces > 0 ? mostPopulous(catalogue, grid, cache.prefetchPlaces) : () => []
  const timelines = createTimelines(config, {
    account,
    store,
    grid,
    maxCells: maxCellsIn(bounds, cache.cellDegrees),
    pinned,
    settings,
    report,
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
  })

  return {
    grid,
    timelines,
    account,
    loads,
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
    applyBudget: account.applyBudget,
    applyFreshness: next => {
      account.applyHorizon(next)
      timelines.apply(next.cache)
    },
    close: async () => {
      await timelines.close()
      await account.close()
    },
  }
}
