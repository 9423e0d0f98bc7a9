// When the cache runs out of what is in demand if no load succeeds any more. Reads memory alone: what only the shared tier holds
// is not counted. As costly as one pass of refresh-ahead.ts, and only done for operators.

import type { Demand } from './demand.ts'
import type { EntryMetadata } from './entry.ts'
import type { FreshnessPolicy } from './freshness.ts'
import type { PurgeKind } from './purges.ts'

export type FirstExpiryParts = {
  readonly demand: Pick<Demand<unknown>, 'since'>
  readonly memory: {
    peek(key: string): (EntryMetadata & { readonly purged: PurgeKind | undefined }) | undefined
  }
  readonly policy: Pick<FreshnessPolicy, 'usableUntil'>
}

/**
 * The instant at which the first entry expires whose key was requested at or after `since`; undefined without such an entry.
 * It is past where one has expired already. All instants are ms since the epoch.
 */
export const firstExpiry = (
  { demand, memory, policy }: FirstExpiryParts,
  since: number,
  now: number,
): number | undefined => {
  let first = Number.POSITIVE_INFINITY
  for (const [key] of demand.since(since)) {
    const entry = memory.peek(key)
    if (!entry) continue
    // One that a hard purge met while it was loaded is not served any more.
    first = Math.min(first, entry.purged === 'hard' ? entry.fetchedAt : policy.usableUntil(entry, now))
  }
  return Number.isFinite(first) ? first : undefined
}
