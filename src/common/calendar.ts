// The calendar of one time zone: local day, hour and minute of an instant, and when the day turns. Offsets come from the IANA database of
// the runtime, so that zones with summer time and half-hour offsets work.

import { LRUCache } from 'lru-cache'

export const minuteMs = 60_000
export const quarterHourMs = 15 * minuteMs
export const hourMs = 60 * minuteMs
/** A day of 24 hours; local days may be longer or shorter. */
export const utcDayMs = 24 * hourMs

/** A local date, `YYYY-MM-DD`. */
export type LocalDay = string

/** Instants are milliseconds since 1970-01-01T00:00Z. */
export type Calendar = {
  /** The IANA name of the zone. */
  readonly zone: string
  /** Seconds that local time is ahead of UTC at an instant. */
  offsetSecondsAt(instant: number): number
  /** The local day an instant belongs to. */
  dayOf(instant: number): LocalDay
  /** Local time as `YYYY-MM-DDTHH:MM`. */
  localMinute(instant: number): string
  /** The instant at which the local day after the one of `instant` begins. */
  nextMidnight(instant: number): number
}

/** @throws RangeError when the runtime does not know the zone. */
export const createCalendar = (zone: string): Calendar => {
  // Intl.DateTimeFormat would do as well, but its first object costs 12 ms of a start.
  const zonedOf = (instant: number): Temporal.ZonedDateTime =>
    Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone)
  const readOffset = (instant: number): number => zonedOf(instant).offsetNanoseconds / 1e9
  // Fails here for an unknown zone.
  readOffset(0)
  // Offsets change on quarter-hours at the earliest, so one look-up per quarter-hour is enough.
  const offsets = new LRUCache<number, number>({ max: 2048 })

  const offsetSecondsAt = (instant: number): number => {
    const quarter = Math.floor(instant / quarterHourMs)
    let offset = offsets.get(quarter)
    if (offset === undefined) {
      offset = readOffset(quarter * quarterHourMs)
      offsets.set(quarter, offset)
    }
    return offset
  }

  const localIso = (instant: number): string =>
    new Date(instant + offsetSecondsAt(instant) * 1000).toISOString()

  const dayAt = (instant: number): LocalDay => localIso(instant).slice(0, 10)

  // Both are needed with every request, and nearly always of the running quarter-hour and day.
  let lastQuarter: { readonly number: number; readonly day: LocalDay } | undefined
  const dayOf = (instant: number): LocalDay => {
    const number = Math.floor(instant / quarterHourMs)
    if (lastQuarter?.number !== number) lastQuarter = { number, day: dayAt(instant) }
    return lastQuarter.day
  }
  let lastTurn: { readonly seenFrom: number; readonly midnight: number } | undefined
  const nextMidnight = (instant: number): number => {
    if (lastTurn === undefined || instant < lastTurn.seenFrom || instant >= lastTurn.midnight)
      // The start of a day, because some zones skip or repeat midnight.
      lastTurn = {
        seenFrom: instant,
        midnight: zonedOf(instant).add({ days: 1 }).startOfDay().epochMilliseconds,
      }
    return lastTurn.midnight
  }

  return {
    zone,
    offsetSecondsAt,
    dayOf,
    localMinute: instant => localIso(instant).slice(0, 16),
    nextMidnight,
  }
}

/** Days since 1970-01-01 of a date `YYYY-MM-DD`; NaN when it is no date. */
export const dayNumber = (day: LocalDay): number => Date.parse(`${day}T00:00Z`) / utcDayMs

/**
 * The instant of a date `YYYY-MM-DD` with or without a time of day, ms since the epoch; NaN for any other text. Without a zone
 * it is UTC: Date.parse takes such a time for one of the machine's zone, and the 30th of February for the 2nd of March.
 */
export const parseInstant = (text: string): number => {
  const [, date = '', day, time = '00:00', zone = 'Z'] = isoForm.exec(text) ?? []
  const instant = Date.parse(`${date}T${time}${zone}`)
  if (Number.isNaN(instant) || Number(day) <= 28) return instant
  return dayOfNumber(dayNumber(date)) === date ? instant : Number.NaN
}
const isoForm = /^(\d{4}-\d\d-(\d\d))(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?)?$/

/**
 * The instant of a local date and time `YYYY-MM-DDTHH:MM`, with seconds or without, ms since the epoch; NaN for a date or time that
 * is none. The earlier one of two where clocks are put back.
 */
export const localInstant = (text: string, zone: string): number => {
  try {
    const local = Temporal.PlainDateTime.from(text, { overflow: 'reject' })
    return local.toZonedDateTime(zone, { disambiguation: 'earlier' }).epochMilliseconds
  } catch {
    return Number.NaN
  }
}

/** Of a date in a header of HTTP, ms since the epoch; NaN where it lacks its zone, or is none. */
export const parseHttpDate = (text: string): number => (text.endsWith(' GMT') ? Date.parse(text) : Number.NaN)

/** The date `YYYY-MM-DD` of a day number. */
export const dayOfNumber = (number: number): LocalDay =>
  new Date(number * utcDayMs).toISOString().slice(0, 10)

/** The last `count` local days up to and including `last`, newest first. */
export const daysUpTo = (last: LocalDay, count: number): LocalDay[] =>
  Array.from({ length: count }, (_, back) => dayOfNumber(dayNumber(last) - back))

/** @param instant ms since the epoch @returns ISO 8601 in UTC, with milliseconds */
export const isoOf = (instant: number): string => new Date(instant).toISOString()

export const isoOrNull = (instant: number | null): string | null => (instant === null ? null : isoOf(instant))
