// What the cache keeps under a key, and how fresh it is at an instant. Pure; knows neither weather nor tiers.

import { crc32 } from 'node:zlib'

export type Entry<Value> = {
  readonly value: Value
  /** Ms since the epoch. */
  readonly fetchedAt: number
  /** What the value takes in memory. */
  readonly bytes: number
  /** From 0 to 1, by chance: how much of the spread of freshness is this entry's. */
  readonly lot: number
}

export type FreshnessPolicy = {
  /** The least time an entry is fresh. */
  readonly freshForMs: number
  /** The share of that by which freshness is drawn out, entry by entry, so that what came together goes apart. */
  readonly freshSpread: number
  /** How long after it turned stale an entry may still be served. */
  readonly staleForMs: number
}

/** The lot of an entry: the same wherever it is drawn, another for another key or fetch. */
export const lotOf = (key: string, fetchedAt: number): number => crc32(`${key}@${fetchedAt}`) / 2 ** 32

/** The longest time after its fetch that any entry is served. */
export const longestUseMs = ({ freshForMs, freshSpread, staleForMs }: FreshnessPolicy): number =>
  freshForMs * (1 + freshSpread) + staleForMs

export type Freshness = 'fresh' | 'stale' | 'expired'

export const freshUntil = (entry: Entry<unknown>, policy: FreshnessPolicy): number =>
  entry.fetchedAt + Math.floor(policy.freshForMs * (1 + policy.freshSpread * entry.lot))

export const usableUntil = (entry: Entry<unknown>, policy: FreshnessPolicy): number =>
  freshUntil(entry, policy) + policy.staleForMs

export const freshnessOf = (entry: Entry<unknown>, policy: FreshnessPolicy, now: number): Freshness => {
  if (now < freshUntil(entry, policy)) return 'fresh'
  return now < usableUntil(entry, policy) ? 'stale' : 'expired'
}
