// The JSON of /cache/purge, and of the CLI on the store: the result of a purge, and its price.

import type { CellReport } from './cell-report.ts'

export type PurgeReport = {
  readonly kind: 'soft' | 'hard'
  readonly of: string
  readonly place: CellReport['place']
  readonly scope: object
  /** How many places are in an area, itself included; not given for another scope. */
  readonly places?: number
  readonly cells: number
  /** The number of entries deleted from the shared tier; 0 for a soft purge, which deletes none. */
  readonly removed: number
  readonly store: string
}

/** Weight is the provider's, instants are ISO 8601 in UTC. */
export type PurgePrice = {
  readonly at: string
  readonly kind: 'soft' | 'hard'
  readonly cells: number
  /** Those of them that the shared tier has now; the others are loaded when they are asked for, purged or not. */
  readonly cached: number
  /** Of loading all that is cached again. */
  readonly weight: number
  /** What these loads have of each limit; for a soft purge without the reserve, which is for cells with nothing cached. */
  readonly windows: readonly {
    readonly name: 'minute' | 'hour' | 'day'
    readonly limit: number
    readonly left: number
    readonly resetsAt: string
  }[]
  readonly closedUntil: string | null
  /** How many upstreams are behind the one whose budget this is: what it has no room for goes to them. */
  readonly fallbacks: number
  /** Of the cached cells, those that can be loaded now, and those that would be refused now. */
  readonly fitsNow: number
  readonly refusedNow: number
  /** Of the cached cells, those that can be loaded now for one key, while others load too. */
  readonly oneKeyNow: number
  /** When all are loaded at the earliest, if the budget has nothing else to load; null where a limit has no room for a cell. */
  readonly reloadedAt: string | null
}
