// The upstream: the accounts at providers, and the timelines of grid cells, cached in two tiers. Makes the parts of the cache and connects
// them.

import { setTimeout as pause } from 'node:timers/promises'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { createCalendar, hourMs } from '../common/calendar.ts'
import { codeOf } from '../common/errors.ts'
import type { Config } from '../config/schema.ts'
import {
  type AccountObserver,
  type AccountParts,
  type AccountStubs,
  type Accounts,
  type OpenUpstream,
  openAccounts,
} from '../provider/accounts.ts'
import { cellCodes, ShareUsedUpError } from '../provider/errors.ts'
import type { Next } from '../provider/failover.ts'
import type { Store } from '../stores/store.ts'
import { type Cell, createGrid } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import { startBackground } from './background.ts'
import type { CacheObserver, CacheParts } from './cache-parts.ts'
import { createDemand } from './demand.ts'
import { createTimelineCodec, entryOf, keyFor, namespaceOf } from './entry-codec.ts'
import { createFailures, createUncached } from './failures.ts'
import { createFleetDemand, type FleetDemand, warmCells } from './fleet-demand.ts'
import { createFleetSingleFlight } from './fleet-single-flight.ts'
import { freshnessOf } from './freshness.ts'
import type { Fleet } from './heartbeat.ts'
import { createInspection } from './inspection.ts'
import { openSharedTier } from './namespaces.ts'
import { mostPopulous } from './pinned-cells.ts'
import { createPurgeReader, createPurges, type PurgeObserver, type Purges } from './purges.ts'
import { ReadThrough } from './read-through.ts'
import { createRefreshAhead } from './refresh-ahead.ts'
import { type Codec, createMemoryTier, type SharedTierObserver } from './tiers.ts'
import { createUpstreamFreshness } from './upstream-freshness.ts'

export type UpstreamObserver = AccountObserver &
  CacheObserver &
  SharedTierObserver &
  PurgeObserver & {
    onHeartbeat(fleet: Fleet): void
    /** What happens at a fallback; as at the first upstream where absent. @param name the fallback's */
    readonly ofFallback?: ((name: string) => Omit<AccountObserver, 'loaded'>) | undefined
    /** A cell was loaded. @param upstream its name; undefined where there is one */
    onLoaded?(upstream: string | undefined): void
    /** From now on another one of several upstreams loads, or none; not called for the first one at a start. */
    onNextUpstream?(next: Next<Pick<OpenUpstream, 'name'>>): void
  }

export type UpstreamParts = Pick<AccountParts, 'clock' | 'instances'> & {
  readonly store: Store
  readonly catalogue: { readonly current: Catalogue }
  /** A short hash of the settings in effect that all instances should have in common. */
  readonly settings: () => string
  /** The text of the instance's report of itself. */
  readonly report: () => string
  readonly observer: UpstreamObserver
  /** Undefined where requests are not traced. */
  readonly tracing?: AccountParts['tracing']
  /** Replaces the provider's HTTP or protocol and the codec of the shared tier, for tools. */
  readonly stubs?: Stubs | undefined
}

export type Stubs = AccountStubs & { readonly codec?: Codec<Timeline> }

export type Upstream = ReturnType<typeof openUpstream>
export type Timelines = Upstream['timelines']
export type CellExplanation = Awaited<ReturnType<Timelines['explain']>>

export const openUpstream = (config: Config, parts: UpstreamParts) => {
  const { store, catalogue, clock, observer } = parts
  const { cache: options } = config
  const { bounds } = catalogue.current
  const grid = createGrid(options.cellDegrees, bounds)
  const demand = createDemand<Cell>()
  const failures = failuresOf(config, at => accounts.isLifted(at), clock)
  const accounts: Accounts = openAccounts(config, {
    ...{ store, clock, instances: parts.instances },
    tracing: parts.tracing,
    stubs: parts.stubs,
    // People check the weather again within this time.
    recentConsumers: () => demand.recentConsumers(clock.now() - hourMs),
    observerOf: fallback => accountObserver(observer, fallback, failures.endBackoff),
  })
  const namespaces = namespacesOf(accounts)
  const pinned = mostPopulous(catalogue, grid, options.prefetchPlaces)
  const freshness = createUpstreamFreshness(config, accounts, () => fleetDemand.wantedWith(pinned()), clock)
  const { policy, stretch } = freshness
  const purges = createPurges()
  const state = { policy, purges, failures, demand, uncached: createUncached() }
  const cacheParts = cachePartsOf(config, parts, { accounts, namespaces, ...state })
  const cache = new ReadThrough(cacheParts)
  const fleetDemand: FleetDemand = createFleetDemand({
    ...parts,
    ...{ demand, grid, bounds, demandForMs: options.demandForMs, cellDegrees: options.cellDegrees },
    namespaces: namespaces.all.map(({ namespace }) => namespace),
    onHeartbeat: fleet => {
      observer.onHeartbeat(fleet)
      void cacheParts.uncached.check(fleetDemand.includes, async id => {
        const cell = grid.cellNamed(id)
        if (cell) await cache.warm(cell)
      })
      void accounts.reconcile()
    },
    // So that a gateway that sends no requests also switches to its local budget when the store is unavailable.
    onHeartbeatFailure: () => void accounts.reconcile(),
  })
  const { heartbeat } = fleetDemand
  const refreshAhead = createRefreshAhead<Cell>({
    ...{ demand, pinned, memory: cacheParts.memory, policy, demandForMs: options.demandForMs, clock },
    isThrottled: (key, consumer) =>
      failures.backoff(key) !== undefined || accounts.throttled(consumer, 'refresh_ahead') !== undefined,
    refresh: (cell, consumer) => cache.refresh(cell, 'refresh_ahead', consumer),
    batch: () => freshness.refresher().config.provider.maxPointsPerRequest,
  })
  const applyPurges: typeof cache.purged = async (added, isWhole) => {
    await cache.purged(added, isWhole)
    refreshAhead.purged(added)
  }
  const readPurges = createPurgeReader({ store, purges, clock, apply: applyPurges, observer })
  const background = startBackground({
    ...{ accounts, demand, pinned, policy, readPurges, clock, reload: cache.reload },
    sendHeartbeatIfDue: heartbeat.sendIfDue,
    refreshAhead: refreshAhead.start,
    renewStretch: stretch.renew,
    onNextUpstream: observer.onNextUpstream,
  })

  return {
    grid,
    timelines: {
      ...createInspection(cacheParts, cache, fleetDemand),
      read: cache.read,
      peek: cache.peek,
      isFresh: cache.isFresh,
      /** Loads a cell unless its weather is fresh; returns whether it loaded. @throws BackoffError */
      ensure: cache.ensure,
      /** Loads a cell whatever is cached, within budget and circuit breaker. Never rejects. */
      reload: cache.reload,
      readPurges,
      stretch: stretch.current,
      demandPerDay: freshness.demandPerDay,
      /** When there may be work though nobody requests anything: a refresh that is due, or a new run. */
      nextWorkAt: (): number => Math.min(refreshAhead.nextAt(), accounts.nextRunAt()),
      wanted: fleetDemand.cells,
      fleet: fleetDemand.fleet,
      /** The name of this instance in the store. */
      instance: heartbeat.instance,
      sendHeartbeat: heartbeat.send,
    },
    account: accounts.first,
    accounts,
    /** Reads runs, budget, purges and cached timelines before the first request; bounded in time. */
    start: async () => {
      await pollWithin(accounts, options.warmForMs)
      await readPurges()
      await heartbeat.send()
      return warmCells({ warm: cache.warm, memory: cacheParts.memory }, fleetDemand, options.warmForMs)
    },
    applyBudget: accounts.applyBudgets,
    /** Freshness and staleness from now on, for what is cached too. */
    applyFreshness: (next: Config): void => {
      accounts.applyHorizon(next)
      policy.apply(next.cache)
      background.passSoon()
      stretch.renew()
    },
    close: async (): Promise<void> => {
      background.end()
      // Stores the latest demand for the next start.
      await heartbeat.sendLast()
      const ended = accounts.close()
      // Another gateway loads what was not requested, and waits for what was: its leases are renewed until it has ended.
      const unsent = accounts.all.flatMap(({ account }) => account.provider.queued())
      await cacheParts.fleet.release(new Set(unsent.map(namespaces.keyOf)))
      await ended
      cacheParts.fleet.close()
    },
  }
}

const accountObserver = (
  observer: UpstreamObserver,
  fallback: string | undefined,
  onRecovery: () => void,
): AccountObserver => {
  const own = fallback === undefined ? observer : (observer.ofFallback?.(fallback) ?? observer)
  return {
    ...own,
    loaded: observer.loaded,
    breaker: state => {
      own.breaker(state)
      if (state === 'closed') onRecovery()
    },
  }
}

/** The namespaces of entries, each by its upstream. Leases and demand are in the first, wherever the weather of a cell comes from. */
const namespacesOf = ({ all: [first, ...others] }: Accounts) => {
  const ofEach = ({ name, config, account }: OpenUpstream) => ({
    upstream: name,
    namespace: namespaceOf(config.provider.baseUrl, account.protocol),
  })
  const all = [ofEach(first), ...others.map(ofEach)] as const
  const [{ namespace }] = all
  const byName = new Map(all.map(each => [each.upstream, each.namespace]))
  return {
    all,
    keyOf: ({ id }: Cell): string => keyFor(namespace, id),
    of: ({ name }: OpenUpstream): string => byName.get(name) ?? namespace,
  }
}

const failuresOf = (
  { cache, provider }: Config,
  isLifted: (failedAt: number) => boolean,
  clock: UpstreamParts['clock'],
) =>
  createFailures(
    {
      ...cache,
      longestAfter: error => (cellCodes.has(codeOf(error)) ? provider.refusedForMs : undefined),
      // Also for loads of other instances, whose errors have the same code.
      isLifted: ({ error, failedAt }) => codeOf(error) === 'provider_limited' && isLifted(failedAt),
    },
    clock,
  )

type UpstreamState = Pick<
  CacheParts<Cell, Timeline>,
  'policy' | 'purges' | 'failures' | 'demand' | 'uncached'
> & { readonly accounts: Accounts; readonly namespaces: ReturnType<typeof namespacesOf> }

const cachePartsOf = (
  config: Config,
  { store, clock, observer, stubs }: UpstreamParts,
  { accounts, namespaces, ...state }: UpstreamState,
): CacheParts<Cell, Timeline> => {
  const { policy, purges } = state
  const { memoryBytes, leaseForMs, waitForMs } = config.cache
  const codec = {
    hourlyHours: config.weather.hourlyHours,
    calendar: createCalendar(config.quota.timeZone),
    clock,
  }
  return {
    ...state,
    ...{ waitForMs, clock, observer },
    keyOf: namespaces.keyOf,
    load: loaderOf(config, accounts, namespaces.of, purges, observer),
    expedite: accounts.expedite,
    throttled: accounts.throttled,
    consumerOf: error => (error instanceof ShareUsedUpError ? error.consumer : undefined),
    memory: createMemoryTier<Timeline>(memoryBytes),
    shared: openSharedTier(
      namespaces.all,
      { name: store.kind, store, longestUseMs: () => policy.longestUseMs },
      upstream => stubs?.codec ?? createTimelineCodec({ ...codec, upstream }),
      (id, entry) => freshnessOf(entry, policy, clock.now(), purges.of(id, entry)),
      observer,
    ),
    fleet: createFleetSingleFlight({ store, leaseForMs, account: accounts.id, clock }, error =>
      observer.onSharedTierFailure('lease', error),
    ),
  }
}

/** Loads the entry of a cell from the first upstream that can. */
const loaderOf =
  (
    { weather }: Config,
    accounts: Accounts,
    namespaceOfUpstream: (upstream: OpenUpstream) => string,
    purges: Purges,
    observer: UpstreamObserver,
  ): CacheParts<Cell, Timeline>['load'] =>
  (cell, purpose, consumer) =>
    accounts.load(cell, purpose, async upstream => {
      const { name, account } = upstream
      // Read before the load: a purge or run that comes during the load is newer than the entry.
      const run = accounts.runsOf(name)[0]?.availableAt ?? null
      const metadata = { generation: purges.generation, run }
      const timeline = await account.provider.load(cell, purpose, consumer)
      observer.onLoaded?.(name)
      const key = keyFor(namespaceOfUpstream(upstream), cell.id)
      return entryOf(key, timeline, metadata, weather.hourlyHours, name)
    })

/** A provider or store that hangs must not keep the gateway from becoming ready. */
const pollWithin = async (accounts: Accounts, ms: number): Promise<void> => {
  const timeout = new AbortController()
  await Promise.race([
    Promise.all([accounts.poll(), accounts.reconcile()]),
    pause(ms, undefined, { signal: timeout.signal }),
  ])
  timeout.abort()
}
