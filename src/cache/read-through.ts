// The story of a read: memory, then the shared tier, then the loader; both tiers are filled on the way back. A stale
// entry is served at once while one load runs behind it. Knows entries and keys, not what they hold.

import type { Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'
import type { Demand } from './demand.ts'
import type { Entry, Notes } from './entry.ts'
import { type Failure, type Failures, StillResting } from './failures.ts'
import { type Freshness, type FreshnessPolicy, freshnessOf } from './freshness.ts'
import type { JointFlight } from './joint-flight.ts'
import type { MemoryEntry, MemoryTier } from './memory-tier.ts'
import type { Purges } from './purges.ts'
import type { SharedTier } from './shared-tier.ts'
import { createFlight } from './single-flight.ts'

/** `hit`: served fresh from a tier. `stale`: served from a tier past its freshness. `miss`: loaded for this read. */
type Outcome = 'hit' | 'stale' | 'miss'
/** `memory`, the name of the shared tier, or `provider`. */
type Source = string

/** Why something is loaded: nothing usable is there, a stale entry was served, or one in demand is about to turn stale. */
type Purpose = 'cold' | 'refresh' | 'ahead'

export type Reading<Value> = {
  readonly value: Value
  /** When it was in hand. */
  readonly readAt: number
  readonly fetchedAt: number
  readonly freshUntil: number
  readonly outcome: Outcome
  readonly source: Source
  /** Whether a load was asked for because of this read: false for a stale answer while the last failure rests. */
  readonly forwarded: boolean
  /** Whether this read shares a load that another had begun, here or in another instance. */
  readonly collapsed: boolean
  /** Sets how many bytes are kept beside the value, so that they count as the memory tier's for as long as it is there. */
  readonly setExtraBytes: (bytes: number) => void
}

export type CacheObserver = {
  read(reading: Omit<Reading<unknown>, 'value' | 'setExtraBytes'>): void
  /** A load behind a stale answer, or ahead of time, failed; the old entry stays. */
  refreshFailed(error: unknown, purpose: Purpose): void
}

/** What is known about an entry in one tier. */
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
   * What memory has, fresh or stale, at once; else a promise that rejects with WaitedTooLong, or whatever the loader
   * threw, when no tier has anything usable.
   */
  read(subject: Subject): Reading<Value> | Promise<Reading<Value>>
}

export type Cache<Subject, Value> = ReadThrough<Subject, Value> & {
  /** Loads an entry anew unless another has done so meanwhile; what fails is told to the observer. */
  refresh(subject: Subject, purpose: Purpose): Promise<void>
  /** Loads an entry anew whatever there is; what fails is told to the observer. */
  reload(subject: Subject): Promise<void>
  /** Takes what the shared tier holds into memory; answers whether it was of use. Never loads. */
  warm(subject: Subject): Promise<boolean>
  explain(subject: Subject): Promise<Explanation>
}

export type CacheParts<Subject, Value> = {
  readonly keyOf: (subject: Subject) => string
  readonly load: (subject: Subject, purpose: Purpose) => Promise<Entry<Value>>
  /** Someone now waits for a load that was begun with less hurry. */
  readonly hasten: (subject: Subject) => void
  readonly memory: MemoryTier<Value>
  readonly shared: SharedTier<Value>
  readonly flights: JointFlight
  readonly policy: FreshnessPolicy
  readonly purges: Purges<unknown>
  readonly failures: Failures
  readonly demand: Demand<Subject>
  /** How long a read waits when there is nothing to serve. The load goes on for whoever asks next. */
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
  const { keyOf, load, hasten, memory, shared, flights, policy, purges, failures, demand, clock, observer } =
    parts
  const finding = createFlight<string, Found<Value>>()
  const refreshing = createFlight<string, void>()
  // A refresh and a first read of the same key may overlap (its entry expired or was evicted meanwhile): one load.
  const loading = createFlight<string, Found<Value>>()

  const stateOf = (key: string, entry: Notes, now = clock.now()): Freshness => {
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
    // Another has loaded it while this process stood still: what came here is older, and lives in no tier.
    const newer = await shared.get(key)
    if (newer) return memory.set(key, newer)
    memory.delete(key)
    return entry
  }

  /** @param enough whether an entry that another instance left makes the load needless */
  const loadTogether = (
    subject: Subject,
    key: string,
    purpose: Purpose,
    enough: (notes: Notes) => boolean,
  ): Promise<Found<Value>> => {
    const { result, joined } = loading.run(key, async () => {
      const { result: entry, joined: elsewhere } = await flights.run(key, {
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
    if (joined && purpose === 'cold') hasten(subject)
    return result
  }

  // Past the first tier: what another instance or an earlier life of this one left, else a load.
  const find = async (subject: Subject, key: string): Promise<Found<Value>> => {
    const entry = await shared.get(key)
    if (entry && stateOf(key, entry) !== 'expired')
      return { entry: memory.set(key, entry), source: shared.name, joined: false }
    const resting = failures.resting(key)
    if (resting?.cold) throw new StillResting(resting)
    try {
      return await loadTogether(subject, key, 'cold', found => stateOf(key, found) !== 'expired')
    } catch (error) {
      throw new StillResting(failures.note(key, error, true))
    }
  }

  const isFreshAndNotDue = (key: string, found: Notes): boolean =>
    stateOf(key, found) === 'fresh' && clock.now() < policy.dueAt(found, clock.now())

  const refresh = async (
    subject: Subject,
    key: string,
    purpose: Purpose,
    enough = (found: Notes) => isFreshAndNotDue(key, found),
  ): Promise<void> => {
    try {
      await loadTogether(subject, key, purpose, enough)
    } catch (error) {
      failures.note(key, error, false)
      observer.refreshFailed(error, purpose)
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

  const told = (
    subject: Subject,
    key: string,
    found: Found<Value>,
    state: Freshness,
    now: number,
  ): Reading<Value> => {
    const { entry, source } = found
    const outcome = source === 'provider' ? 'miss' : state === 'fresh' ? 'hit' : 'stale'
    let forwarded = outcome === 'miss'
    let collapsed = outcome === 'miss' && found.joined
    if (outcome === 'stale' && !failures.resting(key)) {
      forwarded = true
      collapsed = refreshing.run(key, () => refresh(subject, key, 'refresh')).joined
    }
    const freshUntil = policy.freshUntil(entry, now)
    const reading = {
      value: entry.value,
      readAt: now,
      fetchedAt: entry.fetchedAt,
      // Purged entries are stale whatever their age.
      freshUntil: outcome === 'stale' ? Math.min(freshUntil, now) : freshUntil,
      outcome,
      source,
      forwarded,
      collapsed,
      setExtraBytes: entry.setExtraBytes,
    } as const
    observer.read(reading)
    return reading
  }

  const findAndTell = async (subject: Subject, key: string): Promise<Reading<Value>> => {
    const { result, joined } = finding.run(key, () => find(subject, key))
    const found = await within(parts.waitForMs, result)
    const now = clock.now()
    return told(subject, key, joined ? { ...found, joined } : found, stateOf(key, found.entry, now), now)
  }

  return {
    read: subject => {
      const key = keyOf(subject)
      const now = clock.now()
      demand.ask(key, subject, now)
      const entry = memory.get(key)
      const state = entry ? stateOf(key, entry, now) : 'expired'
      if (entry && state !== 'expired')
        return told(subject, key, { entry, source: 'memory', joined: false }, state, now)
      return findAndTell(subject, key)
    },
    refresh: (subject, purpose) => {
      const key = keyOf(subject)
      return refreshing.run(key, () => refresh(subject, key, purpose)).result
    },
    reload: subject => {
      const key = keyOf(subject)
      return refreshing.run(key, () => refresh(subject, key, 'ahead', () => false)).result
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

// Rejects when the wait is over first; the result that then comes late is nobody's, and neither is its failure.
const within = <Result>(ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => reject(new WaitedTooLong(ms)), ms)
  result.then(resolve, reject).finally(() => clearTimeout(timer))
  return promise
}
