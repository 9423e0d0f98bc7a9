// Which entries an operator has declared stale or gone. A purge covers what was loaded before it was known, by number
// and not by time, so that clocks need not agree; every instance looks for new ones at short intervals.

import type { EntryMetadata } from './entry.ts'

/** `soft`: what it covers turns stale. `hard`: it is gone. */
export type PurgeKind = 'soft' | 'hard'

export type Purge<Scope> = { readonly generation: number; readonly kind: PurgeKind; readonly scope: Scope }

export type Purges<Scope> = {
  /** How many are known. */
  readonly generation: number
  add(purge: Purge<Scope>): void
  /** The strongest purge that covers an entry. */
  of(key: string, entry: EntryMetadata): PurgeKind | undefined
}

/** @param covers whether a key lies in a scope */
export const createPurges = <Scope>(covers: (scope: Scope, key: string) => boolean): Purges<Scope> => {
  // Newest first; a purge that no living entry can be older than is let go when it would make the list too long.
  const known: Purge<Scope>[] = []
  const most = 1_000
  return {
    get generation() {
      return known[0]?.generation ?? 0
    },
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
