// Timelines by grid cell: the two cache tiers over the provider, put together once for the gateway. Keeps them up: says
// what is wanted, hears of purges, loads ahead of time. When to load is the cache's to know, and how the provider's.

import { createLookAhead } from '../cache/ahead.ts'
import { createDemand } from '../cache/demand.ts'
import { createFailures, type RestOptions } from '../cache/failures.ts'
import {
  type FreshnessOptions,
  freshByAge,
  freshByRun,
  type Run,
  type RunOptions,
} from '../cache/freshness.ts'
import { createJointFlight } from '../cache/joint-flight.ts'
import { createMemoryTier } from '../cache/memory-tier.ts'
import { createPurges } from '../cache/purges.ts'
import {
  type CacheObserver,
  createReadThrough,
  type Explanation,
  type ReadThrough,
} from '../cache/read-through.ts'
import { createSharedTier, type SharedTierObserver } from '../cache/shared-tier.ts'
import { createFlight } from '../cache/single-flight.ts'
import { type Calendar, utcDayMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'
import type { Breaker } from '../provider/breaker.ts'
import type { Provider } from '../provider/client.ts'
import type { ByteStore, FleetStore, FlightStore, Store } from '../stores/store.ts'
import type { Cell, Grid } from '../weather/cell.ts'
import type { Horizon } from '../weather/horizon.ts'
import type { Timeline } from '../weather/timeline.ts'
import { createTimelineCodec, entryOf } from './entry-codec.ts'
import { createProbe } from './probe.ts'
import { createPulse, type Fleet } from './pulse.ts'
import { purgesAfter } from './purge-log.ts'
import { covers, type PurgeScope } from './purge-scope.ts'
import { cellIdOf, keyFor } from './question.ts'

export type TimelinesOptions = FreshnessOptions &
  RunOptions &
  Omit<RestOptions, 'longestAfter'> & {
    readonly freshness: 'age' | 'run'
    /** The longest time that a point which the provider refused is left alone. */
    readonly refusedForMs: number
    /** How long a read waits for a load. */
    readonly waitForMs: number
    /** How long a hold on a cell lasts when its holder is gone. */
    readonly holdForMs: number
    /** What the first tier may hold. */
    readonly memoryBytes: number
    /** How long after it was asked for a cell counts as wanted. */
    readonly demandForMs: number
    /** How many cells make a full batch. */
    readonly batch: number
    /** How many cells there are at most: no more can be wanted. */
    readonly mostCells: number
    /** The provider's weight of one load. */
    readonly weightPerLoad: number
    /** The name of what is asked, whatever the cell. */
    readonly question: string
    readonly horizon: Horizon
  }

export type TimelinesObserver = CacheObserver &
  SharedTierObserver & {
    pulsed(fleet: Fleet): void
    /** The store did not take a heartbeat. */
    heartbeatFailed(): void
    purged(kind: 'soft' | 'hard', scope: PurgeScope): void
  }

export type TimelinesParts = {
  readonly provider: Pick<Provider, 'load' | 'hasten'>
  readonly breaker: Pick<Breaker, 'isProbeDue'>
  readonly store: ByteStore & FlightStore & FleetStore & Pick<Store, 'kind'>
  readonly grid: Grid
  /** Cells that count as wanted although nobody asks, most wanted first. */
  readonly standing: () => readonly Cell[]
  /** The runs that were available, newest first; empty where none is known or followed. */
  readonly recentRuns: () => readonly Run[]
  /** How many times longer than asked for things are to be fresh, at a demand in weight per day. */
  readonly stretch: (demandPerDay: number) => number
  readonly calendar: Calendar
  readonly clock: Clock
  readonly observer: TimelinesObserver
}

export type CellExplanation = Explanation & {
  readonly cell: Cell
  readonly lastAskedAt: number | null
  readonly sharedTier: string
}

export type Timelines = ReadThrough<Cell, Timeline> & {
  /** Hears of purges and takes what is wanted from the shared tier into memory, for so long at most. */
  start(warmForMs: number): Promise<{ warmed: number; wanted: number }>
  /** What the first tier holds now. */
  held(): { entries: number; bytes: number }
  stretch(): number
  /** The provider is well again: cells that failed while it was not are loaded as soon as they are asked for. */
  providerIsBack(): void
  explain(cell: Cell): Promise<CellExplanation>
  close(): Promise<void>
}

const beatEveryMs = 500
const stretchEveryMs = 1_000
// Each read of the shared tier is a round trip: many at once, and time to stop in between.
const warmAtOnce = 256

export const createTimelines = (options: TimelinesOptions, parts: TimelinesParts): Timelines => {
  const { provider, store, grid, recentRuns, calendar, clock, observer } = parts
  const { question, horizon, demandForMs } = options
  const keys = new WeakMap<Cell, string>()
  const keyOf = (cell: Cell): string => {
    let key = keys.get(cell)
    if (key === undefined) {
      key = keyFor(question, cell.id)
      keys.set(cell, key)
    }
    return key
  }

  let fleet: Fleet = { instances: 1, wanted: 0 }
  let stretched = 1
  let stretchedAt = Number.NEGATIVE_INFINITY
  const stretch = (): number => {
    const now = clock.now()
    if (Math.abs(now - stretchedAt) >= stretchEveryMs) {
      stretchedAt = now
      const asked = parts.stretch((fleet.wanted * options.weightPerLoad * utcDayMs) / policy.periodMs())
      // Told as it takes effect: freshness stretches to its most and no further.
      stretched = Math.min(asked, policy.mostStretch())
    }
    return stretched
  }
  const policy =
    options.freshness === 'run' ? freshByRun(options, recentRuns, stretch) : freshByAge(options, stretch)

  const purges = createPurges<PurgeScope>((scope, key) => covers(scope, cellIdOf(key)))
  const memory = createMemoryTier<Timeline>(options.memoryBytes)
  const demand = createDemand<Cell>()
  const longestAfter = (error: unknown): number | undefined =>
    error instanceof AbohawaError && error.code === 'provider_refused' ? options.refusedForMs : undefined
  const failures = createFailures({ ...options, longestAfter }, clock)
  const flights = createJointFlight({ store, holdForMs: options.holdForMs }, error =>
    observer.sharedTierFailed('flight', error),
  )
  const cache = createReadThrough<Cell, Timeline>({
    keyOf,
    load: async (cell, purpose) => {
      // What is known before the load: a purge or a run that comes while it is out is not covered by it.
      const marks = { generation: purges.generation, run: recentRuns()[0]?.availableAt ?? null }
      return entryOf(keyOf(cell), await provider.load(cell, purpose), marks)
    },
    hasten: provider.hasten,
    memory,
    shared: createSharedTier(
      { name: store.kind, store, longestUseMs: policy.longestUseMs },
      createTimelineCodec({ horizon, calendar, clock, newestPurge: () => purges.generation }),
      observer,
    ),
    flights,
    policy,
    purges,
    failures,
    demand,
    waitForMs: options.waitForMs,
    clock,
    observer,
  })
  const lookAhead = createLookAhead<Cell>({
    keyOf,
    demand,
    standing: parts.standing,
    memory,
    policy,
    isResting: key => failures.resting(key) !== undefined,
    refresh: cell => cache.refresh(cell, 'ahead'),
    batch: options.batch,
    demandForMs,
    clock,
  })

  // One look at a time, so that none is heard of twice. What the first look finds was given in an earlier life: it is in
  // force, and no news.
  const hearing = createFlight<'purges', void>()
  let isFirstLook = true
  const look = async (): Promise<void> => {
    const found = await purgesAfter(store, purges.generation)
    for (const purge of found) {
      const isCovered = (key: string) => covers(purge.scope, cellIdOf(key))
      purges.add(purge)
      if (purge.kind === 'hard') memory.deleteWhere(isCovered)
      // A purge asks for a fresh load: no failure of before stands in its way.
      failures.clearWhere(isCovered)
      if (!isFirstLook) observer.purged(purge.kind, purge.scope)
    }
    isFirstLook = false
  }
  const hearPurges = (): Promise<void> => hearing.run('purges', look).result

  const probe = createProbe({
    isDue: parts.breaker.isProbeDue,
    // What was asked for last is the likeliest to be of use.
    cell: () => demand.latest()?.subject ?? parts.standing()[0],
    load: cache.reload,
  })

  const pulse = createPulse({
    store,
    demand,
    question,
    demandForMs,
    clock,
    pulsed: seen => {
      fleet = { ...seen, wanted: Math.min(seen.wanted, options.mostCells) }
      stretchedAt = Number.NEGATIVE_INFINITY
      observer.pulsed(fleet)
    },
    heartbeatFailed: observer.heartbeatFailed,
  })

  // A store that is away is told of by its own observer; here it only means that nothing is new.
  let beating = false
  const beat = async (): Promise<void> => {
    await hearPurges().catch(() => {})
    await pulse.due()
    lookAhead()
    probe()
  }
  const timer = setInterval(() => {
    if (beating) return
    beating = true
    void beat().finally(() => {
      beating = false
    })
  }, beatEveryMs).unref()

  return {
    read: cache.read,
    start: async warmForMs => {
      const deadline = performance.now() + warmForMs
      await hearPurges().catch(() => {})
      await pulse.give()
      const names = await store.wanted(question, clock.now() - demandForMs).catch(() => [])
      const cells = names.flatMap(name => grid.cellNamed(name) ?? [])
      let warmed = 0
      for (let i = 0; i < cells.length && performance.now() < deadline; i += warmAtOnce) {
        const found = await Promise.all(cells.slice(i, i + warmAtOnce).map(cache.warm))
        warmed += found.filter(Boolean).length
      }
      return { warmed, wanted: cells.length }
    },
    held: () => ({ entries: memory.size, bytes: memory.bytes }),
    stretch,
    providerIsBack: failures.forgive,
    explain: async cell => ({
      ...(await cache.explain(cell)),
      cell,
      lastAskedAt: demand.of(keyOf(cell))?.lastAskedAt ?? null,
      sharedTier: store.kind,
    }),
    close: async () => {
      clearInterval(timer)
      // What was asked for last is there for the next life too.
      await pulse.give()
      flights.close()
    },
  }
}
