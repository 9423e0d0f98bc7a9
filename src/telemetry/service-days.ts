// The record of the last days for the status page: answers and errors of each day, and the outages, over the fleet and over
// restarts. It is one value of the store. An instance adds what is new at most once a minute, under a lease, so that none
// overwrites another's, and with a mark, so that a write whose answer got lost is not repeated; processes that share the file of an
// embedded store have no lease in common and may lose a minute. What the page says of it is in api/status-page.ts.

import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Calendar, type LocalDay, minuteMs, utcDayMs } from '../common/calendar.ts'
import { type Clock, every } from '../common/clock.ts'
import type { ByteStore, LeaseStore } from '../stores/store.ts'
import type { Answers } from './metrics.ts'
import {
  daysShown,
  type Interval,
  mergedRecord,
  newestIn,
  noRecord,
  type OutageKind,
  readRecord,
  type ServiceRecord,
  without,
} from './service-record.ts'

/** `availability` is the share of answers without 5xx; null without any answer. Minutes are null for a day without anything on record, and for one whose outages are forgotten. */
export type ServiceDay = {
  readonly day: LocalDay
  readonly availability: number | null
  readonly outageMinutes: { readonly [Kind in OutageKind]: number | null }
}

/** An outage on record with its instants, ms since the epoch. */
export type Incident = { readonly kind: OutageKind; readonly from: number; readonly to: number }

const sampleEveryMs = 10_000
const key = 'service-days'
const leaseMs = 5_000
// Much longer than it is shown, so that a clock of a file's machine that is ahead for a while does not end it.
const keepForMs = 400 * utcDayMs
const longestBytes = 256 * 1024
// How often the end tries to write, and how long it waits in between: others hold the lease for milliseconds.
const triesAtEnd = 4
const pauseAtEndMs = 250

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

type Shared = {
  readonly store: Pick<ByteStore & LeaseStore, 'readBytes' | 'writeBytes' | 'acquireLease' | 'releaseLease'>
  /** The name of this instance. */
  readonly instance: string
  readonly clock: Clock
}

/** The record of the fleet, to which this instance adds. */
const openRecord = ({ store, instance, clock }: Shared) => {
  /** Of the fleet, as it was read or written last; and what this instance has to add. */
  let known = noRecord
  let knownAt = Number.NEGATIVE_INFINITY
  let added = noRecord
  /** A write that failed, and may be in the store all the same: its mark, and what it added. */
  let unsure: { readonly mark: string; readonly taken: ServiceRecord } | undefined
  let syncing: Promise<boolean> | undefined

  const read = async (): Promise<ServiceRecord> => readRecord(await store.readBytes(key, longestBytes))
  const keep = (record: ServiceRecord, at: number): void => {
    known = record
    knownAt = at
  }
  const write = async (now: number): Promise<void> => {
    const stored = await read()
    if (unsure && stored.marks.includes(unsure.mark)) added = without(added, unsure.taken)
    unsure = undefined
    const taken = added
    if (taken === noRecord) return keep(stored, now)
    const mark = randomUUID()
    const whole = mergedRecord(stored, { ...taken, marks: [mark] })
    const bytes = Buffer.from(JSON.stringify(whole))
    // A clock that is slow must not expire what others wrote.
    const expiresAt = Math.max(now, newestIn(whole)) + keepForMs
    unsure = { mark, taken }
    const isWritten = await store.writeBytes(key, bytes, expiresAt, instance)
    unsure = undefined
    if (!isWritten) return
    keep(whole, now)
    added = without(added, taken)
  }
  const syncOnce = async (): Promise<boolean> => {
    const now = clock.now()
    if (added === noRecord) {
      keep(await read(), now)
      return false
    }
    if ((await store.acquireLease(key, instance, leaseMs)) !== 'acquired') return true
    try {
      await write(now)
    } finally {
      await store.releaseLease(key, instance)
    }
    return false
  }

  return {
    add: (part: Omit<ServiceRecord, 'outagesSince' | 'marks'>): void => {
      added = mergedRecord(added, { ...noRecord, ...part })
    },
    /** With what is not in the store yet. */
    whole: (): ServiceRecord => mergedRecord(known, added),
    hasMore: (): boolean => added !== noRecord,
    isOld: (): boolean => Math.abs(clock.now() - knownAt) >= minuteMs,
    /** Adds what is new to the store's record, or only reads it. Returns whether it has to be tried again: another instance writes now. */
    sync: (): Promise<boolean> => {
      syncing ??= syncOnce()
        // An outage of the store is logged, and is in this record later.
        .catch(() => false)
        .finally(() => {
          syncing = undefined
        })
      return syncing
    },
    /** What is under way may not have the last part. */
    idle: async (): Promise<void> => void (await syncing),
  }
}

export type ServiceDays = ReturnType<typeof openServiceDays>

export const openServiceDays = ({
  answered,
  outages,
  calendar,
  ...shared
}: Shared & {
  /** Sums since the start. */
  readonly answered: () => Answers
  /** Those that are on. */
  readonly outages: () => readonly { readonly outage: OutageKind; readonly since: number }[]
  readonly calendar: Calendar
}) => {
  const { clock } = shared
  const record = openRecord(shared)
  let counted = answered()

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
    record.add({
      answers: all === 0 ? {} : { [calendar.dayOf(now)]: { all, errors } },
      outages: { provider: intervalsOf('provider'), store: intervalsOf('store') },
    })
  }
  const endTimer = every(clock, sampleEveryMs, () => {
    sample()
    if (record.isOld() && record.hasMore()) void record.sync()
  })

  return {
    /** The last days and their outages, each newest first. */
    read: async (): Promise<{ days: ServiceDay[]; incidents: Incident[] }> => {
      sample()
      if (record.isOld()) await record.sync()
      const whole = record.whole()
      const days = lastDays(calendar, clock.now())
      return { days: days.map(day => dayIn(whole, day)), incidents: incidentsIn(whole, days) }
    },
    /** Writes what is left. */
    close: async (): Promise<void> => {
      endTimer()
      sample()
      await record.idle()
      for (let tries = 1; record.hasMore() && (await record.sync()) && tries < triesAtEnd; tries++)
        await pause(pauseAtEndMs)
    },
  }
}
