// The upstream: the accounts at providers, and the timelines by grid cell that are cached over them in two tiers. Composes the parts
// of the cache, and runs their background work: heartbeats, the purge log, refresh-ahead and probes. src/cache decides when to load,
// src/provider how. Longer than 300 lines, because every part of the cache is connected here.

import { setTimeout as pause } from 'node:timers/promises'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { createCalendar, hourMs, utcDayMs } from '../common/calendar.ts'
import { every } from '../common/clock.ts'
import { AbohawaError } from '../common/errors.ts'
import type { Config } from '../config/schema.ts'
import { upstreamsIn } from '../config/upstreams.ts'
import { createLoadsByKey } from '../keys/loads-by-key.ts'
import {
  type AccountObserver,
  type AccountParts,
  type AccountStandIns,
  protocolIn,
} from '../provider/account.ts'
import { type OpenUpstream, openAccounts } from '../provider/accounts.ts'
import { maxProbePoints } from '../provider/client.ts'
import { ShareUsedUpError } from '../provider/errors.ts'
import { type Next, soonMs } from '../provider/next-upstream.ts'
import type { Store } from '../stores/store.ts'
import { type Cell, createGrid, type Grid } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import { createDemand } from './demand.ts'
import { type DemandExpiry, expiryOfDemand, firstExpiry } from './demand-expiry.ts'
import { createTimelineCodec, entryOf, keyFor, namespaceOf } from './entry-codec.ts'
import { createFailures, createUncached } from './failures.ts'
import { createFleetSingleFlight } from './fleet-single-flight.ts'
import {
  createFreshness,
  createStretch,
  type Entry,
  type EntryFacts,
  factsOf,
  freshnessOf,
  type Run,
} from './freshness.ts'
import { createHeartbeat, type Fleet, inStep } from './heartbeat.ts'
import { joinTiers, type UpstreamTier } from './namespaces.ts'
import { createPurgeReader, createPurges, type PurgeObserver } from './purges.ts'
import { type CacheObserver, createReadThrough } from './read-through.ts'
import { createProbe, createRefreshAhead } from './refresh-ahead.ts'
import { type Codec, createMemoryTier, createSharedTier, type SharedTierObserver } from './tiers.ts'

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
  /** The stand-ins of tools for the provider's HTTP and the bytes of the shared tier; a gateway has none. */
  readonly standIns?: StandIns | undefined
}

/** Parts of an upstream that sends nothing: its own rules, weights and batches, and timelines that are made at once. */
export type StandIns = AccountStandIns & { readonly codec: Codec<Timeline> }

export type Upstream = ReturnType<typeof openUpstream>
export type Timelines = Upstream['timelines']
export type CellExplanation = Awaited<ReturnType<Timelines['explain']>>

const nowhere: readonly Cell[] = []
const never = Number.POSITIVE_INFINITY
const tickEveryMs = 500
const passEveryMs = 10_000
// Each read of the shared tier is a round trip: read in batches, and check the deadline in between.
const warmAtOnce = 256

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

/** The cache namespace of a configuration's first upstream. */
export const cacheNamespaceIn = (config: Config): string =>
  namespaceOf(config.provider.baseUrl, protocolIn(config))

/** The cache namespaces of all upstreams of a configuration, with their names; that of a single one needs none. */
export const cacheNamespacesIn = (
  config: Config,
): readonly { readonly namespace: string; readonly upstream: string | undefined }[] => {
  const upstreams = upstreamsIn(config)
  return upstreams.map(({ name, config: own }) => ({
    namespace: cacheNamespaceIn(own),
    upstream: upstreams.length > 1 ? name : undefined,
  }))
}

export const openUpstream = (config: Config, parts: UpstreamParts) => {
  const { store, catalogue, clock, settings, report, observer: given, standIns } = parts
  const { cache: options, weather } = config
  const { hourlyHours } = weather
  const { refusedForMs, maxPointsPerRequest } = config.provider
  const observer: UpstreamObserver = {
    ...given,
    loaded: keyId => {
      loads.record(keyId)
      given.loaded(keyId)
    },
    breaker: state => {
      given.breaker(state)
      if (state === 'closed') failures.endBackoff()
    },
  }
  const observerOf = (fallback: string | undefined): AccountObserver => {
    if (fallback === undefined) return observer
    const own = given.ofFallback?.(fallback) ?? given
    return {
      ...own,
      loaded: given.loaded,
      breaker: state => {
        own.breaker(state)
        if (state === 'closed') failures.endBackoff()
      },
    }
  }
  const calendar = createCalendar(config.quota.timeZone)
  const { bounds } = catalogue.current
  const grid = createGrid(options.cellDegrees, bounds)
  // The centre of a cell on the edge may lie outside the bounds.
  const cellsOver = (from: number, to: number): number => Math.ceil((to - from) / options.cellDegrees) + 2
  const maxCells = cellsOver(bounds.south, bounds.north) * cellsOver(bounds.west, bounds.east)
  const accounts = openAccounts(config, {
    store,
    clock,
    instances: parts.instances,
    // People check the weather again within this time.
    recentConsumers: () => demand.recentConsumers(clock.now() - hourMs),
    observerOf,
    tracing: parts.tracing,
    standIns,
  })
  const { first: account } = accounts
  const { protocol, budget } = account
  const loads = createLoadsByKey({
    now: clock.now,
    weightPerCell: protocol.weightPerCell,
    limitOfDay: () => budget.state().windows.find(({ name }) => name === 'day')?.limit,
  })
  const pinned =
    options.prefetchPlaces > 0 ? mostPopulous(catalogue, grid, options.prefetchPlaces) : () => nowhere
  const { demandForMs } = options
  // Leases and demand are those of the first upstream: of a cell, wherever its weather comes from.
  const namespace = namespaceOf(config.provider.baseUrl, protocol)
  const keyOf = ({ id }: Cell): string => keyFor(namespace, id)
  const namespaces = new Map(
    accounts.all.map(each => [each.name, namespaceOf(each.config.provider.baseUrl, protocol)]),
  )
  const namespaceOfUpstream = ({ name }: OpenUpstream): string => namespaces.get(name) ?? namespace
  const newestRun = (upstream?: string): Run | undefined => accounts.runsOf(upstream)[0]
  const hasSeveral = accounts.all.length > 1

  let fleet: Fleet = { instances: 1, variants: 1, wanted: 0 }
  /** The demand of the fleet in the provider's weight per day, without stretch. */
  const demandPerDay = (): number => (fleet.wanted * protocol.weightPerCell * utcDayMs) / policy.periodMs()
  /** The upstream that refreshes come from: its stretch and runs are in effect. While only its minute is full, refreshes wait. */
  let refresher = accounts.all[0] as OpenUpstream
  // Freshness has a maximum.
  const computeStretch = (): number => {
    refresher = accounts.next(soonMs).upstream ?? (accounts.all[0] as OpenUpstream)
    return Math.min(refresher.account.budget.stretch(demandPerDay()), policy.maxStretch())
  }
  const stretch = createStretch(computeStretch, clock)
  const runsOf = hasSeveral ? (upstream = refresher.name) => accounts.runsOf(upstream) : account.runs?.recent
  const policy = createFreshness(options, stretch.current, runsOf)

  const purges = createPurges()
  const memory = createMemoryTier<Timeline>(options.memoryBytes)
  const demand = createDemand<Cell>()
  const uncached = createUncached()
  const hasCode = (error: unknown, code: string): boolean =>
    error instanceof AbohawaError && error.code === code
  const failures = createFailures(
    {
      ...options,
      longestAfter: error => (hasCode(error, 'provider_refused') ? refusedForMs : undefined),
      // Also for loads of other instances, whose errors have the same code.
      isLifted: ({ error, failedAt }) => hasCode(error, 'provider_limited') && accounts.isLifted(failedAt),
    },
    clock,
  )
  const fleetLoads = createFleetSingleFlight(
    { store, leaseForMs: options.leaseForMs, account: accounts.id, clock },
    error => observer.onSharedTierFailure('lease', error),
  )
  const tierOf = (each: OpenUpstream): UpstreamTier<Timeline> => {
    const codec =
      standIns?.codec ?? createTimelineCodec({ hourlyHours, calendar, clock, upstream: each.name })
    const tier = { name: store.kind, store, longestUseMs: () => policy.longestUseMs }
    return {
      upstream: each.name,
      namespace: namespaceOfUpstream(each),
      tier: createSharedTier(tier, codec, observer),
    }
  }
  const [firstTier, ...otherTiers] = accounts.all.map(tierOf) as [UpstreamTier<Timeline>]
  const shared = joinTiers([firstTier, ...otherTiers], (id, entry) =>
    freshnessOf(entry, policy, clock.now(), purges.of(id, entry)),
  )
  const cache = createReadThrough<Cell, Timeline>({
    keyOf,
    load: (cell, purpose, consumer) =>
      accounts.load(cell, purpose, async upstream => {
        const { name, account: asked } = upstream
        // Read before the load: a purge or run that comes during the load is newer than the entry.
        const metadata = { generation: purges.generation, run: newestRun(name)?.availableAt ?? null }
        const timeline = await asked.provider.load(cell, purpose, consumer)
        observer.onLoaded?.(name)
        const key = keyFor(namespaceOfUpstream(upstream), cell.id)
        return entryOf(key, timeline, metadata, hourlyHours, name)
      }),
    expedite: accounts.expedite,
    heldBack: accounts.heldBack,
    consumerOf: error => (error instanceof ShareUsedUpError ? error.consumer : undefined),
    memory,
    shared,
    fleet: fleetLoads,
    policy,
    purges,
    failures,
    uncached,
    demand,
    waitForMs: options.waitForMs,
    clock,
    observer,
  })
  const refreshAhead = createRefreshAhead<Cell>({
    demand,
    pinned,
    memory,
    policy,
    isHeldBack: (key, consumer) =>
      failures.backoff(key) !== undefined || accounts.heldBack(consumer, 'refresh_ahead') !== undefined,
    refresh: (cell, consumer) => cache.refresh(cell, 'refresh_ahead', consumer),
    batch: maxPointsPerRequest,
    demandForMs,
    clock,
  })

  // The fleet's demand before this instance took part in it.
  let atStart: { readonly at: number; readonly ids: ReadonlySet<string> } = { at: 0, ids: new Set() }
  const demandedSince = (): number => clock.now() - demandForMs
  const isRecentStart = (): boolean => Math.abs(clock.now() - atStart.at) <= demandForMs
  const isInDemand = (id: string): boolean =>
    (demand.of(id)?.lastRequestedAt ?? 0) >= demandedSince() || (isRecentStart() && atStart.ids.has(id))
  const inDemand = (): Iterable<string> => {
    const here = demand.since(demandedSince()).map(({ key }) => key)
    return isRecentStart() ? new Set([...here, ...atStart.ids]) : here
  }
  const lookUp = async (id: string): Promise<void> => {
    const cell = grid.cellNamed(id)
    if (cell) await cache.warm(cell)
  }

  const readPurges = createPurgeReader({ store, purges, clock, apply: cache.purged, observer })

  const probes = accounts.all.map(({ account: { breaker, provider } }) =>
    createProbe<Cell>({
      isDue: breaker.isProbeDue,
      // The cells requested last are the most useful ones to load.
      cells: () => {
        const requested = demand.latest(maxProbePoints)
        return requested.length > 0 ? requested : pinned().slice(0, 1)
      },
      // With several upstreams the cache would load from one that is healthy. What such a probe brings is not kept: a failed one
      // would be a failure of its cells, which another upstream serves.
      load: hasSeveral ? provider.probe : ([cell]) => cache.reload(cell),
    }),
  )
  const heartbeat = createHeartbeat({
    store,
    demand,
    namespace,
    settings,
    report,
    demandForMs,
    clock,
    onHeartbeat: seen => {
      fleet = { ...seen, wanted: Math.min(seen.wanted, maxCells) }
      stretch.renew()
      observer.onHeartbeat(fleet)
      void uncached.check(isInDemand, lookUp)
      void accounts.reconcile()
    },
    // So that a gateway that sends no requests also switches to its local budget when the store is unavailable.
    onHeartbeatFailure: () => void accounts.reconcile(),
  })

  // A pass scans every cell in demand, within the lead. A new run or new pinned cells make many cells due, and start a pass at once.
  let passed = { at: Number.NEGATIVE_INFINITY, runs: '', pinned: pinned() }
  const newestRuns = (): string => accounts.all.map(({ name }) => newestRun(name)?.availableAt).join()
  const refreshAheadIfDue = (): void => {
    const [at, runs, pinnedNow] = [clock.now(), newestRuns(), pinned()]
    const isUnchanged = runs === passed.runs && pinnedNow === passed.pinned
    const everyMs = Math.min(policy.leadMs / 6, passEveryMs)
    const since = at - passed.at
    if (isUnchanged && Math.abs(since) < everyMs) return
    const started = refreshAhead.start()
    const from = isUnchanged ? inStep(at, since, everyMs) : at
    // The loads that did not fit now come next.
    passed = { at: started > 0 ? Number.NEGATIVE_INFINITY : from, runs, pinned: pinnedNow }
  }

  let reported: OpenUpstream | undefined = refresher
  const reportNext = (): void => {
    if (!hasSeveral) return
    stretch.renew()
    const next = accounts.next(soonMs)
    if (next.upstream === reported) return
    reported = next.upstream
    observer.onNextUpstream?.(next)
  }

  let isTicking = false
  const tick = async (): Promise<void> => {
    await readPurges()
    await heartbeat.sendIfDue()
    refreshAheadIfDue()
    for (const probe of probes) probe()
    reportNext()
  }
  const endTicks = every(clock, tickEveryMs, () => {
    if (isTicking) return
    isTicking = true
    return tick().finally(() => {
      isTicking = false
    })
  })

  /** The cells in demand over the fleet, latest first. @throws StoreError */
  const wanted = async (): Promise<Cell[]> => {
    // Another one may have been the first before a change of the list.
    const since = demandedSince()
    const lists = await Promise.all(accounts.all.map(each => store.wanted(namespaceOfUpstream(each), since)))
    const names = lists.length === 1 ? (lists[0] ?? []) : new Set(lists.flat())
    return [...names].flatMap(name => grid.cellNamed(name) ?? [])
  }

  const timelines = {
    read: cache.read,
    peek: cache.peek,
    wanted,
    /** Whether a tier holds fresh weather of a cell. */
    isFresh: cache.isFresh,
    /** Loads a cell unless its weather is fresh; returns whether it loaded. @throws BackoffError */
    ensure: cache.ensure,
    /** The size of the memory tier. */
    held: () => ({ entries: memory.size, bytes: memory.calculatedSize }),
    stretch: stretch.current,
    /** When there may be work though nobody requests anything: a refresh that is due, or a new run. */
    nextWorkAt: (): number =>
      Math.min(refreshAhead.nextAt(), ...accounts.all.map(({ account }) => account.runs?.nextAt() ?? never)),
    /**
     * When the first cell in demand can't be served any more if nothing is loaded: 0 where one has nothing cached, in the past
     * where one has expired; undefined where nothing is known of any. In demand are the cells requested here and those that were
     * in demand over the fleet at the start. A cell that the provider refuses does not count, because it has errors anyway.
     * @param whose `cached`: a cell with nothing cached decides only where nothing in demand is cached
     */
    firstExpiryAt: (whose?: 'any' | 'cached'): number | undefined => {
      const isUncached = (id: string) =>
        uncached.has(id) && !hasCode(failures.last(id)?.error, 'provider_refused')
      return firstExpiry({ memory, isUncached, policy }, inDemand(), clock.now(), whose)
    },
    /** The age at which the weather of cells in demand expires, by the settings and by the timelines that were fetched. */
    reach: (): DemandExpiry => {
      const now = clock.now()
      // Cells that were in demand before the start have no requests here yet.
      const demanded = Array.from(inDemand(), id => [id, demand.scoreOf(id, now) || 1] as const)
      return expiryOfDemand(memory, policy.longestUseMs, demanded)
    },
    /** How many cells back off, by the code of their last failure. */
    backoffs: failures.backoffs,
    /** Reads the purge log now; never rejects. */
    readPurges,
    /** What the tiers hold of a cell, for operators. */
    explain: async (cell: Cell) => {
      const { id } = cell
      const facts = (entry: Entry<Timeline> | undefined): EntryFacts | null =>
        factsOf(entry, policy, clock.now(), entry && purges.of(id, entry))
      return {
        memory: facts(memory.peek(id)),
        shared: facts(await shared.get(keyOf(cell))),
        lastFailure: failures.last(id) ?? null,
        loading: cache.isLoading(cell),
        lastRequestedAt: demand.of(id)?.lastRequestedAt ?? null,
      }
    },
    /** Loads a cell whatever is cached, within budget and circuit breaker. Never rejects. */
    reload: cache.reload,
    /** The timeline of a cell in memory, without counting as a request. */
    timelineOf: ({ id }: Cell): Timeline | undefined => memory.peek(id)?.value,
    /**
     * The state of a cell in memory, without counting as a request. `failed`: the last load failed, and nothing fresh is there.
     * `fetchedAt` is null where there is nothing; `demand` is the decayed count of requests.
     */
    overview: ({ id }: Cell) => {
      const now = clock.now()
      const entry = memory.peek(id)
      const state = entry ? freshnessOf(entry, policy, now, entry.purged) : 'expired'
      const cached = state === 'expired' ? ('absent' as const) : state
      return {
        state: cached !== 'fresh' && failures.last(id) ? ('failed' as const) : cached,
        fetchedAt: entry?.fetchedAt ?? null,
        demand: demand.scoreOf(id, now),
      }
    },
    demandPerDay,
    /** At the last heartbeat. */
    fleet: () => fleet,
    /** The cells with the most requests here, most first. */
    mostRequested: (most: number): { readonly cell: Cell; readonly requests: number }[] =>
      demand
        .since(demandedSince())
        .map(({ key, subject }) => ({ cell: subject, requests: demand.scoreOf(key, clock.now()) }))
        .sort((one, other) => other.requests - one.requests)
        .slice(0, most),
    /** The name of this instance in the store. */
    instance: heartbeat.instance,
    /** Sends a heartbeat now. */
    sendHeartbeat: heartbeat.send,
  }

  /** Copies cells in demand over the fleet from the shared tier into memory, within this time. */
  const warm = async (warmForMs: number): Promise<{ warmed: number; wanted: number }> => {
    const deadline = performance.now() + warmForMs
    await readPurges()
    await heartbeat.send()
    const cells = await wanted().catch(() => [])
    let warmed = 0
    for (let i = 0; i < cells.length && performance.now() < deadline; i += warmAtOnce) {
      const found = await Promise.all(cells.slice(i, i + warmAtOnce).map(cache.warm))
      warmed += found.filter(Boolean).length
    }
    atStart = { at: clock.now(), ids: new Set(cells.map(({ id }) => id)) }
    return { warmed, wanted: cells.length }
  }

  return {
    grid,
    timelines,
    /** The account at the first upstream. */
    account,
    /** All upstreams, in their order. */
    accounts,
    /** The cells that were loaded for each key. */
    loads,
    /** Reads runs, budget, purges and cached timelines before the first request; bounded in time. */
    start: async () => {
      // A provider or store that hangs must not keep the gateway from becoming ready.
      const timeout = new AbortController()
      await Promise.race([
        Promise.all([accounts.poll(), accounts.reconcile()]),
        pause(options.warmForMs, undefined, { signal: timeout.signal }),
      ])
      timeout.abort()
      return warm(options.warmForMs)
    },
    /** The budget from now on. */
    applyBudget: accounts.applyBudgets,
    /** Freshness and staleness from now on, for what is cached too. */
    applyFreshness: (next: Config): void => {
      accounts.applyHorizon(next)
      policy.apply(next.cache)
      passed.at = Number.NEGATIVE_INFINITY
      stretch.renew()
    },
    close: async (): Promise<void> => {
      endTicks()
      // Stores the latest demand for the next start.
      await heartbeat.sendLast()
      fleetLoads.close()
      await accounts.close()
    },
  }
}
