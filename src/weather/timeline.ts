// A cell's weather over time: everything the provider said in one answer, so that each later question is answered by
// cutting a slice at the instant it is asked. Slices are found by time, never by position. Knows no cache and no HTTP.

import { type Calendar, dayNumber, dayOfNumber, hourMs, quarterHourMs } from '../calendar.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './variables.ts'

/** Values at equal steps. */
export type Span = {
  /** Quarter-hours and hours: ms since the epoch of the first step. Days: day number of the first day. */
  readonly start: number
  readonly length: number
}

/** A span whose columns, one per variable in the order of its unit table, lie one after another from `offset` on. */
export type Series = Span & { readonly offset: number }

export type Timeline = {
  /** When the provider answered, in ms since the epoch. */
  readonly fetchedAt: number
  /** The columns of the three series in this order, without a gap; NaN where the provider has no value. */
  readonly values: Float32Array
  readonly quarterHours: Series
  readonly hours: Series
  readonly days: Series
}

const variablesOf = (units: object): number => Object.keys(units).length

/** A timeline of these spans whose values, all 0 yet, are for the caller to fill in. */
export const layOut = (fetchedAt: number, quarterHours: Span, hours: Span, days: Span): Timeline => {
  const hoursFrom = quarterHours.length * variablesOf(currentUnits)
  const daysFrom = hoursFrom + hours.length * variablesOf(hourlyUnits)
  return {
    fetchedAt,
    // An array of its own: a view into a shared buffer would keep all of that buffer alive.
    values: new Float32Array(daysFrom + days.length * variablesOf(dailyUnits)),
    quarterHours: { start: quarterHours.start, length: quarterHours.length, offset: 0 },
    hours: { start: hours.start, length: hours.length, offset: hoursFrom },
    days: { start: days.start, length: days.length, offset: daysFrom },
  }
}

type Value = number | null
export type Current = { time: string; interval: number } & Record<keyof typeof currentUnits, Value>
export type Hourly = { time: string[] } & Record<keyof typeof hourlyUnits, Value[]>
export type Daily = { time: string[] } & Record<keyof typeof dailyUnits, Value[]>

// Measured over 10,000 timelines: 473 bytes of JavaScript heap for the five objects and the numbers in them, the rest is
// what the allocator adds to a buffer outside of it. Resident memory grew by 17,197 bytes each, of 16,840 of values.
const objectBytes = 512

/** Bytes a timeline takes in memory. */
export const bytesOf = ({ values }: Timeline): number => values.buffer.byteLength + objectBytes

/** The running quarter-hour at `now`, or undefined when the timeline does not reach it. */
export const currentAt = (timeline: Timeline, now: number, calendar: Calendar): Current | undefined => {
  const { start, length } = timeline.quarterHours
  const step = Math.floor((now - start) / quarterHourMs)
  if (step < 0 || step >= length) return undefined
  const values = Object.keys(currentUnits).map((name, i) => [
    name,
    valueAt(timeline.values, timeline.quarterHours, i, step),
  ])
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
  return cut(timeline.values, timeline.hours, hourlyUnits, from, count, step =>
    calendar.localMinute(start + step * hourMs),
  )
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
  return cut(timeline.values, timeline.days, dailyUnits, from, count, step => dayOfNumber(start + step))
}

const cut = <Units extends object>(
  values: Float32Array,
  series: Series,
  units: Units,
  from: number,
  count: number,
  timeOf: (step: number) => string,
) => {
  if (from < 0 || from + count > series.length) return undefined
  const steps = Array.from({ length: count }, (_, i) => from + i)
  const columns = Object.keys(units).map((name, i) => [
    name,
    steps.map(step => valueAt(values, series, i, step)),
  ])
  return { time: steps.map(timeOf), ...Object.fromEntries(columns) } as { time: string[] } & Record<
    keyof Units,
    Value[]
  >
}

// The provider's numbers have at most two decimals and stay far below 8,192, where 32 bits hold three decimals.
const valueAt = (values: Float32Array, series: Series, column: number, step: number): Value => {
  const value = values[series.offset + column * series.length + step]
  return value === undefined || Number.isNaN(value) ? null : Math.round(value * 1000) / 1000
}
