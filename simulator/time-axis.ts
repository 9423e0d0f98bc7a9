// Which instants a section covers, and their format: local time without a zone, or Unix seconds. The current UTC offset
// applies to all days. Pure; instants are ms since the epoch.

import { utcDayMs } from '../src/calendar.ts'

/** Equal steps from `start` on. */
export type Axis = { readonly start: number; readonly step: number; readonly count: number }

/** Local days by their dates; the first is counted from the epoch. */
export type DateRange = { readonly firstDay: number; readonly days: number }

/** The parameters of a request that select its times. Dates replace counted days. */
export type Stretch = {
  readonly pastDays: number
  readonly forecastDays: number
  readonly dates: DateRange | undefined
}

/** Steps before and after the current one, where a request counts in steps instead of days. */
export type StepCounts = { readonly past: number | undefined; readonly forecast: number | undefined }

/** Local days, beginning with the first past day. */
export const dayAxis = ({ pastDays, forecastDays, dates }: Stretch, now: number, offsetMs: number): Axis =>
  dates
    ? { start: dates.firstDay * utcDayMs - offsetMs, step: utcDayMs, count: dates.days }
    : {
        start: floorTo(now, utcDayMs, offsetMs) - pastDays * utcDayMs,
        step: utcDayMs,
        count: pastDays + forecastDays,
      }

/** Begins with the current step when steps are counted; otherwise all steps of the local days. */
export const stepAxis = (
  step: number,
  stretch: Stretch,
  counts: StepCounts,
  now: number,
  offsetMs: number,
): Axis => {
  if (counts.past === undefined && counts.forecast === undefined) {
    const days = dayAxis(stretch, now, offsetMs)
    return { start: days.start, step, count: (days.count * utcDayMs) / step }
  }
  const past = counts.past ?? 0
  const forecast = counts.forecast ?? (stretch.forecastDays * utcDayMs) / step
  return { start: floorTo(now, step, offsetMs) - past * step, step, count: past + forecast }
}

/** The instants of the steps. */
export const instantsOf = ({ start, step, count }: Axis): number[] =>
  Array.from({ length: count }, (_, i) => start + i * step)

/** The format of times. */
export type TimeFormat = 'iso8601' | 'unixtime'

/** An instant as JSON: `"2026-11-20T19:15"` or seconds. */
export const printInstant = (instant: number, format: TimeFormat, offsetMs: number): string =>
  format === 'unixtime' ? String(Math.round(instant / 1000)) : `"${localIso(instant, offsetMs).slice(0, 16)}"`

/** A local day by its midnight, as JSON: `"2026-11-20"` or seconds. */
const printDay = (midnight: number, format: TimeFormat, offsetMs: number): string =>
  format === 'unixtime' ? String(midnight / 1000) : `"${localIso(midnight, offsetMs).slice(0, 10)}"`

const localIso = (instant: number, offsetMs: number): string => new Date(instant + offsetMs).toISOString()

const floorTo = (instant: number, step: number, offsetMs: number): number =>
  Math.floor((instant + offsetMs) / step) * step - offsetMs

/** Prints the times of sections; points of one zone share the work. */
export type TimePrinter = {
  instants(times: readonly number[], offsetMs: number): readonly string[]
  days(midnights: readonly number[], offsetMs: number): readonly string[]
}

/** A printer for one response. */
export const createTimePrinter = (format: TimeFormat): TimePrinter => ({
  instants: shared((time, offsetMs) => printInstant(time, format, offsetMs)),
  days: shared((midnight, offsetMs) => printDay(midnight, format, offsetMs)),
})

const shared = (print: (time: number, offsetMs: number) => string) => {
  const printed = new Map<string, readonly string[]>()
  return (times: readonly number[], offsetMs: number): readonly string[] => {
    // Times are evenly spaced, so the first two and the count identify all of them.
    const key = `${times[0]} ${times[1]} ${times.length} ${offsetMs}`
    const known = printed.get(key) ?? times.map(time => print(time, offsetMs))
    printed.set(key, known)
    return known
  }
}
