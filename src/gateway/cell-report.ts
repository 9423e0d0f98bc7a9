// What operators are told about the cache, as JSON: all that is known of one cell, and what a purge did. Instants are
// ISO 8601 in UTC. The same whether a running gateway tells it or the store alone.

import * as z from 'zod'

const instant = z.iso.datetime()

const entry = z.object({
  fetchedAt: instant,
  /** When the newest model run known at its load became available; null when none was known or none is followed. */
  run: instant.nullable(),
  purged: z.enum(['soft', 'hard']).nullable(),
  bytes: z.number(),
})

// What depends on runs and on the budget as they are now, and so on a running gateway.
const judgement = z.object({
  state: z.enum(['fresh', 'stale', 'expired']),
  dueAt: instant,
  freshUntil: instant,
  usableUntil: instant,
})

export const cellReport = z.object({
  of: z.string(),
  place: z.object({ type: z.string(), id: z.string(), name: z.string() }).nullable(),
  cell: z.object({ id: z.string(), latitude: z.number(), longitude: z.number() }),
  cellDegrees: z.number(),
  /** When this was so. */
  at: instant,
  shared: z.object({
    kind: z.string(),
    entry: entry.extend(judgement.partial().shape).nullable(),
    /** Why nothing is known of the entry: the store is away, or its bytes are not those of this version. */
    fault: z.string().nullable(),
  }),
  /** What a running gateway knows; null when none was asked. */
  gateway: z
    .object({
      memory: entry.extend(judgement.shape).nullable(),
      freshness: z.enum(['age', 'run']),
      newestRun: z.object({ initialisedAt: instant, availableAt: instant }).nullable(),
      /** How many times longer than asked for things are fresh; null, for as long as allowed, when no budget is left. */
      stretch: z.number().nullable(),
      loading: z.boolean(),
      lastAskedAt: instant.nullable(),
      lastFailure: z
        .object({
          code: z.string(),
          message: z.string(),
          failedAt: instant,
          /** In a row; 0 when the only pauses were ones that the provider announced. */
          attempts: z.number(),
          restsUntil: instant,
        })
        .nullable(),
    })
    .nullable(),
})

export type CellReport = z.infer<typeof cellReport>
export type EntryReport = NonNullable<CellReport['shared']['entry']>

export type PurgeReport = {
  readonly kind: 'soft' | 'hard'
  readonly of: string
  readonly place: CellReport['place']
  readonly scope: object
  /** How many cells that may be cached it covers. */
  readonly cells: number
  /** How many entries the shared tier let go of; 0 for a soft purge, which leaves them. */
  readonly removed: number
  readonly store: string
}
