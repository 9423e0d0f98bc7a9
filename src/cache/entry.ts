// What the cache keeps under a key, and how fresh it is at an instant. Pure; knows neither weather nor tiers.

/** A value with the instant it was fetched, in ms since the epoch, and the bytes it takes in memory. */
export type Entry<Value> = { readonly value: Value; readonly fetchedAt: number; readonly bytes: number }

/** How long an entry is fresh, and how long after that it may still be served. */
export type FreshnessPolicy = { readonly freshForMs: number; readonly staleForMs: number }

export type Freshness = 'fresh' | 'stale' | 'expired'

export const freshUntil = (entry: Entry<unknown>, policy: FreshnessPolicy): number =>
  entry.fetchedAt + policy.freshForMs

export const usableUntil = (entry: Entry<unknown>, policy: FreshnessPolicy): number =>
  freshUntil(entry, policy) + policy.staleForMs

export const freshnessOf = (entry: Entry<unknown>, policy: FreshnessPolicy, now: number): Freshness => {
  if (now < freshUntil(entry, policy)) return 'fresh'
  return now < usableUntil(entry, policy) ? 'stale' : 'expired'
}
