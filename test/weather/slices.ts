// Slices of a timeline as objects, computed for each call and found by time, never by position: the reference for the text
// that the product writes straight from the numbers.

import { type Calendar, dayNumber, dayOfNumber, hourMs, quarterHourMs } from '../../src/common/calendar.ts'
import type { Series, Timeline } from '../../src/weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../src/weather/weather-variables.ts'

type Value = number | null
type Current = { time: string; interval: number } & Record<keyof typeof currentUnits, Value>
/** The current quarter-hour at `now`, or undefined when the timeline does not cover it. */
export const currentAt = (timeline: Timeline, now: number, calendar: Calendar): Current | undefined => {
  const { start, length } = timeline.quarterHours
  const step = Math.floor((now - start) / quarterHourMs)
  if (step < 0 || step >= length) return undefined
  const values = Object.keys(currentUnits).map((name, i) => {
    return [name, valueAt(timeline.values, timeline.quarterHours, i, step)]
  })
  const time = calendar.localMinute(start + step * quarterHourMs)
  return { time, interval: quarterHourMs / 1000, ...Object.fromEntries(values) }
}

/** `count` hours from the current local hour on, or undefined when the timeline does not cover them all. */
export const hoursFrom = (timeline: Timeline, now: number, calendar: Calendar, count: number) => {
  const { start } = timeline.hours
  const timeOf = (step: number) => calendar.localMinute(start + step * hourMs)
  const from = Math.floor((now - start) / hourMs)
  return cut(timeline.values, timeline.hours, hourlyUnits, from, count, timeOf)
}

/** `count` days from the local day of `now` on, or undefined when the timeline does not cover them all. */
export const daysFrom = (timeline: Timeline, now: number, calendar: Calendar, count: number) => {
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
  const columns = Object.keys(units).map((name, i) => {
    return [name, steps.map(step => valueAt(values, series, i, step))]
  })
  const found = { time: steps.map(timeOf), ...Object.fromEntries(columns) }
  return found as { time: string[] } & Record<keyof Units, Value[]>
}

// The provider's numbers have at most two decimals and stay far below 8,192, where 32 bits hold three decimals.
const valueAt = (values: Float32Array, series: Series, column: number, step: number): Value => {
  const value = values[series.offset + column * series.length + step]
  return value === undefined || Number.isNaN(value) ? null : Math.round(value * 1000) / 1000
}
