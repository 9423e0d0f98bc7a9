// The read-through cache: reads memory, then the shared tier, then loads, and fills both tiers. Serves a stale entry at once
// and refreshes it in the background (stale-while-revalidate). Knows entries and keys; what they hold is the caller's. Longer
// than 300 lines, because reads, refreshes and purges act on the same loads.

import { after, type Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'
import type { Demand } from './demand.ts'
import type { Entry, EntryMetadata } from './entry.ts'
import { BackoffError, type Failure, type Failures, retryAtOf } from './failures.ts'
import { FailedElsewhere, type FleetSingleFlight } from './fleet-single-flight.ts'
import { type Freshness, type FreshnessPolicy, freshnessOf, isFromFuture } from './freshness.ts'
import { keepEntry, type MemoryEntry, type MemoryTier } from './memory-tier.ts'
import type { Purge, PurgeKind, Purges } from './purges.ts'
import type { SharedTier } from './shared-tier.ts'
import { createSingleFlight } from './single-flight.ts'
import type { Uncached } from './uncached.ts'

/** `hit`: fresh from a tier. `stale`: from a tier, past its freshness. `miss`: loaded for this read. */
type Outcome = 'hit' | 'stale' | 'miss'
/** `memory`, the name of the shared tier, or `provider`. */
type Source = string

/** Why a load runs: nothing usable is cached, a stale entry was served, or an entry in demand is about to turn stale. */
type Purpose = 'cold' | 'refresh' | 'refresh_ahead'

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
  /** Sets the size of the data kept beside the value; it counts towards the memory tier. */
  readonly setExtraBytes: (bytes: number) => void
}

export type CacheObserver = {
  /** @param ageMs how long ago the entry was fetched */
  onRead(outcome: Outcome, source: Source, ageMs: number): void
  /** A read shared a load that another request had started, here or in another instance. */
  onCollapsed(): void
  /** A load failed. What is cached stays. */
  onLoadFailure(failure: LoadFailure): void
}

export type LoadFailure = {
  /** Of the subject. */
  readonly id: string
  readonly purpose: Purpose
  readonly error: unknown
  /** When the entry in memory expires, ms since the epoch; null where there is none. */
  readonly usableUntil: number | null
}

/** An entry of one tier, for operators. */
export type EntryFacts = {
  readonly fetchedAt: number
  readonly run: number | null
  readonly dueAt: number
  readonly freshUntil: number
  readonly usableUntil: number
  readonly state: Freshness
  readonly purged: 'soft' | 'hard' | null
  readonly bytes: number
}

export type Explanation = {
  readonly key: string
  readonly memory: EntryFacts | null
  readonly shared: EntryFacts | null
  readonly lastFailure: Failure | null
  readonly loading: boolean
}

/** The subject of an entry; its id is the key in memory. */
export type Subject = { readonly id: string }

export type ReadThrough<Of extends Subject, Value> = {
  /**
   * Returns the entry in memory at once, fresh or stale; else a promise. The promise rejects with WaitedTooLong or the loader's
   * error when no tier holds a usable entry.
   * @param consumer whose share of the source a load takes; undefined for none in particular
   */
  read(subject: Of, consumer?: string | undefined): CacheResult<Of, Value> | Promise<CacheResult<Of, Value>>
}

export type Cache<Of extends Subject, Value, Scope> = ReadThrough<Of, Value> & {
  /** Refreshes an entry unless another instance already has. Never rejects; a failure goes to the observer. */
  refresh(subject: Of, purpose: Purpose, consumer?: string | undefined): Promise<void>
  /** Loads an entry whatever is cached. Never rejects; a failure goes to the observer. */
  reload(subject: Of): Promise<void>
  /** Whether a tier holds a fresh entry, which is then in memory too. */
  isFresh(subject: Of): Promise<boolean>
  /**
   * Loads an entry unless a fresh one is cached, with the urgency of a refresh-ahead. Returns whether it loaded.
   * @throws BackoffError when the load failed, or while the backoff of a former failure lasts
   */
  ensure(subject: Of): Promise<boolean>
  /** Copies the entry of the shared tier into memory; true when it is usable. Never loads. */
  warm(subject: Of): Promise<boolean>
  explain(subject: Of): Promise<Explanation>
  /** The entry in memory, without counting as a read. */
  peek(subject: Of): EntryFacts | null
  /** Applies a purge to memory and to later reads, which join no load from before it, and ends the backoff of the keys it covers. */
  purge(purge: Purge<Scope>): void
  /** Purges with a lower number may be unknown: every entry from before it is stale, and later reads join no load from before it. */
  missPurges(before: number): void
  /** Another instance has loaded an entry: a read that would be stale reads the shared tier first. */
  supersede(id: string): void
}

export type CacheParts<Of extends Subject, Value, Scope> = {
  /** The key in the shared tier. */
  readonly keyOf: (subject: Of) => string
  readonly load: (subject: Of, purpose: Purpose, consumer: string | undefined) => Promise<Entry<Value>>
  /** Raises the urgency of a queued load, because a request now waits for it. */
  readonly expedite: (subject: Of, consumer: string | undefined) => void
  /** Why nothing is loaded for a consumer now; undefined when it is. */
  readonly heldBack: (consumer: string | undefined, purpose: Purpose) => Error | undefined
  /** The one consumer whose loads an error is about; undefined where it is about the source or the subject. */
  readonly consumerOf: (error: unknown) => string | undefined
  readonly memory: MemoryTier<Value>
  readonly shared: SharedTier<Value>
  readonly fleet: FleetSingleFlight
  readonly policy: FreshnessPolicy
  readonly purges: Purges<Scope>
  readonly failures: Failures
  /** Collects the keys that no tier holds. */
  readonly uncached: Uncached
  readonly demand: Demand<Of>
  /** How long a read waits when nothing is cached. The load continues after that. */
  readonly waitForMs: number
  readonly clock: Clock
  readonly observer: CacheObserver
}

class WaitedTooLong extends AbohawaError {
  override name = 'WaitedTooLong'

  constructor(waitedMs: number) {
    super('waited_too_long', `nothing was loaded within ${waitedMs} ms`)
  }
}

type Found<Value> = { entry: MemoryEntry<Value>; source: Source; joined: boolean }

export const createReadThrough = <Of extends Subject, Value, Scope>(
  parts: CacheParts<Of, Value, Scope>,
): Cache<Of, Value, Scope> => {
  const { keyOf, load, expedite, memory, shared, fleet, policy, purges, failures, uncached, demand } = parts
  const { heldBack, consumerOf, clock, observer } = parts
  const { waitForMs } = parts
  const finding = createSingleFlight<string, Found<Value>>()
  /** The consumer of the read that joined a flight of `finding` last. */
  const joinedBy = new Map<string, string | undefined>()
  const refreshing = createSingleFlight<string, void>()
  const renewing = createSingleFlight<string, void>()
  // A refresh and a cold read of one key may overlap (its entry expired or was evicted meanwhile): they share a load.
  const loading = createSingleFlight<string, Found<Value>>()

  const stateOf = (entry: EntryMetadata, purged: PurgeKind | undefined, now: number): Freshness => {
    const state = freshnessOf(entry, policy, now)
    if (state === 'expired' || purged === undefined) return state
    return purged === 'hard' ? 'expired' : 'stale'
  }
  /** The state of an entry that memory does not hold. */
  const stateOutside = (id: string, entry: EntryMetadata): Freshness =>
    stateOf(entry, purges.of(id, entry), clock.now())
  const keep = (id: string, entry: Entry<Value>): MemoryEntry<Value> => {
    uncached.delete(id)
    return keepEntry(memory, id, entry, purges.of(id, entry))
  }

  /** Keeps what was read from the shared tier, unless a load that ended meanwhile has brought a newer entry. */
  const keepRead = (id: string, read: Entry<Value>): Pick<Found<Value>, 'entry' | 'source'> => {
    const held = memory.peek(id)
    const now = clock.now()
    const isNewer = held !== undefined && held.fetchedAt > read.fetchedAt && !isFromFuture(held, now)
    return isNewer && stateOf(held, held.purged, now) !== 'expired'
      ? { entry: held, source: 'memory' }
      : { entry: keep(id, read), source: shared.name }
  }

  const loadAndKeep = async (
    subject: Of,
    purpose: Purpose,
    consumer: string | undefined,
    token: number | undefined,
  ) => {
    const { id } = subject
    const queued = load(subject, purpose, consumer)
    if (joinedBy.has(id)) expedite(subject, joinedBy.get(id))
    const loaded = await queued
    const entry = keep(id, loaded)
    failures.clear(id)
    if (await shared.set(keyOf(subject), loaded, token)) return entry
    // A later lease holder has written: this process was stalled, and its entry is older. No tier keeps it.
    const newer = await shared.get(keyOf(subject))
    if (newer) return keep(id, newer)
    memory.delete(id)
    return entry
  }

  // A failure that concerns one consumer does not fail another one that joined: it retries for itself.
  const forConsumer = async <Result>(
    consumer: string | undefined,
    share: () => { result: Promise<Result>; joined: boolean },
  ): Promise<{ result: Result; joined: boolean }> => {
    for (;;) {
      const { result, joined } = share()
      try {
        return { result: await result, joined }
      } catch (error) {
        const concerned = consumerOf(error)
        // A load that this consumer started may have been queued for another one too.
        if (concerned === undefined || concerned === consumer) throw error
      }
    }
  }

  /** @param enough whether an entry of another instance makes the load unnecessary */
  const loadOnce = async (
    subject: Of,
    purpose: Purpose,
    consumer: string | undefined,
    enough: (metadata: EntryMetadata) => boolean,
  ): Promise<Found<Value>> => {
    let isJoined = false
    const load = () =>
      forConsumer(consumer, () => {
        const shared = loading.run(subject.id, () => loadOverFleet(subject, purpose, consumer, enough))
        isJoined = shared.joined
        if (isJoined && purpose === 'cold') expedite(subject, consumer)
        return shared
      })
    try {
      return (await load()).result
    } catch (error) {
      // The budget may grant to a waiting read what it refused to a less urgent load.
      const isOthers = isJoined || error instanceof FailedElsewhere
      if (purpose !== 'cold' || !isOthers || retryAtOf(error) === undefined) throw error
      return (await load()).result
    }
  }
  const loadOverFleet = async (
    subject: Of,
    purpose: Purpose,
    consumer: string | undefined,
    enough: (metadata: EntryMetadata) => boolean,
  ): Promise<Found<Value>> => {
    const { result: entry, joined } = await fleet.run(keyOf(subject), {
      load: token => loadAndKeep(subject, purpose, consumer, token),
      arrived: async () => {
        const found = await shared.get(keyOf(subject), enough)
        if (!found) return undefined
        failures.clear(subject.id)
        return keep(subject.id, found)
      },
      isOfOneConsumer: error => consumerOf(error) !== undefined,
    })
    return { entry, source: 'provider', joined }
  }

  const recordFailure = (id: string, purpose: Purpose, error: unknown): Failure => {
    const failure = failures.record(id, error, purpose === 'cold')
    if (purpose === 'cold') uncached.add(id)
    const entry = memory.peek(id)
    const usableUntil = entry ? Math.floor(policy.usableUntil(entry, clock.now())) : null
    observer.onLoadFailure({ id, purpose, error, usableUntil })
    return failure
  }

  // After a miss in memory: the shared tier, else a load.
  const find = async (subject: Of, consumer: string | undefined): Promise<Found<Value>> => {
    const { id } = subject
    const entry = await shared.get(keyOf(subject))
    if (entry && stateOutside(id, entry) !== 'expired') return { ...keepRead(id, entry), joined: false }
    const failure = failures.backoff(id)
    if (failure?.cold) throw new BackoffError(failure)
    const held = heldBack(consumer, 'cold')
    if (held) throw held
    try {
      return await loadOnce(subject, 'cold', consumer, found => stateOutside(id, found) !== 'expired')
    } catch (error) {
      // The error says nothing of the subject.
      if (consumerOf(error) !== undefined) throw error
      throw new BackoffError(recordFailure(id, 'cold', error))
    }
  }

  const isFreshAndNotDue = (id: string, found: EntryMetadata): boolean =>
    stateOutside(id, found) === 'fresh' && clock.now() < policy.dueAt(found, clock.now())

  const refresh = async (
    subject: Of,
    purpose: Purpose,
    consumer: string | undefined,
    enough = (found: EntryMetadata) => isFreshAndNotDue(subject.id, found),
  ): Promise<void> => {
    try {
      await loadOnce(subject, purpose, consumer, enough)
    } catch (error) {
      if (consumerOf(error) === undefined) recordFailure(subject.id, purpose, error)
    }
  }

  const isFresh = async (subject: Of): Promise<boolean> => {
    const { id } = subject
    const held = memory.peek(id)
    if (held && stateOf(held, held.purged, clock.now()) === 'fresh') return true
    const found = await shared.get(keyOf(subject))
    if (!found || stateOutside(id, found) !== 'fresh') return false
    keepRead(id, found)
    return true
  }

  const factsOf = (id: string, entry: Entry<Value> | undefined): EntryFacts | null => {
    if (!entry) return null
    const now = clock.now()
    const purged = purges.of(id, entry)
    return {
      fetchedAt: entry.fetchedAt,
      run: entry.run,
      dueAt: Math.floor(policy.dueAt(entry, now)),
      freshUntil: policy.freshUntil(entry, now),
      usableUntil: Math.floor(policy.usableUntil(entry, now)),
      state: stateOf(entry, purged, now),
      purged: purged ?? null,
      bytes: entry.bytes,
    }
  }

  const resultOf = (
    subject: Of,
    found: Found<Value>,
    state: Freshness,
    now: number,
    consumer: string | undefined,
  ): CacheResult<Of, Value> => {
    const { entry } = found
    // What was purged while it was loaded is no more than a stale entry of memory.
    const source = found.source === 'provider' && entry.purged !== undefined ? 'memory' : found.source
    const outcome = source === 'provider' ? 'miss' : state === 'fresh' ? 'hit' : 'stale'
    let forwarded = outcome === 'miss'
    let collapsed = outcome === 'miss' && found.joined
    if (outcome === 'stale' && !failures.backoff(subject.id) && !heldBack(consumer, 'refresh')) {
      forwarded = true
      collapsed = refreshing.run(subject.id, () => refresh(subject, 'refresh', consumer)).joined
    }
    const freshUntil = policy.freshUntil(entry, now)
    observer.onRead(outcome, source, now - entry.fetchedAt)
    if (collapsed) observer.onCollapsed()
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
      setExtraBytes: entry.setExtraBytes,
    }
  }

  // Another instance has loaded the entry: its entry replaces the older one, so that no consumer gets a stale answer.
  const renew = async (subject: Of, entry: MemoryEntry<Value>): Promise<void> => {
    const { id } = subject
    const found = await shared.get(keyOf(subject), ({ fetchedAt }) => fetchedAt > entry.fetchedAt)
    entry.isSuperseded = false
    if (!found || stateOutside(id, found) === 'expired' || memory.peek(id) !== entry) return
    failures.clear(id)
    keep(id, found)
  }
  const readRenewed = async (
    subject: Of,
    former: MemoryEntry<Value>,
    consumer: string | undefined,
  ): Promise<CacheResult<Of, Value>> => {
    await renewing.run(subject.id, () => renew(subject, former)).result
    const entry = memory.get(subject.id) ?? former
    const source = entry === former ? 'memory' : shared.name
    const now = clock.now()
    const state = stateOf(entry, entry.purged, now)
    return state === 'expired'
      ? findLater(subject, consumer)
      : resultOf(subject, { entry, source, joined: false }, state, now, consumer)
  }

  const findLater = async (subject: Of, consumer: string | undefined): Promise<CacheResult<Of, Value>> => {
    const { result: found, joined } = await within(
      clock,
      waitForMs,
      forConsumer(consumer, () => {
        const { id } = subject
        const found = finding.run(id, () => find(subject, consumer).finally(() => joinedBy.delete(id)))
        // The load may be queued behind those of another consumer.
        if (found.joined) {
          expedite(subject, consumer)
          joinedBy.set(id, consumer)
        }
        return found
      }),
    )
    const now = clock.now()
    const state = stateOf(found.entry, found.entry.purged, now)
    return resultOf(subject, joined ? { ...found, joined } : found, state, now, consumer)
  }

  // What began before a purge may end with weather from before it, so nobody joins it any more.
  const applyPurges = (isCovered: (id: string) => boolean): void => {
    for (const flights of [finding, refreshing, loading]) flights.forget(isCovered)
    for (const [id, entry] of [...memory.entries()]) {
      if (!isCovered(id)) continue
      const purged = purges.of(id, entry)
      if (purged === 'hard') {
        memory.delete(id)
        uncached.add(id)
      } else if (entry.purged !== 'hard') entry.purged = purged
    }
  }

  return {
    read: (subject, consumer) => {
      const now = clock.now()
      demand.record(subject.id, subject, now, consumer)
      const entry = memory.get(subject.id)
      const state = entry ? stateOf(entry, entry.purged, now) : 'expired'
      if (entry && state === 'stale' && entry.isSuperseded) return readRenewed(subject, entry, consumer)
      if (entry && state !== 'expired')
        return resultOf(subject, { entry, source: 'memory', joined: false }, state, now, consumer)
      return findLater(subject, consumer)
    },
    refresh: (subject, purpose, consumer) =>
      refreshing.run(subject.id, () => refresh(subject, purpose, consumer)).result,
    reload: subject =>
      refreshing.run(subject.id, () => refresh(subject, 'refresh_ahead', undefined, () => false)).result,
    isFresh,
    ensure: async subject => {
      const { id } = subject
      if (await isFresh(subject)) return false
      const failure = failures.backoff(id)
      if (failure) throw new BackoffError(failure)
      try {
        await loadOnce(subject, 'refresh_ahead', undefined, found => stateOutside(id, found) === 'fresh')
        return true
      } catch (error) {
        throw new BackoffError(recordFailure(id, 'refresh_ahead', error))
      }
    },
    warm: async subject => {
      const entry = await shared.get(keyOf(subject))
      if (!entry || stateOutside(subject.id, entry) === 'expired') {
        if (!memory.has(subject.id)) uncached.add(subject.id)
        return false
      }
      keepRead(subject.id, entry)
      return true
    },
    explain: async subject => {
      const { id } = subject
      const key = keyOf(subject)
      return {
        key,
        memory: factsOf(id, memory.peek(id)),
        shared: factsOf(id, await shared.get(key)),
        lastFailure: failures.last(id) ?? null,
        loading: loading.has(id),
      }
    },
    peek: ({ id }) => factsOf(id, memory.peek(id)),
    purge: purge => {
      purges.add(purge)
      const isCovered = (id: string): boolean => purges.covers(purge.scope, id)
      applyPurges(isCovered)
      // A hard purge also removes entries from the shared tier that memory has evicted.
      if (purge.kind === 'hard')
        for (const { key } of demand.since(0)) if (isCovered(key) && !memory.has(key)) uncached.add(key)
      failures.clearWhere(isCovered)
    },
    missPurges: before => {
      purges.miss(before)
      applyPurges(() => true)
    },
    supersede: id => {
      const entry = memory.peek(id)
      if (entry) entry.isSuperseded = true
    },
  }
}

// Rejects after the given time; a later result or failure is dropped.
const within = <Result>(clock: Clock, ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const endTimer = after(clock, ms, () => reject(new WaitedTooLong(ms)))
  result.then(resolve, reject).finally(endTimer)
  return promise
}
