// The JSON of /cache/cell and /cache/refresh, and of the CLI on the store. Instants are ISO 8601 in UTC.

import * as z from 'zod'

const instant = z.iso.datetime()

const entry = z.object({
  fetchedAt: instant,
  /** When the newest model run at its load became available; null when none was known or followed. */
  run: instant.nullable(),
  purged: z.enum(['soft', 'hard']).nullable(),
  bytes: z.number(),
  /** The name of the upstream that gave it; null where there is one. */
  upstream: z.string().nullable().default(null),
})

// Depends on the current runs and budget, so only a running gateway reports it.
const judgement = z.object({
  state: z.enum(['fresh', 'stale', 'expired']),
  dueAt: instant,
  freshUntil: instant,
  usableUntil: instant,
})

/** The contents of a timeline: its steps, and the slice at the instant of the report. */
const steps = z.object({ from: instant, to: instant, count: z.number() })
const slices = z.object({
  quarterHours: steps,
  hours: steps,
  /** The first and the last local day. */
  days: z.object({ from: z.iso.date(), to: z.iso.date(), count: z.number() }),
  /** Null when the quarter-hours do not cover the instant. */
  now: z
    .object({
      time: instant,
      temperature_2m: z.number().nullable(),
      precipitation: z.number().nullable(),
      weather_code: z.number().nullable(),
    })
    .nullable(),
})

const place = z.object({ type: z.string(), id: z.string(), name_en: z.string(), name_bn: z.string() })

export const cellReport = z.object({
  of: z.string(),
  place: z.object({ type: z.string(), id: z.string(), name: z.string() }).nullable(),
  cell: z.object({ id: z.string(), latitude: z.number(), longitude: z.number() }),
  cellDegrees: z.number(),
  /** Places in the cell, widest first, five hundred at most; null in a report of the store alone. */
  places: z.array(place).nullable().default(null),
  /** The published places with others below them that a place in the cell is or lies in, narrowest first; null where `places` is. */
  areas: z.array(place).nullable().default(null),
  /** How many places are in the cell; null where `places` is. */
  placeCount: z.number().nullable().default(null),
  at: instant,
  shared: z.object({
    kind: z.string(),
    entry: entry.extend(judgement.partial().shape).nullable(),
    /** Why the entry can't be read: the store is unavailable, or the bytes are invalid. */
    fault: z.string().nullable(),
  }),
  /** The state of a running gateway; null in a report of the store alone. */
  gateway: z
    .object({
      memory: entry.extend(judgement.shape).nullable(),
      /** Of the timeline in memory. */
      slices: slices.nullable().default(null),
      freshness: z.enum(['age', 'run']),
      newestRun: z.object({ initialisedAt: instant, availableAt: instant }).nullable(),
      /** The stretch of freshness; null when no budget is left, which means the longest allowed. */
      stretch: z.number().nullable(),
      loading: z.boolean(),
      lastRequestedAt: instant.nullable(),
      lastFailure: z
        .object({
          code: z.string(),
          message: z.string(),
          failedAt: instant,
          /** Failures in a row; 0 when the provider announced every backoff. */
          attempts: z.number(),
          backoffUntil: instant,
        })
        .nullable(),
    })
    .nullable(),
})

export type CellReport = z.infer<typeof cellReport>
export type SlicesReport = z.infer<typeof slices>
export type EntryReport = NonNullable<CellReport['shared']['entry']>
