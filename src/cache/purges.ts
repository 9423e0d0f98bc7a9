// The purges in force. A purge covers entries whose load began before this instance knew it, by the number of the newest purge
// and not by time: clocks of gateways and of a store's servers differ, and go back. cache/purge-log.ts reads them.

import type { EntryMetadata } from './freshness.ts'

/** `soft`: covered entries turn stale. `hard`: they are removed. */
export type PurgeKind = 'soft' | 'hard'

export type Purge<Scope> = { readonly generation: number; readonly kind: PurgeKind; readonly scope: Scope }

export type Purges<Scope> = {
  /** The number of the newest record of the log; 0 while none is known. */
  readonly generation: number
  add(purge: Purge<Scope>): void
  /** The newest record of the log, which may be no purge. */
  reach(generation: number): void
  /** Purges with a lower number may be unknown: entries from before it are stale, whatever their key. */
  miss(before: number): void
  /** The log was lost: the next number may be any. */
  restart(): void
  /** Whether a key lies in a scope. */
  readonly covers: (scope: Scope, key: string) => boolean
  /** The strongest purge that covers what began with this number. */
  of(key: string, begun: Pick<EntryMetadata, 'generation'>): PurgeKind | undefined
}

// As many as the store keeps.
const maxKnown = 1_000

export const createPurges = <Scope>(covers: (scope: Scope, key: string) => boolean): Purges<Scope> => {
  // Newest first.
  let known: Purge<Scope>[] = []
  let missedBefore = 0
  let newest = 0
  const reach = (generation: number): void => {
    newest = Math.max(newest, generation)
  }
  const miss = (before: number): void => {
    missedBefore = Math.max(missedBefore, before)
  }
  return {
    get generation() {
      return newest
    },
    covers,
    reach,
    miss,
    restart: () => {
      ;[known, missedBefore, newest] = [[], 0, 0]
    },
    add: purge => {
      reach(purge.generation)
      known.unshift(purge)
      if (known.length > maxKnown) miss(known.pop()?.generation ?? 0)
    },
    of: (key, begun) => {
      let found: PurgeKind | undefined = begun.generation < missedBefore ? 'soft' : undefined
      for (const { generation, kind, scope } of known) {
        if (generation <= begun.generation) break
        if (kind === found || !covers(scope, key)) continue
        if (kind === 'hard') return 'hard'
        found = kind
      }
      return found
    },
  }
}
