// The purges in force. A purge covers entries whose load began before this instance knew it, by generation number and not
// by time, so that clocks need not agree. Reading new purges from the store is left to timelines/purge-log.ts.

import type { EntryMetadata } from './entry.ts'

/** `soft`: covered entries turn stale. `hard`: they are removed. */
export type PurgeKind = 'soft' | 'hard'

export type Purge<Scope> = { readonly generation: number; readonly kind: PurgeKind; readonly scope: Scope }

export type Purges<Scope> = {
  /** The number of the newest change record; 0 while none is known. */
  readonly generation: number
  add(purge: Purge<Scope>): void
  /** The newest change record, which may be no purge. */
  reach(generation: number): void
  /** Purges with a lower number may be unknown: entries from before it are stale, whatever their key. */
  miss(before: number): void
  /** Whether a key lies in a scope. */
  readonly covers: (scope: Scope, key: string) => boolean
  /** The strongest purge that covers an entry. */
  of(key: string, entry: EntryMetadata): PurgeKind | undefined
}

// As many as the store keeps.
const maxKnown = 1_000

export const createPurges = <Scope>(covers: (scope: Scope, key: string) => boolean): Purges<Scope> => {
  // Newest first.
  let known: Purge<Scope>[] = []
  let missedBefore = 0
  let newest = 0
  const miss = (before: number): void => {
    missedBefore = Math.max(missedBefore, before)
  }
  return {
    get generation() {
      return newest
    },
    covers,
    reach: generation => {
      newest = Math.max(newest, generation)
    },
    miss,
    add: purge => {
      // A log that was lost may begin again at a lower number: what was known has no place in it.
      if (purge.generation <= newest) [known, missedBefore] = [[], 0]
      newest = purge.generation
      known.unshift(purge)
      if (known.length > maxKnown) miss(known.pop()?.generation ?? 0)
    },
    of: (key, entry) => {
      // A number from beyond the log is forged, or from a log that was lost: such an entry is older than every purge.
      const loadedAfter = entry.generation <= newest ? entry.generation : 0
      let found: PurgeKind | undefined = loadedAfter < missedBefore ? 'soft' : undefined
      for (const { generation, kind, scope } of known) {
        if (generation <= loadedAfter) break
        if (kind === found || !covers(scope, key)) continue
        if (kind === 'hard') return 'hard'
        found = kind
      }
      return found
    },
  }
}
