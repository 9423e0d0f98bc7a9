// When the first entry in demand expires if no load succeeds any more. Reads memory alone: an entry that only the shared tier
// holds counts as usable, and its end is unknown. Costs as much as a pass of refresh-ahead.ts, and runs for operators only.

import type { EntryMetadata } from './entry.ts'
import type { FreshnessPolicy } from './freshness.ts'
import type { PurgeKind } from './purges.ts'

export type FirstExpiryParts = {
  readonly memory: {
    peek(key: string): (EntryMetadata & { readonly purged: PurgeKind | undefined }) | undefined
  }
  /** Whether it is known that no tier holds anything usable of a key. */
  readonly isUncached: (key: string) => boolean
  readonly policy: Pick<FreshnessPolicy, 'usableUntil'>
}

/**
 * @param whose `any`: a key with nothing cached decides; `cached`: it decides only where nothing else is cached, so that one
 * cold key does not hide the others
 * @returns the instant at which the first of the keys can't be served any more: 0 where one has nothing cached, in the past where
 * an entry has expired already; undefined where nothing is known of any key. All instants are ms since the epoch.
 */
export const firstExpiry = (
  { memory, isUncached, policy }: FirstExpiryParts,
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
