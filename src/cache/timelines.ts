// Timelines by grid cell: composes the two cache tiers over the provider, and runs their background work: heartbeats, the
// purge log, refresh-ahead and probes. src/cache decides when to load, src/provider how. Longer than 300 lines, because every
// part of the cache is connected here.

import { type Calendar, hourMs, utcDayMs } from '../common/calendar.ts'
import { type Clock, every } from '../common/clock.ts'
import { AbohawaError } from '../common/errors.ts'
import type { Breaker } from '../provider/breaker.ts'
import type { Provider } from '../provider/client.ts'
import { ShareUsedUpError } from '../provider/errors.ts'
import type { ByteStore, FleetStore, LeaseStore, Store } from '../stores/store.ts'
import type { Cell, Grid } from '../weather/cell.ts'
import type { FreshnessOptions } from '../weather/horizon.ts'
import type { Timeline } from '../weather/timeline.ts'
import { createDemand } from './demand.ts'
import { type DemandExpiry, expiryOfDemand, firstExpiry } from './demand-expiry.ts'
import { createTimelineCodec, entryOf, keyFor } from './entry-codec.ts'
import { type BackoffOptions, createFailures, type Failure } from './failures.ts'
import { createFleetSingleFlight } from './fleet-single-flight.ts'
import { createStretch, freshByAge, freshByRun, type Run, type RunOptions } from './freshness.ts'
import { createHeartbeat, type Fleet } from './heartbeat.ts'
import { createMemoryTier } from './memory-tier.ts'
import { createProbe } from './probe.ts'
import { followPurges } from './purge-log.ts'
import { covers, type PurgeScope } from './purge-scope.ts'
import { createPurges } from './purges.ts'
import { type CacheObserver, createReadThrough, type Explanation, type ReadThrough } from './read-through.ts'
import { createRefreshAhead } from './refresh-ahead.ts'
import { type Codec, createSharedTier, type SharedTierObserver } from './shared-tier.ts'
import { createUncached } from './uncached.ts'

/** The live options. */
type LiveTimelinesOptions = FreshnessOptions & RunOptions

export type TimelinesOptions = LiveTimelinesOptions &
  Omit<BackoffOptions, 'longestAfter' | 'isLifted'> & {
    /** The longest backoff for a point that the provider refused. */
    readonly refusedForMs: number
    /** How long a read waits for a load. */
    readonly waitForMs: number
    /** How long the lease of a load lasts when its holder dies. */
    readonly leaseForMs: number
    /** How long after its last request a cell counts as in demand. */
    readonly demandForMs: number
    /** How many cells make a full batch. */
    readonly batch: number
    readonly freshness: 'age' | 'run'
    /** The bound of the memory tier. */
    readonly memoryBytes: number
    /** The number of cells in the configured box; demand never counts more. */
    readonly maxCells: number
    /** The provider's weight of one load. */
    readonly weightPerLoad: number
    /** The prefix of all cache keys; see entry-codec.ts. */
    readonly namespace: string
    /** How many hours a response has. */
    readonly hourlyHours: number
  }

export type TimelinesObserver = CacheObserver &
  SharedTierObserver & {
    onHeartbeat(fleet: Fleet): void
    /** The store failed to take a heartbeat. */
    onHeartbeatFailure(): void
    onPurge(kind: 'soft' | 'hard', scope: PurgeScope): void
    /** The log has lost purges that this instance has not read: all that is cached counts as stale. */
    onPurgesMissed(): void
  }

export type TimelinesParts = {
  readonly provider: Pick<Provider, 'load' | 'expedite' | 'heldBack'>
  readonly breaker: Pick<Breaker, 'isProbeDue'>
  readonly store: ByteStore & LeaseStore & FleetStore & Pick<Store, 'kind'>
  readonly grid: Grid
  /** Cells to keep warm without demand, most important first. */
  readonly pinned: () => readonly Cell[]
  /** The available model runs, newest first; empty while none is known or followed. */
  readonly recentRuns: () => readonly Run[]
  /** The stretch of freshness at a demand in weight per day. */
  readonly stretch: (demandPerDay: number) => number
  /** Whether the provider's limit that refused a load at this instant does not hold any more. */
  readonly isLimitLifted: (at: number) => boolean
  /** A short name of the account at the provider. */
  readonly account: string
  /** A short hash of the settings that all instances should have in common, now. */
  readonly settings: () => string
  /** The text of the instance's report of itself. */
  readonly report: () => string
  readonly calendar: Calendar
  readonly clock: Clock
  /** The codec of the shared tier; by default that of entry-codec.ts. */
  readonly codec?: Codec<Timeline> | undefined
  readonly observer: TimelinesObserver
}

export type CellExplanation = Explanation & {
  readonly cell: Cell
  readonly lastRequestedAt: number | null
  readonly sharedTier: string
}

export type Timelines = ReadThrough<Cell, Timeline> & {
  /** Reads the purge log and copies cells in demand from the shared tier into memory, within this time. */
  start(warmForMs: number): Promise<{ warmed: number; wanted: number }>
  /** The last consumers that requested weather here, within the last hour: at most two. */
  recentConsumers(): string[]
  /** The cells in demand over the fleet, latest first. @throws StoreError */
  wanted(): Promise<Cell[]>
  /** Whether a tier holds fresh weather of a cell. */
  isFresh(cell: Cell): Promise<boolean>
  /** Loads a cell unless its weather is fresh; returns whether it loaded. @throws BackoffError */
  ensure(cell: Cell): Promise<boolean>
  /** The size of the memory tier. */
  held(): { entries: number; bytes: number }
  stretch(): number
  /**
   * When the first cell in demand can't be served any more if nothing is loaded: 0 where one has nothing cached, in the past where
   * one has expired; undefined where nothing is known of any. In demand are the cells requested here and those that were in
   * demand over the fleet at the start. A cell that the provider refuses does not count, because it has errors anyway.
   * @param whose `cached`: a cell with nothing cached decides only where nothing in demand is cached
   */
  firstExpiryAt(whose?: 'any' | 'cached'): number | undefined
  /** The age at which the weather of cells in demand expires, by the settings and by the timelines that were fetched. */
  reach(): DemandExpiry
  /** How many cells back off, by the code of their last failure. */
  backoffs(): Map<string, number>
  /** Ends the backoff of cells that failed during an outage of the provider. */
  endBackoff(): void
  /** Reads the purge log now; never rejects. */
  readPurges(): Promise<void>
  explain(cell: Cell): Promise<CellExplanation>
  /** Loads a cell whatever is cached, within budget and circuit breaker. Never rejects. */
  reload(cell: Cell): Promise<void>
  /** The timeline of a cell in memory, without counting as a request. */
  timelineOf(cell: Cell): Timeline | undefined
  /** The state of a cell in memory, without counting as a request. */
  overview(cell: Cell): CellOverview
  /** The demand of the fleet in the provider's weight per day, without stretch. */
  demandPerDay(): number
  /** At the last heartbeat. */
  fleet(): Fleet
  /** The cells with the most requests here, most first. */
  mostRequested(most: number): { readonly cell: Cell; readonly requests: number }[]
  /** The name of this instance in the store. */
  readonly instance: string
  /** Sends a heartbeat now. */
  sendHeartbeat(): Promise<void>
  /** Sets new options, for cached entries too. Policy, memory and namespace stay. */
  apply(options: LiveTimelinesOptions): void
  close(): Promise<void>
}

/** `failed`: the last load failed, and nothing fresh is in memory. */
type CellOverview = {
  readonly state: 'fresh' | 'stale' | 'absent' | 'failed'
  /** Ms since the epoch; null where memory holds nothing. */
  readonly fetchedAt: number | null
  /** The decayed count of requests; 0 without any. */
  readonly demand: number
}

const tickEveryMs = 500
// People check the weather again within this time.
const recentForMs = hourMs
const passEveryMs = 10_000
// Each read of the shared tier is a round trip: read in batches, and check the deadline in between.
const warmAtOnce = 256

export const createTimelines = (options: TimelinesOptions, parts: TimelinesParts): Timelines => {
  const { provider, store, grid, recentRuns, calendar, clock, observer } = parts
  const { namespace, hourlyHours } = options
  const { refusedForMs, demandForMs, batch } = options
  const keyOf = ({ id }: Cell): string => keyFor(namespace, id)

  let fleet: Fleet = { instances: 1, variants: 1, wanted: 0 }
  // The stretch in effect: freshness has a maximum.
  const demandPerDay = (): number => (fleet.wanted * options.weightPerLoad * utcDayMs) / policy.periodMs()
  const stretch = createStretch(() => Math.min(parts.stretch(demandPerDay()), policy.maxStretch()), clock)
  const policy =
    options.freshness === 'run'
      ? freshByRun(options, recentRuns, stretch.current)
      : freshByAge(options, stretch.current)

  const purges = createPurges(covers)
  const memory = createMemoryTier<Timeline>(options.memoryBytes)
  const demand = createDemand<Cell>()
  const uncached = createUncached()
  const isRefusal = (error: unknown): boolean =>
    error instanceof AbohawaError && error.code === 'provider_refused'
  const longestAfter = (error: unknown): number | undefined => (isRefusal(error) ? refusedForMs : undefined)
  // Also for loads of other instances, whose errors have the same code.
  const isLifted = ({ error, failedAt }: Pick<Failure, 'error' | 'failedAt'>): boolean =>
    error instanceof AbohawaError && error.code === 'provider_limited' && parts.isLimitLifted(failedAt)
  const failures = createFailures({ ...options, longestAfter, isLifted }, clock)
  const fleetLoads = createFleetSingleFlight(
    { store, leaseForMs: options.leaseForMs, account: parts.account, clock },
    error => observer.onSharedTierFailure('lease', error),
  )
  const cache = createReadThrough<Cell, Timeline, PurgeScope>({
    keyOf,
    load: async (cell, purpose, consumer) => {
      // Read before the load: a purge or run that comes during the load is newer than the entry.
      const metadata = { generation: purges.generation, run: recentRuns()[0]?.availableAt ?? null }
      return entryOf(keyOf(cell), await provider.load(cell, purpose, consumer), metadata, hourlyHours)
    },
    expedite: provider.expedite,
    heldBack: provider.heldBack,
    consumerOf: error => (error instanceof ShareUsedUpError ? error.consumer : undefined),
    memory,
    shared: createSharedTier(
      {
        name: store.kind,
        store,
        get longestUseMs() {
          return policy.longestUseMs
        },
      },
      parts.codec ?? createTimelineCodec({ hourlyHours, calendar, clock }),
      observer,
    ),
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
    pinned: parts.pinned,
    memory,
    policy,
    isHeldBack: (key, consumer) =>
      failures.backoff(key) !== undefined || provider.heldBack(consumer, 'refresh_ahead') !== undefined,
    refresh: (cell, consumer) => cache.refresh(cell, 'refresh_ahead', consumer),
    batch: () => batch,
    demandFor: () => demandForMs,
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

  // The first read finds purges from before the start: they are in force, but not reported.
  const readPurgesOnce = async (): Promise<void> => {
    const isFirst = purges.generation === 0
    const read = await followPurges(store, purges, clock.now())
    if (!read) return
    cache.purged(read.added, read.isWhole)
    if (isFirst) return
    for (const { kind, scope } of read.added) observer.onPurge(kind, scope)
    if (!read.isWhole) observer.onPurgesMissed()
  }
  // One read at a time, so that no purge is reported twice, and a new one for each caller, so that it finds what the caller
  // ordered. The store reports its outages through its own observer.
  let purgeReads = Promise.resolve()
  const readPurges = (): Promise<void> => {
    purgeReads = purgeReads.then(readPurgesOnce).catch(() => {})
    return purgeReads
  }

  const probe = createProbe({
    isDue: parts.breaker.isProbeDue,
    // The cell requested last is the most useful one to load.
    cell: () => demand.latest()?.subject ?? parts.pinned()[0],
    load: cache.reload,
  })

  const heartbeat = createHeartbeat({
    store,
    demand,
    namespace,
    settings: parts.settings,
    report: parts.report,
    demandFor: () => demandForMs,
    clock,
    onHeartbeat: seen => {
      fleet = { ...seen, wanted: Math.min(seen.wanted, options.maxCells) }
      stretch.renew()
      observer.onHeartbeat(fleet)
      void uncached.check(isInDemand, lookUp)
    },
    onHeartbeatFailure: observer.onHeartbeatFailure,
  })

  // A pass scans every cell in demand, within the lead. A new run or new pinned cells make many cells due, and start a pass at once.
  let passed = { at: Number.NEGATIVE_INFINITY, run: undefined as Run | undefined, pinned: parts.pinned() }
  const refreshAheadIfDue = (): void => {
    const [at, run, pinned] = [clock.now(), recentRuns()[0], parts.pinned()]
    const isUnchanged = run === passed.run && pinned === passed.pinned
    if (isUnchanged && Math.abs(at - passed.at) < Math.min(policy.leadMs / 6, passEveryMs)) return
    const started = refreshAhead()
    // The loads that did not fit now come next.
    passed = { at: started > 0 ? Number.NEGATIVE_INFINITY : at, run, pinned }
  }

  let isTicking = false
  const tick = async (): Promise<void> => {
    await readPurges()
    await heartbeat.sendIfDue()
    refreshAheadIfDue()
    probe()
  }
  const endTicks = every(clock, tickEveryMs, () => {
    if (isTicking) return
    isTicking = true
    return tick().finally(() => {
      isTicking = false
    })
  })

  const wanted = async (): Promise<Cell[]> =>
    (await store.wanted(namespace, clock.now() - demandForMs)).flatMap(name => grid.cellNamed(name) ?? [])

  return {
    read: cache.read,
    recentConsumers: () => demand.recentConsumers(clock.now() - recentForMs),
    wanted,
    isFresh: cache.isFresh,
    ensure: cache.ensure,
    start: async warmForMs => {
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
    },
    held: () => ({ entries: memory.size, bytes: memory.calculatedSize }),
    stretch: stretch.current,
    firstExpiryAt: whose => {
      const isUncached = (id: string) => uncached.has(id) && !isRefusal(failures.last(id)?.error)
      return firstExpiry({ memory, isUncached, policy }, inDemand(), clock.now(), whose)
    },
    reach: () => {
      const now = clock.now()
      // Cells that were in demand before the start have no requests here yet.
      const demanded = Array.from(inDemand(), id => [id, demand.scoreOf(id, now) || 1] as const)
      return expiryOfDemand(memory, policy.longestUseMs, demanded)
    },
    backoffs: failures.backoffs,
    endBackoff: failures.endBackoff,
    readPurges,
    explain: async cell => ({
      ...(await cache.explain(cell)),
      cell,
      lastRequestedAt: demand.of(cell.id)?.lastRequestedAt ?? null,
      sharedTier: store.kind,
    }),
    reload: cache.reload,
    timelineOf: ({ id }) => memory.peek(id)?.value,
    overview: cell => {
      const entry = cache.peek(cell)
      const cached = entry && entry.state !== 'expired' ? entry.state : 'absent'
      return {
        state: cached !== 'fresh' && failures.last(cell.id) ? 'failed' : cached,
        fetchedAt: entry?.fetchedAt ?? null,
        demand: demand.scoreOf(cell.id, clock.now()),
      }
    },
    demandPerDay,
    fleet: () => fleet,
    mostRequested: most =>
      demand
        .since(clock.now() - demandForMs)
        .map(({ key, subject }) => ({ cell: subject, requests: demand.scoreOf(key, clock.now()) }))
        .sort((one, other) => other.requests - one.requests)
        .slice(0, most),
    instance: heartbeat.instance,
    sendHeartbeat: heartbeat.send,
    apply: next => {
      policy.apply(next)
      passed.at = Number.NEGATIVE_INFINITY
      stretch.renew()
    },
    close: async () => {
      endTicks()
      // Stores the latest demand for the next start.
      await heartbeat.sendLast()
      fleetLoads.close()
    },
  }
}
