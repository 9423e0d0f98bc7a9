// The age at which entries in demand expire: by the settings, and by the timelines that were loaded. The two differ after a live
// change of the settings. Reads memory alone, and runs for operators only.

import type { EntryMetadata } from './entry.ts'

export type Reach = {
  /** The longest time after its load that the settings let an entry be served. */
  readonly allowedMs: number
  /** The share of the demand whose entries reach so far, 0 to 1; null where memory holds no entry in demand. */
  readonly share: number | null
  /** The shortest time after its load that an entry in demand can be served; null likewise. */
  readonly leastMs: number | null
}

/** @param demanded the keys in demand, with the weight of each */
export const reachOfDemand = (
  memory: { peek(key: string): EntryMetadata | undefined },
  allowedMs: number,
  demanded: Iterable<readonly [key: string, weight: number]>,
): Reach => {
  let whole = 0
  let reached = 0
  let leastMs = Number.POSITIVE_INFINITY
  for (const [key, weight] of demanded) {
    const entry = memory.peek(key)
    if (!entry) continue
    const reachesMs = (entry.reachesUntil ?? Number.POSITIVE_INFINITY) - entry.fetchedAt
    whole += weight
    if (reachesMs >= allowedMs) reached += weight
    leastMs = Math.min(leastMs, reachesMs, allowedMs)
  }
  return whole === 0
    ? { allowedMs, share: null, leastMs: null }
    : { allowedMs, share: reached / whole, leastMs }
}
