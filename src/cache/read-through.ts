// The read-through cache: reads memory, then the shared tier, then loads, and fills both tiers. Serves a stale entry at once
// and refreshes it in the background (stale-while-revalidate). At most one flight of a key is under way, whatever it is for.
// Longer than 300 lines, because reads, refreshes and purges act on the same flights.

import { after, type Clock } from '../common/clock.ts'
import { AbohawaError } from '../common/errors.ts'
import type { Urgency } from '../provider/queue.ts'
import type { Demand } from './demand.ts'
import { BackoffError, type Failure, type Failures, type Uncached } from './failures.ts'
import type { FleetSingleFlight } from './fleet-single-flight.ts'
import {
  type Entry,
  type EntryMetadata,
  type Freshness,
  type FreshnessPolicy,
  freshnessOf,
  isFromFuture,
} from './freshness.ts'
import { covers, type Purge, type Purges } from './purges.ts'
import { type Derived, keepEntry, type MemoryEntry, type MemoryTier, type SharedTier } from './tiers.ts'

/** `hit`: fresh from a tier. `stale`: from a tier, past its freshness. `miss`: loaded for this read. */
type Outcome = 'hit' | 'stale' | 'miss'
/** `memory`, the name of the shared tier, or `provider`. */
type Source = string

export type CacheResult<Of, Value> = {
  readonly subject: Of
  readonly value: Value
  /** When the read ended, ms since the epoch. */
  readonly readAt: number
  readonly fetchedAt: number
  readonly freshUntil: number
  readonly outcome: Outcome
  readonly source: Source
  /** Whether this read started or joined a load: false for a stale result during backoff. */
  readonly forwarded: boolean
  /** Whether this read shares a load that another request started, here or in another instance. */
  readonly collapsed: boolean
  /** The name of the upstream that gave it; undefined where there is one. */
  readonly upstream?: string | undefined
  /** Kept as long as the value stays in the memory tier, and counts towards it. */
  readonly derived: Derived
}

export type CacheObserver = {
  /** @param ageMs how long ago the entry was fetched */
  onRead(outcome: Outcome, source: Source, ageMs: number): void
  /** A read shared a load that another request had started, here or in another instance. */
  onCollapsed(): void
  /** Nothing was loaded, because a consumer's share of the source is used up. */
  onShareUsedUp(purpose: Urgency): void
  /** A load failed. What is cached stays. */
  onLoadFailure(failure: LoadFailure): void
  /** A read failed, or had something stale that is not being refreshed, because of an earlier failure. */
  onShortfall(met: 'failed' | 'stale', error: unknown): void
}

export type LoadFailure = {
  /** Of the subject. */
  readonly id: string
  readonly purpose: Urgency
  readonly error: unknown
  /** When the entry in memory expires, ms since the epoch; null where there is none. */
  readonly usableUntil: number | null
}

/** The subject of an entry; its id is the key in memory. */
export type Subject = { readonly id: string }

export type ReadThrough<Of extends Subject, Value> = {
  /**
   * Returns a fresh entry in memory at once, and a stale one that is being refreshed; else a promise. The promise rejects with
   * `waited_too_long` or the loader's error when no tier holds a usable entry.
   * @param consumer whose share of the source a load takes; undefined for none in particular
   */
  read(subject: Of, consumer?: string | undefined): CacheResult<Of, Value> | Promise<CacheResult<Of, Value>>
}

export type CacheParts<Of extends Subject, Value> = {
  /** The key in the shared tier. */
  readonly keyOf: (subject: Of) => string
  readonly load: (subject: Of, purpose: Urgency, consumer: string | undefined) => Promise<Entry<Value>>
  /** Raises the urgency of a queued load, because a request now waits for it. */
  readonly expedite: (subject: Of, consumer: string | undefined) => void
  /** Why nothing is loaded for a consumer now; undefined when it is. */
  readonly heldBack: (consumer: string | undefined, purpose: Urgency) => Error | undefined
  /** The one consumer whose loads an error is about; undefined where it is about the source or the subject. */
  readonly consumerOf: (error: unknown) => string | undefined
  readonly memory: MemoryTier<Value>
  readonly shared: Pick<SharedTier<Value>, 'name' | 'get' | 'set'>
  readonly fleet: FleetSingleFlight
  readonly policy: FreshnessPolicy
  readonly purges: Purges
  readonly failures: Failures
  /** Collects the keys that no tier holds. */
  readonly uncached: Uncached
  readonly demand: Demand<Of>
  /** How long a read waits when nothing is cached. The load continues after that. */
  readonly waitForMs: number
  readonly clock: Clock
  readonly observer: CacheObserver
}

// Within a second the order of reads does not matter, and moving an entry costs more than finding it.
const moveEveryMs = 1_000

type Found<Value> = { entry: MemoryEntry<Value>; source: Source; joined: boolean }

/** What a caller wants of a key. */
type Want = {
  readonly purpose: Urgency
  readonly consumer: string | undefined
  /** Whether an entry of the shared tier makes the load unnecessary; undefined to load whatever is cached. */
  readonly enough: ((found: EntryMetadata) => boolean) | undefined
}

/** All that runs for a key: the look-up in the shared tier, then the load. */
type Flight<Value> = {
  readonly purpose: Urgency
  /** The number of the newest purge at its start. */
  readonly generation: number
  /** Resolves when the shared tier was looked at; undefined from then on. */
  looked: Promise<void> | undefined
  /** Whether the source is asked, from when on the load can be expedited. */
  isLoading: boolean
  /** The last read that waits for what others began. */
  waiting: { readonly consumer: string | undefined } | undefined
  readonly result: Promise<Found<Value>>
}

export const createReadThrough = <Of extends Subject, Value>(parts: CacheParts<Of, Value>) => {
  const { keyOf, load, expedite, memory, shared, fleet, policy, purges, failures, uncached, demand } = parts
  const { heldBack, consumerOf, waitForMs, clock, observer } = parts
  const flights = new Map<string, Flight<Value>>()

  const stateOf = (entry: MemoryEntry<Value>, now: number): Freshness =>
    freshnessOf(entry, policy, now, entry.purged)
  /** The state of an entry that memory does not hold. */
  const stateOutside = (id: string, entry: EntryMetadata): Freshness =>
    freshnessOf(entry, policy, clock.now(), purges.of(id, entry))
  const keep = (id: string, entry: Entry<Value>): MemoryEntry<Value> => {
    uncached.delete(id)
    return keepEntry(memory, id, entry, purges.of(id, entry))
  }

  /** Keeps what was read from the shared tier, unless a load that ended meanwhile has brought a newer entry. */
  const keepRead = (id: string, read: Entry<Value>): Pick<Found<Value>, 'entry' | 'source'> => {
    const held = memory.peek(id)
    const now = clock.now()
    const isNewer = held !== undefined && held.fetchedAt > read.fetchedAt && !isFromFuture(held, now)
    return isNewer && stateOf(held, now) !== 'expired'
      ? { entry: held, source: 'memory' }
      : { entry: keep(id, read), source: shared.name }
  }

  const recordFailure = (id: string, purpose: Urgency, error: unknown): Failure => {
    const failure = failures.record(id, error, purpose === 'cold')
    if (purpose === 'cold') uncached.add(id)
    const entry = memory.peek(id)
    const usableUntil = entry ? Math.floor(policy.usableUntil(entry, clock.now())) : null
    observer.onLoadFailure({ id, purpose, error, usableUntil })
    return failure
  }

  const loadAndKeep = async (
    subject: Of,
    flight: Flight<Value>,
    consumer: string | undefined,
    holder: string | undefined,
  ): Promise<MemoryEntry<Value>> => {
    const { id } = subject
    const queued = load(subject, flight.purpose, consumer)
    flight.isLoading = true
    if (flight.waiting) expedite(subject, flight.waiting.consumer)
    const loaded = await queued
    const entry = keep(id, loaded)
    failures.clear(id)
    if (await shared.set(keyOf(subject), loaded, holder)) return entry
    // This process was stalled, and has lost its lease: another instance may have written a newer entry.
    const newer = await shared.get(keyOf(subject), ({ fetchedAt }) => fetchedAt > loaded.fetchedAt)
    return newer ? keep(id, newer) : entry
  }

  const fly = async (
    subject: Of,
    flight: Flight<Value>,
    { consumer, enough }: Want,
    endLook: () => void,
  ): Promise<Found<Value>> => {
    const { id } = subject
    const { purpose } = flight
    const entry = enough && (await shared.get(keyOf(subject), enough))
    const read = entry && keepRead(id, entry)
    flight.looked = undefined
    endLook()
    if (read) {
      if (purpose !== 'cold') failures.clear(id)
      return { ...read, joined: false }
    }
    if (purpose === 'cold') {
      const failure = failures.backoff(id)
      if (failure?.cold) throw new BackoffError(failure)
      const held = heldBack(consumer, purpose)
      if (held) {
        observer.onShareUsedUp(purpose)
        throw held
      }
    }
    try {
      const { result: entry, joined } = await fleet.run(keyOf(subject), {
        load: holder => loadAndKeep(subject, flight, consumer, holder),
        arrived: async () => {
          const found = enough && (await shared.get(keyOf(subject), enough))
          if (!found) return undefined
          failures.clear(id)
          return keep(id, found)
        },
        // What was refused to a less urgent load may be granted to a read that waits.
        isOfAll: error => purpose === 'cold' && consumerOf(error) === undefined,
      })
      return { entry, source: 'provider', joined }
    } catch (error) {
      // The error says nothing of the subject.
      if (consumerOf(error) !== undefined) {
        observer.onShareUsedUp(purpose)
        throw error
      }
      throw new BackoffError(recordFailure(id, purpose, error))
    }
  }

  // A flight from before a purge may bring weather from before it, so nobody joins it any more.
  const joinable = (id: string, { enough }: Want): Flight<Value> | undefined => {
    const flight = flights.get(id)
    if (!flight || purges.of(id, flight) !== undefined) return undefined
    return enough || flight.isLoading ? flight : undefined
  }
  const join = (subject: Of, want: Want): { flight: Flight<Value>; joined: boolean } => {
    const { id } = subject
    const { purpose, consumer } = want
    const underWay = joinable(id, want)
    if (underWay) {
      if (purpose === 'cold') {
        underWay.waiting = { consumer }
        // The load may be queued behind those of another consumer.
        if (underWay.isLoading) expedite(subject, consumer)
      }
      return { flight: underWay, joined: true }
    }
    const { promise, resolve } = Promise.withResolvers<Found<Value>>()
    const look = Promise.withResolvers<void>()
    const flight: Flight<Value> = {
      purpose,
      generation: purges.generation,
      looked: look.promise,
      isLoading: false,
      waiting: undefined,
      // Forgotten at once, so that nobody gets an earlier failure.
      result: promise.finally(() => {
        if (flights.get(id) === flight) flights.delete(id)
      }),
    }
    flights.set(id, flight)
    resolve(fly(subject, flight, want, look.resolve))
    return { flight, joined: false }
  }

  /** What the flight of a key brings: the one under way, or one that begins. */
  const obtain = async (subject: Of, want: Want): Promise<Found<Value>> => {
    for (;;) {
      const { flight, joined } = join(subject, want)
      try {
        const found = await flight.result
        return joined ? { ...found, joined } : found
      } catch (error) {
        // A failure that concerns one consumer does not fail another one that waited for the same load, which may have been
        // queued for several; nor does one of a less urgent load fail a read.
        const concerned = consumerOf(error)
        const isOfAnother = concerned !== undefined && (joined || concerned !== want.consumer)
        const wasLessUrgent = want.purpose === 'cold' && flight.purpose !== 'cold'
        if (!isOfAnother && !wasLessUrgent) throw error
      }
    }
  }

  const isFreshOutside = (id: string, found: EntryMetadata): boolean => stateOutside(id, found) === 'fresh'
  const refreshWant = ({ id }: Of, purpose: Urgency, consumer: string | undefined): Want => ({
    purpose,
    consumer,
    enough: found => isFreshOutside(id, found) && clock.now() < policy.dueAt(found, clock.now()),
  })
  /** Never rejects: the flight records its failure. */
  const inBackground = (subject: Of, want: Want): Promise<void> =>
    obtain(subject, want).then(
      () => {},
      () => {},
    )

  const isFresh = async (subject: Of): Promise<boolean> => {
    const { id } = subject
    const held = memory.peek(id)
    if (held && stateOf(held, clock.now()) === 'fresh') return true
    const found = await shared.get(keyOf(subject))
    if (!found || !isFreshOutside(id, found)) return false
    keepRead(id, found)
    return true
  }

  const resultOf = (
    subject: Of,
    found: Found<Value>,
    state: Freshness,
    now: number,
    consumer: string | undefined,
    hasBegun = false,
  ): CacheResult<Of, Value> => {
    const { entry } = found
    // What was purged while it was loaded is no more than a stale entry of memory.
    const source = found.source === 'provider' && entry.purged !== undefined ? 'memory' : found.source
    const outcome = source === 'provider' ? 'miss' : state === 'fresh' ? 'hit' : 'stale'
    let forwarded = outcome === 'miss'
    let collapsed = outcome === 'miss' && found.joined
    if (outcome === 'stale') {
      const failure = failures.backoff(subject.id)
      if (failure) observer.onShortfall('stale', failure.error)
      else if (heldBack(consumer, 'refresh')) observer.onShareUsedUp('refresh')
      else {
        const want = refreshWant(subject, 'refresh', consumer)
        forwarded = true
        collapsed = !hasBegun && joinable(subject.id, want) !== undefined
        void inBackground(subject, want)
      }
    }
    observer.onRead(outcome, source, now - entry.fetchedAt)
    if (collapsed) observer.onCollapsed()
    return describe(subject, entry, now, outcome, source, forwarded, collapsed)
  }
  const describe = (
    subject: Of,
    entry: MemoryEntry<Value>,
    now: number,
    outcome: Outcome,
    source: Source,
    forwarded: boolean,
    collapsed: boolean,
  ): CacheResult<Of, Value> => {
    const freshUntil = policy.freshUntil(entry, now)
    return {
      subject,
      value: entry.value,
      readAt: now,
      fetchedAt: entry.fetchedAt,
      // A purged entry is stale whatever its age.
      freshUntil: outcome === 'stale' ? Math.min(freshUntil, now) : freshUntil,
      outcome,
      source,
      forwarded,
      collapsed,
      upstream: entry.upstream,
      derived: entry.derived,
    }
  }

  /** Looks once whether another instance has loaded since; while the load runs, the stale entry is served at once. */
  const readStale = (
    subject: Of,
    entry: MemoryEntry<Value>,
    now: number,
    consumer: string | undefined,
  ): CacheResult<Of, Value> | Promise<CacheResult<Of, Value>> => {
    const { id } = subject
    const stale = { entry, source: 'memory', joined: false }
    const want = refreshWant(subject, 'refresh', consumer)
    const underWay = joinable(id, want)
    if ((underWay && !underWay.looked) || failures.backoff(id) || heldBack(consumer, 'refresh'))
      return resultOf(subject, stale, 'stale', now, consumer)
    if (!underWay) void inBackground(subject, want)
    const looked = flights.get(id)?.looked ?? Promise.resolve()
    return looked.then(() => {
      const newer = memory.get(id) ?? entry
      const found = newer === entry ? stale : { entry: newer, source: shared.name, joined: false }
      const state = stateOf(newer, clock.now())
      return state === 'expired'
        ? readLater(subject, consumer)
        : resultOf(subject, found, state, clock.now(), consumer, !underWay)
    })
  }
  const readLater = async (subject: Of, consumer: string | undefined): Promise<CacheResult<Of, Value>> => {
    const enough = (found: EntryMetadata): boolean => stateOutside(subject.id, found) !== 'expired'
    try {
      const found = await within(clock, waitForMs, obtain(subject, { purpose: 'cold', consumer, enough }))
      const now = clock.now()
      return resultOf(subject, found, stateOf(found.entry, now), now, consumer)
    } catch (error) {
      observer.onShortfall('failed', error)
      throw error
    }
  }

  const read: ReadThrough<Of, Value>['read'] = (subject, consumer) => {
    const now = clock.now()
    demand.record(subject.id, subject, now, consumer)
    const entry = memory.peek(subject.id)
    if (entry && Math.abs(now - entry.movedAt) >= moveEveryMs) {
      entry.movedAt = now
      memory.get(subject.id)
    }
    const state = entry ? stateOf(entry, now) : 'expired'
    if (entry && state === 'stale') return readStale(subject, entry, now, consumer)
    if (entry && state === 'fresh')
      return resultOf(subject, { entry, source: 'memory', joined: false }, state, now, consumer)
    return readLater(subject, consumer)
  }

  return {
    read,
    /** What memory holds, fresh or stale, without a trace: nothing is loaded or counted. Undefined where a read would wait. */
    peek: (subject: Of): CacheResult<Of, Value> | undefined => {
      const now = clock.now()
      const entry = memory.peek(subject.id)
      const state = entry ? stateOf(entry, now) : 'expired'
      if (!entry || state === 'expired') return undefined
      return describe(subject, entry, now, state === 'fresh' ? 'hit' : 'stale', 'memory', false, false)
    },
    /** Refreshes an entry unless another instance already has. Never rejects; a failure goes to the observer. */
    refresh: (subject: Of, purpose: Urgency, consumer?: string | undefined): Promise<void> =>
      inBackground(subject, refreshWant(subject, purpose, consumer)),
    /** Loads an entry whatever is cached. Never rejects; a failure goes to the observer. */
    reload: (subject: Of): Promise<void> =>
      inBackground(subject, { purpose: 'refresh_ahead', consumer: undefined, enough: undefined }),
    /** Whether a tier holds a fresh entry, which is then in memory too. */
    isFresh,
    /**
     * Loads an entry unless a fresh one is cached, with the urgency of a refresh-ahead. Returns whether it loaded.
     * @throws BackoffError when the load failed, or while the backoff of a former failure lasts
     */
    ensure: async (subject: Of): Promise<boolean> => {
      const { id } = subject
      if (await isFresh(subject)) return false
      const failure = failures.backoff(id)
      if (failure) throw new BackoffError(failure)
      const enough = (found: EntryMetadata): boolean => isFreshOutside(id, found)
      await obtain(subject, { purpose: 'refresh_ahead', consumer: undefined, enough })
      return true
    },
    /** Copies the entry of the shared tier into memory; true when it is usable. Never loads. */
    warm: async (subject: Of): Promise<boolean> => {
      const entry = await shared.get(keyOf(subject))
      if (!entry || stateOutside(subject.id, entry) === 'expired') {
        if (!memory.has(subject.id)) uncached.add(subject.id)
        return false
      }
      keepRead(subject.id, entry)
      return true
    },
    isLoading: ({ id }: Of): boolean => flights.has(id),
    /**
     * Applies purges that are in force from now on to memory, and ends the backoff of the keys that they cover. Later reads join
     * no load from before them.
     * @param isWhole false where other purges may be unknown, so that any entry may be covered
     */
    purged: (added: readonly Purge[], isWhole: boolean): void => {
      if (isWhole && added.length === 0) return
      const isPurged = (id: string): boolean => added.some(({ scope }) => covers(scope, id))
      for (const [id, entry] of [...memory.entries()]) {
        if (isWhole && !isPurged(id)) continue
        const purged = purges.of(id, entry)
        if (purged === 'hard') {
          memory.delete(id)
          uncached.add(id)
        } else if (entry.purged !== 'hard') entry.purged = purged
      }
      // A hard purge also removes entries from the shared tier that memory has evicted.
      const hard = added.filter(({ kind }) => kind === 'hard')
      if (hard.length > 0)
        for (const { key } of demand.since(0))
          if (!memory.has(key) && hard.some(({ scope }) => covers(scope, key))) uncached.add(key)
      failures.clearWhere(isPurged)
    },
  }
}

// Rejects after the given time with `waited_too_long`; a later result or failure is dropped.
const within = <Result>(clock: Clock, ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const late = () => reject(new AbohawaError('waited_too_long', `nothing was loaded within ${ms} ms`))
  const endTimer = after(clock, ms, late)
  result.then(resolve, reject).finally(endTimer)
  return promise
}
