// Parses the expiry of a key, as people and other programs write it.

import {
  type Calendar,
  dayNumber,
  dayOfNumber,
  hourMs,
  type LocalDay,
  minuteMs,
  parseInstant,
  utcDayMs,
} from '../common/calendar.ts'
import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'

/** The instant in ms since the epoch; null for `never`. @throws InputError for anything else, and for an instant in the past */
export const expiryIn = (given: string, calendar: Calendar, now: number): number | null => {
  if (given === 'never') return null
  const instant = instantOf(given, calendar, now)
  if (instant === undefined)
    throw new InputError(
      `expires must be never, a day such as 2027-01-31 (until its end in ${calendar.zone}), an instant such as 2027-01-31T12:00:00Z, or a duration such as 90d or 12h, got ${quoted(given)}`,
    )
  if (instant <= now) throw new InputError(`expires must be in the future, got ${quoted(given)}`)
  return instant
}

const instantOf = (given: string, calendar: Calendar, now: number): number | undefined => {
  const duration = parseDuration(given)
  if (duration !== undefined) return now + duration
  if (isDay(given)) return endOf(given, calendar)
  const instant = isoInstant.test(given) ? parseInstant(given) : Number.NaN
  return Number.isNaN(instant) ? undefined : instant
}

const unitsMs = [utcDayMs, hourMs, minuteMs, 1_000]

/** A duration such as `90d` or `2h20m` in ms; undefined for anything else. */
export const parseDuration = (given: string): number | undefined => {
  const form = /^(?:(\d{1,5})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,5})s)?$/
  const parts = given === '' ? undefined : form.exec(given)?.slice(1)
  return parts && unitsMs.reduce((sum, ms, i) => sum + ms * Number(parts[i] ?? 0), 0)
}

/** Whether a text is a date of the calendar, `YYYY-MM-DD`. */
export const isDay = (given: string): given is LocalDay =>
  /^\d{4}-\d\d-\d\d$/.test(given) &&
  !Number.isNaN(dayNumber(given)) &&
  dayOfNumber(dayNumber(given)) === given

const isoInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/

const endOf = (day: LocalDay, calendar: Calendar): number => {
  const noon = dayNumber(day) * utcDayMs + 12 * hourMs
  return calendar.nextMidnight(noon - calendar.offsetSecondsAt(noon) * 1000)
}
