// The record of the last days for the status page: answers and errors of each day, and the outages, over the fleet and over
// restarts. It is one value of the store. An instance adds what is new at most once a minute, under a lease, so that none
// overwrites another's; processes that share the file of an embedded store have no lease in common and may lose a minute. What
// the page says of it is in api/status-page.ts.

import * as z from 'zod'
import { type Calendar, type LocalDay, minuteMs, utcDayMs } from '../common/calendar.ts'
import { type Clock, every } from '../common/clock.ts'
import type { ByteStore, LeaseStore } from '../stores/store.ts'
import type { Answers } from './metrics.ts'

/** What is out: the provider, or the store. */
export type OutageKind = 'provider' | 'store'

/** From and to, ms since the epoch. */
type Interval = readonly [from: number, to: number]

export type ServiceRecord = {
  readonly answers: Readonly<Record<LocalDay, Answers>>
  /** In order and apart from one another. */
  readonly outages: { readonly [Kind in OutageKind]: readonly Interval[] }
  /** From when on none is forgotten, ms since the epoch; 0 where that is always so. */
  readonly outagesSince: { readonly [Kind in OutageKind]: number }
}

/** `availability` is the share of answers without 5xx; null without any answer. Minutes are null for a day without anything on record, and for one whose outages are forgotten. */
export type ServiceDay = {
  readonly day: LocalDay
  readonly availability: number | null
  readonly outageMinutes: { readonly [Kind in OutageKind]: number | null }
}

/** An outage on record with its instants, ms since the epoch. */
export type Incident = { readonly kind: OutageKind; readonly from: number; readonly to: number }

const daysShown = 30
/** The most outages of a kind. Of more, those that are near are one, and the oldest are forgotten. */
export const maxOutages = 500
const nearMs = 10 * minuteMs
// By number and not by age: one clock that is ahead would drop what the others know.
const maxDays = 2 * daysShown
const sampleEveryMs = 10_000
const key = 'service-days'
const leaseMs = 5_000
// Much longer than it is shown, so that a clock of a file's machine that is ahead for a while does not end it.
const keepForMs = 400 * utcDayMs
const longestBytes = 256 * 1024

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
})

export const noRecord: ServiceRecord = {
  answers: {},
  outages: { provider: [], store: [] },
  outagesSince: { provider: 0, store: 0 },
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
  }
}

/** The last instant that a record is about, ms since the epoch. */
const newestIn = ({ answers, outages }: ServiceRecord): number =>
  Math.max(
    0,
    ...Object.keys(answers).map(day => Date.parse(day) + utcDayMs),
    ...[...outages.provider, ...outages.store].map(([, to]) => to),
  )

/** A local day with its bounds, ms since the epoch. */
type Day = { readonly day: LocalDay; readonly from: number; readonly to: number }

/** The last local days, newest first. */
const lastDays = (calendar: Calendar, now: number): Day[] => {
  const days: Day[] = []
  let to = calendar.nextMidnight(now)
  while (days.length < daysShown) {
    // An instant of the day before: a day has 22 to 26 hours.
    const from = calendar.nextMidnight(to - 30 * 3_600_000)
    days.push({ day: calendar.dayOf(from), from, to })
    to = from
  }
  return days
}

const dayIn = ({ answers, outages, outagesSince }: ServiceRecord, { day, from, to }: Day): ServiceDay => {
  const { all, errors } = answers[day] ?? { all: 0, errors: 0 }
  const minutesOf = (kind: OutageKind): number | null => {
    if (from < outagesSince[kind]) return null
    const ms = outages[kind].reduce(
      (sum, [begin, end]) => sum + Math.max(0, Math.min(end, to) - Math.max(begin, from)),
      0,
    )
    return Math.ceil(ms / minuteMs)
  }
  const minutes = { provider: minutesOf('provider'), store: minutesOf('store') }
  const isOnRecord = all > 0 || Boolean(minutes.provider) || Boolean(minutes.store)
  return {
    day,
    availability: all === 0 ? null : (all - Math.min(errors, all)) / all,
    outageMinutes: isOnRecord ? minutes : { provider: null, store: null },
  }
}

/** The outages that reach into the days, newest first. */
const incidentsIn = ({ outages }: ServiceRecord, days: readonly Day[]): Incident[] => {
  const oldest = days.at(-1)?.from ?? 0
  return (['provider', 'store'] as const)
    .flatMap(kind => outages[kind].map(([from, to]) => ({ kind, from, to })))
    .filter(({ to }) => to > oldest)
    .sort((one, other) => other.from - one.from)
}

export type ServiceDays = ReturnType<typeof openServiceDays>

export const openServiceDays = ({
  store,
  instance,
  answered,
  outages,
  calendar,
  clock,
}: {
  readonly store: Pick<ByteStore & LeaseStore, 'readBytes' | 'writeBytes' | 'acquireLease' | 'releaseLease'>
  /** The name of this instance. */
  readonly instance: string
  /** Sums since the start. */
  readonly answered: () => Answers
  /** Those that are on. */
  readonly outages: () => readonly { readonly outage: OutageKind; readonly since: number }[]
  readonly calendar: Calendar
  readonly clock: Clock
}) => {
  /** Of the fleet, as it was read or written last; and what this instance has to add. */
  let known = noRecord
  let knownAt = Number.NEGATIVE_INFINITY
  let added = noRecord
  let counted = answered()
  let syncing: Promise<void> | undefined

  const sample = (): void => {
    const now = clock.now()
    const sums = answered()
    const all = sums.all - counted.all
    const errors = sums.errors - counted.errors
    counted = sums
    const on = outages()
    if (all === 0 && on.length === 0) return
    const intervalsOf = (kind: OutageKind): Interval[] =>
      on.flatMap(({ outage, since }) => (outage === kind && since <= now ? [[since, now] as const] : []))
    added = mergedRecord(added, {
      answers: all === 0 ? {} : { [calendar.dayOf(now)]: { all, errors } },
      outages: { provider: intervalsOf('provider'), store: intervalsOf('store') },
      outagesSince: noRecord.outagesSince,
    })
  }

  const read = async (): Promise<ServiceRecord> => readRecord(await store.readBytes(key, longestBytes))
  /** Adds what is new to the store's record, or only reads it; tried again with the next sample where another instance writes now. */
  const sync = async (): Promise<void> => {
    const taken = added
    const now = clock.now()
    if (taken === noRecord) {
      known = await read()
      knownAt = now
      return
    }
    if ((await store.acquireLease(key, instance, leaseMs)) !== 'acquired') return
    try {
      const whole = mergedRecord(await read(), taken)
      const bytes = Buffer.from(JSON.stringify(whole))
      // A clock that is slow must not expire what others wrote.
      const expiresAt = Math.max(now, newestIn(whole)) + keepForMs
      if (!(await store.writeBytes(key, bytes, expiresAt, instance))) return
      known = whole
      knownAt = now
      added = without(added, taken)
    } finally {
      await store.releaseLease(key, instance)
    }
  }
  const syncIfDue = (isDue: boolean): Promise<void> => {
    if (isDue)
      syncing ??= sync()
        // An outage of the store is logged, and is in this record later.
        .catch(() => {})
        .finally(() => {
          syncing = undefined
        })
    return syncing ?? Promise.resolve()
  }
  const isOld = () => Math.abs(clock.now() - knownAt) >= minuteMs
  const endTimer = every(clock, sampleEveryMs, () => {
    sample()
    void syncIfDue(isOld() && added !== noRecord)
  })

  return {
    /** The last days and their outages, each newest first. */
    read: async (): Promise<{ days: ServiceDay[]; incidents: Incident[] }> => {
      sample()
      await syncIfDue(isOld())
      const whole = mergedRecord(known, added)
      const days = lastDays(calendar, clock.now())
      return { days: days.map(day => dayIn(whole, day)), incidents: incidentsIn(whole, days) }
    },
    /** Writes what is left. */
    close: async (): Promise<void> => {
      endTimer()
      sample()
      await syncing
      await syncIfDue(added !== noRecord)
    },
  }
}

/** What came after a part was taken. Its outages are kept whole: united again they change nothing. */
const without = (whole: ServiceRecord, taken: ServiceRecord): ServiceRecord => {
  if (whole === taken) return noRecord
  const answers: Record<LocalDay, Answers> = {}
  for (const [day, { all, errors }] of Object.entries(whole.answers)) {
    const before = taken.answers[day] ?? { all: 0, errors: 0 }
    if (all > before.all) answers[day] = { all: all - before.all, errors: errors - before.errors }
  }
  return { ...whole, answers }
}
