// When entries in demand expire if no load succeeds any more: the first of them, and at which age. Reads memory alone: an entry that
// only the shared tier holds counts as usable, and its end is unknown. Costs as much as a pass of refresh-ahead.ts, and runs for
// operators only.

import type { EntryMetadata, FreshnessPolicy, PurgeKind } from './freshness.ts'

/**
 * @param whose `any`: a key with nothing cached decides; `cached`: it decides only where nothing else is cached, so that one
 * cold key does not hide the others
 * @returns the instant at which the first of the keys can't be served any more: 0 where one has nothing cached, in the past where
 * an entry has expired already; undefined where nothing is known of any key. All instants are ms since the epoch.
 */
export const firstExpiry = (
  {
    memory,
    isUncached,
    policy,
  }: {
    readonly memory: {
      peek(key: string): (EntryMetadata & { readonly purged: PurgeKind | undefined }) | undefined
    }
    /** Whether it is known that no tier holds anything usable of a key. */
    readonly isUncached: (key: string) => boolean
    readonly policy: Pick<FreshnessPolicy, 'usableUntil'>
  },
  keys: Iterable<string>,
  now: number,
  whose: 'any' | 'cached' = 'any',
): number | undefined => {
  let first = Number.POSITIVE_INFINITY
  let hasUncached = false
  for (const key of keys) {
    const entry = memory.peek(key)
    if (entry) {
      // An entry that a hard purge covered during its load is not served any more.
      first = Math.min(first, entry.purged === 'hard' ? entry.fetchedAt : policy.usableUntil(entry, now))
    } else if (isUncached(key)) hasUncached = true
  }
  if (hasUncached && (whose === 'any' || !Number.isFinite(first))) return 0
  return Number.isFinite(first) ? first : undefined
}

/**
 * The age at which entries in demand expire: by the settings, and by the timelines that were loaded. The two differ after a live
 * change of the settings.
 */
export type DemandExpiry = {
  /** The longest time after its load that the settings let an entry be served. */
  readonly allowedMs: number
  /** The share of the demand whose entries reach so far, 0 to 1; null where memory holds no entry in demand. */
  readonly share: number | null
  /** The shortest time after its load that an entry in demand can be served; null likewise. */
  readonly leastMs: number | null
}

/** @param demanded the keys in demand, with the weight of each */
export const expiryOfDemand = (
  memory: { peek(key: string): EntryMetadata | undefined },
  allowedMs: number,
  demanded: Iterable<readonly [key: string, weight: number]>,
): DemandExpiry => {
  let whole = 0
  let reached = 0
  let leastMs = Number.POSITIVE_INFINITY
  for (const [key, weight] of demanded) {
    const entry = memory.peek(key)
    if (!entry) continue
    const reachesMs = (entry.coversUntil ?? Number.POSITIVE_INFINITY) - entry.fetchedAt
    whole += weight
    if (reachesMs >= allowedMs) reached += weight
    leastMs = Math.min(leastMs, reachesMs, allowedMs)
  }
  return whole === 0
    ? { allowedMs, share: null, leastMs: null }
    : { allowedMs, share: reached / whole, leastMs }
}
