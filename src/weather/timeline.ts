// A cell's weather over time: everything the provider said in one answer, so that each later question is answered by
// cutting a slice at the instant it is asked. Slices are found by time, never by position. Knows no cache and no HTTP.

import { type Calendar, dayNumber, dayOfNumber, hourMs, quarterHourMs } from '../calendar.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './variables.ts'

/** Values at equal steps, one column per variable in the order of its unit table; NaN where the provider has none. */
export type Series = {
  /** Quarter-hours and hours: ms since the epoch of the first step. Days: day number of the first day. */
  readonly start: number
  readonly length: number
  readonly columns: readonly Float32Array[]
}

export type Timeline = {
  /** When the provider answered, in ms since the epoch. */
  readonly fetchedAt: number
  readonly quarterHours: Series
  readonly hours: Series
  readonly days: Series
}

type Value = number | null
export type Current = { time: string; interval: number } & Record<keyof typeof currentUnits, Value>
export type Hourly = { time: string[] } & Record<keyof typeof hourlyUnits, Value[]>
export type Daily = { time: string[] } & Record<keyof typeof dailyUnits, Value[]>

/** Bytes a timeline's values take in memory. */
export const bytesOf = ({ quarterHours, hours, days }: Timeline): number =>
  [quarterHours, hours, days].reduce(
    (sum, series) => sum + series.columns.reduce((bytes, column) => bytes + column.byteLength + 64, 0),
    256,
  )

/** The running quarter-hour at `now`, or undefined when the timeline does not reach it. */
export const currentAt = (timeline: Timeline, now: number, calendar: Calendar): Current | undefined => {
  const { start, length, columns } = timeline.quarterHours
  const step = Math.floor((now - start) / quarterHourMs)
  if (step < 0 || step >= length) return undefined
  const values = Object.keys(currentUnits).map((name, i) => [name, valueAt(columns[i], step)])
  return {
    time: calendar.localMinute(start + step * quarterHourMs),
    interval: quarterHourMs / 1000,
    ...Object.fromEntries(values),
  }
}

/** `count` hours from the running local hour on, or undefined when the timeline does not hold them all. */
export const hoursFrom = (
  timeline: Timeline,
  now: number,
  calendar: Calendar,
  count: number,
): Hourly | undefined => {
  const { start } = timeline.hours
  const from = Math.floor((now - start) / hourMs)
  return cut(timeline.hours, hourlyUnits, from, count, step => calendar.localMinute(start + step * hourMs))
}

/** `count` days from the local day of `now` on, or undefined when the timeline does not hold them all. */
export const daysFrom = (
  timeline: Timeline,
  now: number,
  calendar: Calendar,
  count: number,
): Daily | undefined => {
  const { start } = timeline.days
  const from = dayNumber(calendar.dayOf(now)) - start
  return cut(timeline.days, dailyUnits, from, count, step => dayOfNumber(start + step))
}

const cut = <Units extends object>(
  series: Series,
  units: Units,
  from: number,
  count: number,
  timeOf: (step: number) => string,
) => {
  if (from < 0 || from + count > series.length) return undefined
  const steps = Array.from({ length: count }, (_, i) => from + i)
  const values = Object.keys(units).map((name, i) => [
    name,
    steps.map(step => valueAt(series.columns[i], step)),
  ])
  return { time: steps.map(timeOf), ...Object.fromEntries(values) } as { time: string[] } & Record<
    keyof Units,
    Value[]
  >
}

// The provider's numbers have at most two decimals and stay far below 8,192, where 32 bits hold three decimals.
const valueAt = (column: Float32Array | undefined, step: number): Value => {
  const value = column?.[step]
  return value === undefined || Number.isNaN(value) ? null : Math.round(value * 1000) / 1000
}
