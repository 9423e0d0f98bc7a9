// The record behind the status page as it is in the store: answers and errors of each day, and the outages. Says what is in it, and how
// the parts of several instances become one; service-days.ts reads and writes it.

import * as z from 'zod'
import { type LocalDay, minuteMs, utcDayMs } from '../common/calendar.ts'
import type { Answers } from './metrics.ts'

/** What is out: the provider, or the store. */
export type OutageKind = 'provider' | 'store'

/** From and to, ms since the epoch. */
export type Interval = readonly [from: number, to: number]

export type ServiceRecord = {
  readonly answers: Readonly<Record<LocalDay, Answers>>
  /** In order and apart from one another. */
  readonly outages: { readonly [Kind in OutageKind]: readonly Interval[] }
  /** From when on none is forgotten, ms since the epoch; 0 where that is always so. */
  readonly outagesSince: { readonly [Kind in OutageKind]: number }
  /** One of each write, the last ones. */
  readonly marks: readonly string[]
}

/** The most outages of a kind. Of more, those that are near are one, and the oldest are forgotten. */
export const maxOutages = 500
const nearMs = 10 * minuteMs
/** The days of the status page. */
export const daysShown = 30
// By number and not by age: one clock that is ahead would drop what the others know.
const maxDays = 2 * daysShown
// An instance looks for its own soon after the store is back, when others have written a few times at most.
const maxMarks = 200

const instant = z.int().min(0).max(8.64e15)
const count = z.int().min(0)
const interval = z
  .tuple([instant, instant])
  .refine(([from, to]) => from <= to)
  .readonly()
const intervals = z.array(interval).max(2 * maxOutages)
const form = z.object({
  answers: z.record(z.iso.date(), z.object({ all: count, errors: count })),
  outages: z.object({ provider: intervals, store: intervals }),
  outagesSince: z.object({ provider: instant, store: instant }).default({ provider: 0, store: 0 }),
  marks: z
    .array(z.string().max(40))
    .max(2 * maxMarks)
    .default([]),
})

export const noRecord: ServiceRecord = {
  answers: {},
  outages: { provider: [], store: [] },
  outagesSince: { provider: 0, store: 0 },
  marks: [],
}

/** A damaged record counts as none: anyone with access to the store can write one. */
export const readRecord = (bytes: Uint8Array | string | undefined): ServiceRecord => {
  if (bytes === undefined || typeof bytes === 'string') return noRecord
  try {
    return form.safeParse(JSON.parse(Buffer.from(bytes).toString())).data ?? noRecord
  } catch {
    return noRecord
  }
}

/** Intervals in order; those that touch are one. */
export const united = (intervals: readonly Interval[]): Interval[] => {
  const found: [number, number][] = []
  for (const [from, to] of intervals.toSorted(([one], [other]) => one - other)) {
    const last = found.at(-1)
    if (last && from <= last[1]) last[1] = Math.max(last[1], to)
    else found.push([from, to])
  }
  return found
}

/** At most `maxOutages`, and from when on none is forgotten. No more of them are joined than has to be, the nearest first. */
const boundedOutages = (intervals: readonly Interval[]): { kept: Interval[]; since: number } => {
  const apart = united(intervals)
  const gaps = apart.slice(1).map(([from], i): Interval => [apart[i]?.[1] ?? from, from])
  const near = gaps
    .map(gap => ({ gap, ms: gap[1] - gap[0] }))
    .filter(({ ms }) => ms <= nearMs)
    .sort((one, other) => one.ms - other.ms)
  const joined = near.slice(0, Math.max(0, apart.length - maxOutages)).map(({ gap }) => gap)
  const found = joined.length === 0 ? apart : united([...apart, ...joined])
  return { kept: found.slice(-maxOutages), since: found.at(-maxOutages - 1)?.[1] ?? 0 }
}

/** Counts add up, and outages that several instances have seen are one. */
export const mergedRecord = (one: ServiceRecord, other: ServiceRecord): ServiceRecord => {
  const answers = new Map<LocalDay, Answers>()
  for (const { answers: part } of [one, other])
    for (const [day, { all, errors }] of Object.entries(part)) {
      const before = answers.get(day)
      answers.set(day, { all: (before?.all ?? 0) + all, errors: (before?.errors ?? 0) + errors })
    }
  const outagesOf = (kind: OutageKind) => {
    const { kept, since } = boundedOutages([...one.outages[kind], ...other.outages[kind]])
    return { kept, since: Math.max(since, one.outagesSince[kind], other.outagesSince[kind]) }
  }
  const [provider, store] = [outagesOf('provider'), outagesOf('store')]
  return {
    answers: Object.fromEntries([...answers].sort(([day], [next]) => (day < next ? -1 : 1)).slice(-maxDays)),
    outages: { provider: provider.kept, store: store.kept },
    outagesSince: { provider: provider.since, store: store.since },
    marks: [...one.marks, ...other.marks].slice(-maxMarks),
  }
}

/** The last instant that a record is about, ms since the epoch. */
export const newestIn = ({ answers, outages }: ServiceRecord): number =>
  Math.max(
    0,
    ...Object.keys(answers).map(day => Date.parse(day) + utcDayMs),
    ...[...outages.provider, ...outages.store].map(([, to]) => to),
  )

/** What came after a part was taken. Its outages are kept whole: united again they change nothing. */
export const without = (whole: ServiceRecord, taken: ServiceRecord): ServiceRecord => {
  if (whole === taken) return noRecord
  const answers: Record<LocalDay, Answers> = {}
  for (const [day, { all, errors }] of Object.entries(whole.answers)) {
    const before = taken.answers[day] ?? { all: 0, errors: 0 }
    if (all > before.all) answers[day] = { all: all - before.all, errors: errors - before.errors }
  }
  return { ...whole, answers }
}
