// The read-through cache: reads memory, then the shared tier, then loads, and fills both tiers. Serves a stale entry at once
// and refreshes it in the background (stale-while-revalidate). Knows entries and keys; what they hold is the caller's.

import type { Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'
import type { Demand } from './demand.ts'
import type { Entry, EntryMetadata } from './entry.ts'
import { BackoffError, type Failure, type Failures } from './failures.ts'
import type { FleetSingleFlight } from './fleet-single-flight.ts'
import { type Freshness, type FreshnessPolicy, freshnessOf } from './freshness.ts'
import type { MemoryEntry, MemoryTier } from './memory-tier.ts'
import type { Purges } from './purges.ts'
import type { SharedTier } from './shared-tier.ts'
import { createSingleFlight } from './single-flight.ts'

/** `hit`: fresh from a tier. `stale`: from a tier, past its freshness. `miss`: loaded for this read. */
type Outcome = 'hit' | 'stale' | 'miss'
/** `memory`, the name of the shared tier, or `provider`. */
type Source = string

/** Why a load runs: nothing usable is cached, a stale entry was served, or an entry in demand is about to turn stale. */
type Purpose = 'cold' | 'refresh' | 'refresh_ahead'

export type CacheResult<Value> = {
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
  onRead(result: Omit<CacheResult<unknown>, 'value' | 'setExtraBytes'>): void
  /** A background refresh or a refresh-ahead failed; the old entry stays. */
  onRefreshFailure(error: unknown, purpose: Purpose): void
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

export type ReadThrough<Subject, Value> = {
  /**
   * Returns at once what memory holds, fresh or stale; else a promise. The promise rejects with WaitedTooLong or the
   * loader's error when no tier holds anything usable.
   */
  read(subject: Subject): CacheResult<Value> | Promise<CacheResult<Value>>
}

export type Cache<Subject, Value> = ReadThrough<Subject, Value> & {
  /** Refreshes an entry unless another instance already has. Never rejects; a failure goes to the observer. */
  refresh(subject: Subject, purpose: Purpose): Promise<void>
  /** Loads an entry whatever is cached. Never rejects; a failure goes to the observer. */
  reload(subject: Subject): Promise<void>
  /** Copies the entry of the shared tier into memory; true when it is usable. Never loads. */
  warm(subject: Subject): Promise<boolean>
  explain(subject: Subject): Promise<Explanation>
}

export type CacheParts<Subject, Value> = {
  readonly keyOf: (subject: Subject) => string
  readonly load: (subject: Subject, purpose: Purpose) => Promise<Entry<Value>>
  /** Raises the urgency of a queued load, because a request now waits for it. */
  readonly expedite: (subject: Subject) => void
  readonly memory: MemoryTier<Value>
  readonly shared: SharedTier<Value>
  readonly fleet: FleetSingleFlight
  readonly policy: FreshnessPolicy
  readonly purges: Purges<unknown>
  readonly failures: Failures
  readonly demand: Demand<Subject>
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

export const createReadThrough = <Subject, Value>(
  parts: CacheParts<Subject, Value>,
): Cache<Subject, Value> => {
  const { keyOf, load, expedite, memory, shared, fleet, policy, purges, failures, demand, clock, observer } =
    parts
  const finding = createSingleFlight<string, Found<Value>>()
  const refreshing = createSingleFlight<string, void>()
  // A refresh and a cold read of one key may overlap (its entry expired or was evicted meanwhile): they share a load.
  const loading = createSingleFlight<string, Found<Value>>()

  const stateOf = (key: string, entry: EntryMetadata, now = clock.now()): Freshness => {
    const state = freshnessOf(entry, policy, now)
    const purged = state === 'expired' ? undefined : purges.of(key, entry)
    if (purged === 'hard') return 'expired'
    return purged === 'soft' ? 'stale' : state
  }

  const loadAndKeep = async (subject: Subject, key: string, purpose: Purpose, token: number | undefined) => {
    const loaded = await load(subject, purpose)
    const entry = memory.set(key, loaded)
    failures.clear(key)
    if (await shared.set(key, loaded, token)) return entry
    // A later lease holder has written: this process was stalled, and its entry is older. No tier keeps it.
    const newer = await shared.get(key)
    if (newer) return memory.set(key, newer)
    memory.delete(key)
    return entry
  }

  /** @param enough whether an entry of another instance makes the load unnecessary */
  const loadOnce = (
    subject: Subject,
    key: string,
    purpose: Purpose,
    enough: (metadata: EntryMetadata) => boolean,
  ): Promise<Found<Value>> => {
    const { result, joined } = loading.run(key, async () => {
      const { result: entry, joined: elsewhere } = await fleet.run(key, {
        load: token => loadAndKeep(subject, key, purpose, token),
        arrived: async () => {
          const found = await shared.get(key, enough)
          if (!found) return undefined
          failures.clear(key)
          return memory.set(key, found)
        },
      })
      return { entry, source: 'provider', joined: elsewhere }
    })
    if (joined && purpose === 'cold') expedite(subject)
    return result
  }

  // After a miss in memory: the shared tier, else a load.
  const find = async (subject: Subject, key: string): Promise<Found<Value>> => {
    const entry = await shared.get(key)
    if (entry && stateOf(key, entry) !== 'expired')
      return { entry: memory.set(key, entry), source: shared.name, joined: false }
    const failure = failures.backoff(key)
    if (failure?.cold) throw new BackoffError(failure)
    try {
      return await loadOnce(subject, key, 'cold', found => stateOf(key, found) !== 'expired')
    } catch (error) {
      throw new BackoffError(failures.record(key, error, true))
    }
  }

  const isFreshAndNotDue = (key: string, found: EntryMetadata): boolean =>
    stateOf(key, found) === 'fresh' && clock.now() < policy.dueAt(found, clock.now())

  const refresh = async (
    subject: Subject,
    key: string,
    purpose: Purpose,
    enough = (found: EntryMetadata) => isFreshAndNotDue(key, found),
  ): Promise<void> => {
    try {
      await loadOnce(subject, key, purpose, enough)
    } catch (error) {
      failures.record(key, error, false)
      observer.onRefreshFailure(error, purpose)
    }
  }

  const factsOf = (key: string, entry: Entry<Value> | undefined): EntryFacts | null => {
    if (!entry) return null
    const now = clock.now()
    return {
      fetchedAt: entry.fetchedAt,
      run: entry.run,
      dueAt: Math.floor(policy.dueAt(entry, now)),
      freshUntil: policy.freshUntil(entry, now),
      usableUntil: Math.floor(policy.usableUntil(entry, now)),
      state: stateOf(key, entry),
      purged: purges.of(key, entry) ?? null,
      bytes: entry.bytes,
    }
  }

  const resultOf = (
    subject: Subject,
    key: string,
    found: Found<Value>,
    state: Freshness,
    now: number,
  ): CacheResult<Value> => {
    const { entry, source } = found
    const outcome = source === 'provider' ? 'miss' : state === 'fresh' ? 'hit' : 'stale'
    let forwarded = outcome === 'miss'
    let collapsed = outcome === 'miss' && found.joined
    if (outcome === 'stale' && !failures.backoff(key)) {
      forwarded = true
      collapsed = refreshing.run(key, () => refresh(subject, key, 'refresh')).joined
    }
    const freshUntil = policy.freshUntil(entry, now)
    const result = {
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
    } as const
    observer.onRead(result)
    return result
  }

  const findLater = async (subject: Subject, key: string): Promise<CacheResult<Value>> => {
    const { result, joined } = finding.run(key, () => find(subject, key))
    const found = await within(parts.waitForMs, result)
    const now = clock.now()
    return resultOf(subject, key, joined ? { ...found, joined } : found, stateOf(key, found.entry, now), now)
  }

  return {
    read: subject => {
      const key = keyOf(subject)
      const now = clock.now()
      demand.ask(key, subject, now)
      const entry = memory.get(key)
      const state = entry ? stateOf(key, entry, now) : 'expired'
      if (entry && state !== 'expired')
        return resultOf(subject, key, { entry, source: 'memory', joined: false }, state, now)
      return findLater(subject, key)
    },
    refresh: (subject, purpose) => {
      const key = keyOf(subject)
      return refreshing.run(key, () => refresh(subject, key, purpose)).result
    },
    reload: subject => {
      const key = keyOf(subject)
      return refreshing.run(key, () => refresh(subject, key, 'refresh_ahead', () => false)).result
    },
    warm: async subject => {
      const key = keyOf(subject)
      const entry = await shared.get(key)
      if (!entry || stateOf(key, entry) === 'expired') return false
      memory.set(key, entry)
      return true
    },
    explain: async subject => {
      const key = keyOf(subject)
      return {
        key,
        memory: factsOf(key, memory.peek(key)),
        shared: factsOf(key, await shared.get(key)),
        lastFailure: failures.last(key) ?? null,
        loading: loading.has(key),
      }
    },
  }
}

// Rejects after the given time; a later result or failure is dropped.
const within = <Result>(ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => reject(new WaitedTooLong(ms)), ms)
  result.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
