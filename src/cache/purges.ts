// The purges in force. A purge covers entries whose load began before this instance knew it, by generation number and not
// by time, so that clocks need not agree. Reading new purges from the store is left to timelines/purge-log.ts.

import { utcDayMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { EntryMetadata } from './entry.ts'

/** `soft`: covered entries turn stale. `hard`: they are removed. */
export type PurgeKind = 'soft' | 'hard'

export type Purge<Scope> = { readonly generation: number; readonly kind: PurgeKind; readonly scope: Scope }

export type Purges<Scope> = {
  /** The number of the newest purge, in force or not any more; 0 without any. */
  readonly generation: number
  add(purge: Purge<Scope>): void
  /** Whether a key lies in a scope. */
  readonly covers: (scope: Scope, key: string) => boolean
  /** The strongest purge that covers an entry. */
  of(key: string, entry: EntryMetadata): PurgeKind | undefined
}

// Longer than any configuration serves an entry. An instance that began after the record of a purge was lost stamps its entries with
// a lower number for good, and nobody may take them for older than the purge for ever.
const inForceForMs = 3 * utcDayMs

export const createPurges = <Scope>(
  covers: (scope: Scope, key: string) => boolean,
  clock: Clock,
): Purges<Scope> => {
  // Newest first; beyond the maximum the oldest purge is dropped.
  const known: (Purge<Scope> & { readonly until: number })[] = []
  const most = 1_000
  let newest = 0
  return {
    get generation() {
      return newest
    },
    covers,
    add: purge => {
      newest = purge.generation
      known.unshift({ ...purge, until: clock.now() + inForceForMs })
      if (known.length > most) known.pop()
    },
    of: (key, entry) => {
      if (known.length === 0) return undefined
      const now = clock.now()
      while ((known.at(-1)?.until ?? now) < now) known.pop()
      let found: PurgeKind | undefined
      for (const { generation, kind, scope } of known) {
        if (generation <= entry.generation) break
        if (kind === found || !covers(scope, key)) continue
        if (kind === 'hard') return 'hard'
        found = kind
      }
      return found
    },
  }
}
