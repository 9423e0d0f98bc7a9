// The story of a read: memory, then the shared tier, then the loader; both tiers are filled on the way back.
// A stale entry is served at once while one refresh runs behind it. Knows entries and keys, not what they hold.

import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'
import { type Entry, type FreshnessPolicy, freshnessOf, freshUntil } from './entry.ts'
import type { MemoryTier } from './memory-tier.ts'
import type { SharedTier } from './shared-tier.ts'
import { createFlight } from './single-flight.ts'

/** `hit`: served fresh from a tier. `stale`: served from a tier past its freshness. `miss`: loaded for this read. */
export type Outcome = 'hit' | 'stale' | 'miss'
export type Source = 'memory' | 'shared' | 'provider'

export type Reading<Value> = {
  readonly value: Value
  readonly fetchedAt: number
  readonly freshUntil: number
  readonly outcome: Outcome
  readonly source: Source
  /** Whether this read waited for a load that another had begun. */
  readonly collapsed: boolean
}

export type CacheObserver = {
  read(outcome: Outcome, source: Source): void
  /** A refresh behind a stale answer failed; the old entry stays. */
  refreshFailed(error: unknown): void
}

export type ReadThrough<Subject, Value> = {
  /** @throws WaitedTooLong, or whatever the loader threw, when no tier has anything usable */
  read(subject: Subject): Promise<Reading<Value>>
}

export type ReadThroughParts<Subject, Value> = {
  readonly keyOf: (subject: Subject) => string
  readonly load: (subject: Subject) => Promise<Entry<Value>>
  readonly memory: MemoryTier<Value>
  readonly shared: SharedTier<Value>
  readonly policy: FreshnessPolicy
  /** How long a failed refresh of an entry rests before the next is tried. */
  readonly retryAfterMs: number
  /** How long a read waits when there is nothing to serve. The load goes on for whoever asks next. */
  readonly waitForMs: number
  readonly clock: Clock
  readonly observer: CacheObserver
}

export class WaitedTooLong extends AbohawaError {
  override name = 'WaitedTooLong'

  constructor(waitedMs: number) {
    super('waited_too_long', `nothing was loaded within ${waitedMs} ms`)
  }
}

type Found<Value> = { entry: Entry<Value>; source: Source }

export const createReadThrough = <Subject, Value>(
  parts: ReadThroughParts<Subject, Value>,
): ReadThrough<Subject, Value> => {
  const { keyOf, load, memory, shared, policy, retryAfterMs, waitForMs, clock, observer } = parts
  const finding = createFlight<string, Found<Value>>()
  const refreshing = createFlight<string, void>()
  // A refresh and a first read of the same key may overlap (its entry expired or was evicted meanwhile): one load.
  const loading = createFlight<string, Found<Value>>()
  const restingUntil = new LRUCache<string, number>({ max: 10_000 })

  const freshness = (entry: Entry<Value>) => freshnessOf(entry, policy, clock.now())

  const loadAndKeep = (subject: Subject, key: string): Promise<Found<Value>> =>
    loading.run(key, async () => {
      const entry = await load(subject)
      memory.set(key, entry)
      restingUntil.delete(key)
      await shared.set(key, entry)
      return { entry, source: 'provider' }
    }).result

  // Past the first tier: what another instance or an earlier life of this one left, else a load.
  const find = async (subject: Subject, key: string): Promise<Found<Value>> => {
    const entry = await shared.get(key)
    if (!entry || freshness(entry) === 'expired') return loadAndKeep(subject, key)
    memory.set(key, entry)
    return { entry, source: 'shared' }
  }

  const refresh = async (subject: Subject, key: string): Promise<void> => {
    try {
      // Another instance may have refreshed it already.
      const entry = await shared.get(key)
      if (entry && freshness(entry) === 'fresh') memory.set(key, entry)
      else await loadAndKeep(subject, key)
    } catch (error) {
      restingUntil.set(key, clock.now() + retryAfterMs)
      observer.refreshFailed(error)
    }
  }

  const refreshSoon = (subject: Subject, key: string): void => {
    if (clock.now() >= (restingUntil.get(key) ?? 0)) void refreshing.run(key, () => refresh(subject, key))
  }

  return {
    read: async subject => {
      const key = keyOf(subject)
      const kept = memory.get(key)
      let found: Found<Value>
      let collapsed = false
      if (kept && freshness(kept) !== 'expired') found = { entry: kept, source: 'memory' }
      else {
        const { result, joined } = finding.run(key, () => find(subject, key))
        found = await within(waitForMs, result)
        collapsed = joined
      }

      const isFresh = freshness(found.entry) === 'fresh'
      const outcome = found.source === 'provider' ? 'miss' : isFresh ? 'hit' : 'stale'
      if (outcome === 'stale') refreshSoon(subject, key)
      observer.read(outcome, found.source)
      const { value, fetchedAt } = found.entry
      return {
        value,
        fetchedAt,
        freshUntil: freshUntil(found.entry, policy),
        outcome,
        source: found.source,
        collapsed,
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
