// What keys did at this gateway recently, for operators: requests by hour, errors of the day by code, and the last use. Only the keys
// with most requests are kept. Requests come with each flush of the usage detail, so a request costs nothing here.

import { type Calendar, hourMs, type LocalDay } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { createKeyIndex } from './key-index.ts'

export type KeyActivity = {
  /** Requests by hour; the last is the hour that runs. */
  readonly hours: readonly number[]
  /** Of this local day, by the code of the error. */
  readonly refusals: Readonly<Record<string, number>>
  /** To a second or two, ms since the epoch; null without a request that was counted. */
  readonly lastUsedAt: number | null
}

type Entry = {
  readonly keyId: string
  next: Entry | undefined
  /** By the number of the hour modulo their length, up to `hour`. */
  readonly hours: number[]
  hour: number
  day: LocalDay
  refusals: Map<string, number>
  lastUsedAt: number | null
}

const hoursKept = 24
export const maxKeys = 1_000
// Dropped together, because choosing them takes a pass.
const surplus = maxKeys / 4

export type KeyActivities = ReturnType<typeof createKeyActivities>

export const createKeyActivities = (calendar: Calendar, clock: Clock) => {
  const keys = createKeyIndex<Entry>()

  const hourNow = (): number => Math.floor(clock.now() / hourMs)
  /** Clears the hours that have passed since its last one; all of them after a clock that was set back. */
  const turn = (entry: Entry, hour: number): void => {
    const passed = hour - entry.hour
    const cleared = passed < 0 ? hoursKept : Math.min(passed, hoursKept)
    for (let i = 1; i <= cleared; i++) entry.hours[(entry.hour + i) % hoursKept] = 0
    entry.hour = hour
  }
  const sumOf = ({ hours }: Entry): number => hours.reduce((sum, count) => sum + count, 0)
  const dropSurplus = (): void => {
    const hour = hourNow()
    const found = [...keys.values()].map(entry => {
      turn(entry, hour)
      return { entry, sum: sumOf(entry) }
    })
    found.sort((one, other) => other.sum - one.sum)
    for (const { entry } of found.slice(maxKeys)) keys.delete(entry)
  }
  const entryOf = (keyId: string): Entry => {
    const found = keys.find(keyId)
    if (found) return found
    if (keys.size() >= maxKeys + surplus) dropSurplus()
    const entry: Entry = {
      keyId,
      next: undefined,
      hours: new Array<number>(hoursKept).fill(0),
      hour: hourNow(),
      day: '',
      refusals: new Map(),
      lastUsedAt: null,
    }
    keys.add(entry)
    return entry
  }

  return {
    /** Adds requests of keys; a key may be listed several times. */
    used: (counts: readonly { readonly keyId: string; readonly count: number }[]): void => {
      const hour = hourNow()
      for (const { keyId, count } of counts) {
        const entry = entryOf(keyId)
        turn(entry, hour)
        entry.hours[hour % hoursKept] = (entry.hours[hour % hoursKept] ?? 0) + count
        entry.lastUsedAt = clock.now()
      }
    },
    /** A request with a known key ended in an error. @param code as consumers read it */
    refused: (keyId: string, code: string): void => {
      const entry = entryOf(keyId)
      const day = calendar.dayOf(clock.now())
      if (entry.day !== day) {
        entry.day = day
        entry.refusals = new Map()
      }
      entry.refusals.set(code, (entry.refusals.get(code) ?? 0) + 1)
    },
    /** Undefined for a key that was not seen here, or not among those with most requests. */
    of: (keyId: string): KeyActivity | undefined => {
      const entry = keys.find(keyId)
      if (!entry) return undefined
      const hour = hourNow()
      turn(entry, hour)
      const oldest = (hour + 1) % hoursKept
      return {
        hours: [...entry.hours.slice(oldest), ...entry.hours.slice(0, oldest)],
        refusals: entry.day === calendar.dayOf(clock.now()) ? Object.fromEntries(entry.refusals) : {},
        lastUsedAt: entry.lastUsedAt,
      }
    },
  }
}
