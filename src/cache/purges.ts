// The purges in force. A purge covers entries whose load began before this instance knew it, by generation number and not
// by time, so that clocks need not agree. Reading new purges from the store is left to timelines/purge-log.ts.

import type { EntryMetadata } from './entry.ts'

/** `soft`: covered entries turn stale. `hard`: they are removed. */
export type PurgeKind = 'soft' | 'hard'

export type Purge<Scope> = { readonly generation: number; readonly kind: PurgeKind; readonly scope: Scope }

export type Purges<Scope> = {
  /** The number of the newest purge; 0 without any. */
  readonly generation: number
  add(purge: Purge<Scope>): void
  /** Whether a key lies in a scope. */
  readonly covers: (scope: Scope, key: string) => boolean
  /** The strongest purge that covers an entry. */
  of(key: string, entry: EntryMetadata): PurgeKind | undefined
}

export const createPurges = <Scope>(covers: (scope: Scope, key: string) => boolean): Purges<Scope> => {
  // Newest first; beyond the maximum the oldest purge is dropped.
  const known: Purge<Scope>[] = []
  const most = 1_000
  return {
    get generation() {
      return known[0]?.generation ?? 0
    },
    covers,
    add: purge => {
      known.unshift(purge)
      if (known.length > most) known.pop()
    },
    of: (key, entry) => {
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
