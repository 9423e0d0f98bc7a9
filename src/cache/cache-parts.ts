// The types of a read-through cache: its parts, its results, and what it reports.

import type { Clock } from '../common/clock.ts'
import type { Urgency } from '../provider/queue.ts'
import type { Demand } from './demand.ts'
import type { Failures, Uncached } from './failures.ts'
import type { FleetSingleFlight } from './fleet-single-flight.ts'
import type { Entry, FreshnessPolicy } from './freshness.ts'
import type { Purges } from './purges.ts'
import type { Derived, MemoryTier, SharedTier } from './tiers.ts'

/** `hit`: fresh from a tier. `stale`: from a tier, past its freshness. `miss`: loaded for this read. */
export type Outcome = 'hit' | 'stale' | 'miss'
/** `memory`, the name of the shared tier, or `provider`. */
export type Source = string

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

export type CacheParts<Of extends Subject, Value> = {
  /** The key in the shared tier. */
  readonly keyOf: (subject: Of) => string
  readonly load: (subject: Of, purpose: Urgency, consumer: string | undefined) => Promise<Entry<Value>>
  /** Raises the urgency of a queued load, because a request now waits for it. */
  readonly expedite: (subject: Of, consumer: string | undefined) => void
  /** Why nothing is loaded for a consumer now; undefined when it is. */
  readonly throttled: (consumer: string | undefined, purpose: Urgency) => Error | undefined
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
