// The result of `whatif`: the effect of each setting on the traffic, as JSON and for the page. Durations are in seconds,
// shares from 0 to 1, weights in the provider's unit.

import { z } from 'zod'
import { planRemarks, planVerdict } from '../report/plans.ts'

const count = z.int().min(0)
const amount = z.number().min(0)

const step = z.object({
  /** When it begins, from the begin of what is counted. */
  at: amount,
  requests: count,
  hits: count,
  stale: count,
  misses: count,
  failed: count,
  weight: amount,
  stretch: amount,
})

const caseFigures = z.object({
  requests: count,
  /** Those that reached the cache, the failed ones among them. */
  weather: count,
  /** Requests without weather: other endpoints, and those that are refused before the cache is read. */
  none: count,
  /** Fresh weather, by the tier that held it. */
  hits: z.object({ memory: count, shared: count }),
  stale: count,
  /** Requests that waited for the provider. */
  misses: count,
  /** Requests for weather that got an error: nothing was cached, and the budget had no room in time. */
  failed: count,
  /** Of the answers with weather, as everywhere: those that failed are not among them. */
  hitShare: z.number().min(0).max(1),
  provider: z.object({
    requests: count,
    cells: count,
    weight: amount,
    /** By UTC day. */
    days: z.array(z.object({ day: z.string(), requests: count, weight: amount })),
    /** The most that was spent in one window. */
    most: z.object({ minute: amount, hour: amount, day: amount }),
    /** Of the last whole days that were counted; null for less than 23 hours. */
    wholeDays: z
      .object({
        days: amount,
        /** In gaps of more than an hour between requests. */
        quietSeconds: amount,
        weight: amount,
      })
      .nullable(),
  }),
  /** `share`: of the minutes, those in which freshness was stretched. */
  stretch: z.object({ most: z.number().min(1), share: z.number().min(0).max(1) }),
  /** Of the weather that was served, however fresh. */
  age: z.object({ p50: amount, p95: amount, max: z.number().min(-1) }),
  /** Of the memory tier the most that one instance held; of the shared tier what it held in the end. */
  memory: z.object({ mostBytes: count, mostEntries: count, sharedEntries: count, sharedBytes: count }),
  stepSeconds: amount,
  steps: z.array(step),
})
export type CaseFigures = z.infer<typeof caseFigures>

/** A count of answers as a share of the answers with weather; 0 where there are none. */
export const servedShare = (
  count: number,
  { weather, failed }: Pick<CaseFigures, 'weather' | 'failed'>,
): number => (weather === failed ? 0 : count / (weather - failed))

const caseResult = z.object({
  /** As `--case` takes it; empty for the configuration as it is. */
  name: z.string(),
  settings: z.record(z.string(), z.string()),
  /** Whether no other case has more hits at less weight, younger weather and less memory. */
  paretoOptimal: z.boolean(),
  /** Whether the configured budget stretched freshness or refused requests: the weight is then what it allowed. */
  budgetBit: z.boolean(),
  /** Of a month of such whole days; null for less than 23 hours. */
  weightPerMonth: amount.nullable(),
  plans: z.array(planVerdict),
  ...caseFigures.shape,
})
export type CaseResult = z.infer<typeof caseResult>

export const whatIfResult = z.object({
  format: z.literal('abohawa-what-if/1'),
  version: z.string(),
  traffic: z.object({
    files: z.array(z.string()),
    sha256: z.string(),
    requests: count,
    faultyLines: count,
    /** Requests that do not reach the cache, whatever their path. */
    leftOut: z.object({
      /** With a method other than GET and HEAD. */
      method: count,
      /** Recorded as refused (401, 403, 429) or redirected. */
      refused: count,
      /** With neither a key nor a recorded answer. */
      keyless: count,
    }),
    from: z.iso.datetime().nullable(),
    spanSeconds: amount,
  }),
  /** The settings that differ from their defaults in all cases. */
  base: z.array(z.object({ path: z.string(), value: z.string(), default: z.string() })),
  instances: z.int().min(1),
  /** Traffic that went through before counting began. */
  warmUpSeconds: amount,
  /** Whether the whole traffic went through once before. */
  warm: z.boolean(),
  /** How long the provider took for a request. */
  latencyMs: amount,
  /** The limits of the configured budget, where all cases have the same. */
  budget: z.object({ minute: count.nullable(), hour: count.nullable(), day: count.nullable() }).nullable(),
  cases: z.array(caseResult),
  /** Cases that were not finished when the command was stopped. */
  unfinished: z.array(z.string()),
})
export type WhatIfResult = z.infer<typeof whatIfResult>

/** The words of a case that was not named: the configuration as it is. */
export const caseNameText = ({ name }: Pick<CaseResult, 'name'>): string => name || 'as configured'

export const paretoNote = 'No other setting beats it in hits, weight, age (p95) and memory together.'

/** What else is to be known of the figures, for the page and the table. */
export const remarksOn = ({ cases, unfinished }: WhatIfResult): string[] => [
  ...(cases.some(({ budgetBit }) => budgetBit)
    ? [
        'Where freshness was stretched or requests failed, the configured budget was the limit: without it, the weight would be higher.',
      ]
    : []),
  ...planRemarks(cases.map(({ plans }) => plans)),
  ...(unfinished.length > 0
    ? [
        `The run was stopped before these settings were done: ${unfinished.map(name => caseNameText({ name })).join('; ')}.`,
      ]
    : []),
]
