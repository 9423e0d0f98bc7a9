// The instants of a section, and their format: local time without a zone. The current UTC offset applies to all days. Instants are ms
// since the epoch.

import { utcDayMs } from 'abohawa/common/calendar.ts'

export type Stretch = { readonly pastDays: number; readonly forecastDays: number }

/** Steps before and after the current one, where a request counts in steps instead of days. */
export type StepCounts = { readonly past: number | undefined; readonly forecast: number | undefined }

/** The midnights of the local days, beginning with the first past day. */
export const daysOf = ({ pastDays, forecastDays }: Stretch, now: number, offsetMs: number): number[] =>
  steps(floorTo(now, utcDayMs, offsetMs) - pastDays * utcDayMs, utcDayMs, pastDays + forecastDays)

/** The steps, which begin with the current one when steps are counted; otherwise all steps of the local days. */
export const stepsOf = (
  step: number,
  stretch: Stretch,
  counts: StepCounts,
  now: number,
  offsetMs: number,
): number[] => {
  const { pastDays, forecastDays } = stretch
  const perDay = utcDayMs / step
  if (counts.past === undefined && counts.forecast === undefined) {
    const start = floorTo(now, utcDayMs, offsetMs) - pastDays * utcDayMs
    return steps(start, step, (pastDays + forecastDays) * perDay)
  }
  const past = counts.past ?? 0
  const forecast = counts.forecast ?? forecastDays * perDay
  return steps(floorTo(now, step, offsetMs) - past * step, step, past + forecast)
}

const steps = (start: number, step: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => start + i * step)

const floorTo = (instant: number, step: number, offsetMs: number): number =>
  Math.floor((instant + offsetMs) / step) * step - offsetMs

/** An instant as JSON: `"2026-11-20T19:15"`. */
export const printInstant = (instant: number, offsetMs: number): string =>
  `"${localIso(instant, offsetMs).slice(0, 16)}"`

/** A local day by its midnight: `"2026-11-20"`. */
const printDay = (midnight: number, offsetMs: number): string =>
  `"${localIso(midnight, offsetMs).slice(0, 10)}"`

const localIso = (instant: number, offsetMs: number): string => new Date(instant + offsetMs).toISOString()

/** Prints the times of sections as JSON; the points of a response share the work. */
export const createTimePrinter = () => ({ instants: shared(printInstant), days: shared(printDay) })
export type TimePrinter = ReturnType<typeof createTimePrinter>

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
