// The record of the last days for the status page: answers and errors of each day, and the outages, over the fleet and over
// restarts. It is one value of the store. An instance adds what is new at most once a minute, under a lease, so that none
// overwrites another's; processes that share the file of an embedded store have no lease in common and may lose a minute. What
// the page says of it is in api/status/.

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
}

/** `availability` is the share of answers without 5xx; null without any answer. A day without anything on record has null for the minutes too. */
export type ServiceDay = {
  readonly day: LocalDay
  readonly availability: number | null
  readonly outageMinutes: { readonly [Kind in OutageKind]: number | null }
}

const daysShown = 30
/** The most outages of a kind; the oldest are dropped. */
export const maxOutages = 500
const sampleEveryMs = 10_000
const key = 'service-days'
const leaseMs = 5_000
const keepForMs = (daysShown + 2) * utcDayMs
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
})

export const noRecord: ServiceRecord = { answers: {}, outages: { provider: [], store: [] } }

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

/** Counts add up, and outages that several instances have seen are one. Drops what is older than `oldest` and began before `since`. */
export const mergedRecord = (
  one: ServiceRecord,
  other: ServiceRecord,
  { oldest, since }: { readonly oldest: LocalDay; readonly since: number },
): ServiceRecord => {
  const answers: Record<LocalDay, Answers> = {}
  for (const { answers: part } of [one, other])
    for (const [day, { all, errors }] of Object.entries(part)) {
      const before = answers[day]
      if (day >= oldest)
        answers[day] = { all: (before?.all ?? 0) + all, errors: (before?.errors ?? 0) + errors }
    }
  const outagesOf = (kind: OutageKind) =>
    united([...one.outages[kind], ...other.outages[kind]])
      .filter(([, to]) => to >= since)
      .slice(-maxOutages)
  return { answers, outages: { provider: outagesOf('provider'), store: outagesOf('store') } }
}

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

const dayIn = ({ answers, outages }: ServiceRecord, { day, from, to }: Day): ServiceDay => {
  const { all, errors } = answers[day] ?? { all: 0, errors: 0 }
  const minutesOf = (kind: OutageKind): number => {
    const ms = outages[kind].reduce(
      (sum, [begin, end]) => sum + Math.max(0, Math.min(end, to) - Math.max(begin, from)),
      0,
    )
    return Math.ceil(ms / minuteMs)
  }
  const minutes = { provider: minutesOf('provider'), store: minutesOf('store') }
  return {
    day,
    availability: all === 0 ? null : (all - Math.min(errors, all)) / all,
    outageMinutes: all + minutes.provider + minutes.store === 0 ? { provider: null, store: null } : minutes,
  }
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
  let exchanging: Promise<void> | undefined

  const boundsAt = (now: number) => {
    const oldest = lastDays(calendar, now).at(-1)
    return { oldest: oldest?.day ?? '', since: oldest?.from ?? 0 }
  }
  const together = (one: ServiceRecord, other: ServiceRecord) =>
    mergedRecord(one, other, boundsAt(clock.now()))

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
    added = together(added, {
      answers: all === 0 ? {} : { [calendar.dayOf(now)]: { all, errors } },
      outages: { provider: intervalsOf('provider'), store: intervalsOf('store') },
    })
  }

  const read = async (): Promise<ServiceRecord> => readRecord(await store.readBytes(key, longestBytes))
  /** Adds what is new to the store's record, or only reads it; tried again with the next sample where another instance writes now. */
  const exchange = async (): Promise<void> => {
    const taken = added
    const now = clock.now()
    if (taken === noRecord) {
      known = await read()
      knownAt = now
      return
    }
    if ((await store.acquireLease(key, instance, leaseMs)) !== 'acquired') return
    try {
      const whole = together(await read(), taken)
      const bytes = Buffer.from(JSON.stringify(whole))
      if (!(await store.writeBytes(key, bytes, now + keepForMs, instance))) return
      known = whole
      knownAt = now
      added = without(added, taken)
    } finally {
      await store.releaseLease(key, instance)
    }
  }
  const exchangeIfDue = (isDue: boolean): Promise<void> => {
    if (isDue)
      exchanging ??= exchange()
        // The store's outage is told elsewhere, and is in this very record later.
        .catch(() => {})
        .finally(() => {
          exchanging = undefined
        })
    return exchanging ?? Promise.resolve()
  }
  const isOld = () => Math.abs(clock.now() - knownAt) >= minuteMs
  const endTimer = every(clock, sampleEveryMs, () => {
    sample()
    void exchangeIfDue(isOld() && added !== noRecord)
  })

  return {
    /** The last days, newest first. */
    days: async (): Promise<ServiceDay[]> => {
      sample()
      await exchangeIfDue(isOld())
      const whole = together(known, added)
      return lastDays(calendar, clock.now()).map(day => dayIn(whole, day))
    },
    /** Writes what is left. */
    close: async (): Promise<void> => {
      endTimer()
      sample()
      await exchanging
      await exchangeIfDue(added !== noRecord)
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
  return { answers, outages: whole.outages }
}
