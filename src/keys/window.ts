// The windows that a limit is counted in: each is a local day of the quota's time zone. Only this file makes windows, so that another
// length needs only another function here.

import { type Calendar, hourMs, utcDayMs } from '../common/calendar.ts'

/** Instants in ms since the epoch. */
export type Window = {
  /** The name of its counts in the store, such as `2026-11-21`. */
  readonly name: string
  readonly startsAt: number
  /** The first instant of the next one. */
  readonly endsAt: number
  /** Until when the store keeps its counts. */
  readonly keepUntil: number
}

/** The window that an instant belongs to. */
export type Windows = { at(instant: number): Window }

/** @param keepForMs how long counts are kept after the end; an hour at least, because requests may still be in flight then */
export const localDays = (
  { dayOf, nextMidnight }: Pick<Calendar, 'dayOf' | 'nextMidnight'>,
  keepForMs: number,
): Windows => ({
  at: instant => {
    // Days have 23 to 25 hours where summer time begins and ends.
    let [startsAt, endsAt] = [instant, nextMidnight(instant - 2 * utcDayMs)]
    while (endsAt <= instant) {
      startsAt = endsAt
      endsAt = nextMidnight(startsAt)
    }
    return { name: dayOf(instant), startsAt, endsAt, keepUntil: endsAt + Math.max(hourMs, keepForMs) }
  },
})
