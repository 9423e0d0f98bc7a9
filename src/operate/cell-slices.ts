// The contents of a timeline, for the report of a cell: the steps of its three series, and the slice of now. src/weather writes
// the responses of the API.

import { dayOfNumber, hourMs, isoOf, quarterHourMs } from '../common/calendar.ts'
import type { Span, Timeline } from '../weather/timeline.ts'
import { currentUnits } from '../weather/weather-variables.ts'
import type { SlicesReport } from './listener/cell-report.ts'

const fields = Object.keys(currentUnits)

export const slicesOf = (timeline: Timeline, now: number): SlicesReport => {
  const { quarterHours, hours, days, values } = timeline
  const step = Math.floor((now - quarterHours.start) / quarterHourMs)
  const currentOf = (field: keyof typeof currentUnits): number | null => {
    const value = values[quarterHours.offset + fields.indexOf(field) * quarterHours.length + step]
    // Numbers are held with 32 bits, which give three decimals.
    return value === undefined || Number.isNaN(value) ? null : Math.round(value * 1000) / 1000
  }
  return {
    quarterHours: stepsOf(quarterHours, quarterHourMs),
    hours: stepsOf(hours, hourMs),
    days: {
      from: dayOfNumber(days.start),
      to: dayOfNumber(days.start + days.length - 1),
      count: days.length,
    },
    now:
      step < 0 || step >= quarterHours.length
        ? null
        : {
            time: isoOf(quarterHours.start + step * quarterHourMs),
            temperature_2m: currentOf('temperature_2m'),
            precipitation: currentOf('precipitation'),
            weather_code: currentOf('weather_code'),
          },
  }
}

/** From the beginning of the first step to the end of the last. */
const stepsOf = ({ start, length }: Span, stepMs: number) => ({
  from: isoOf(start),
  to: isoOf(start + length * stepMs),
  count: length,
})
