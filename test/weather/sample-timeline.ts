// A timeline made up for a test: every value tells its own section, column and step.

import { dayNumber } from '../../src/calendar.ts'
import { ranges } from '../../src/weather/ranges.ts'
import { layOut, type Series, type Timeline } from '../../src/weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../src/weather/variables.ts'

/** Fetched at 2026-11-21T12:00 in Dhaka (06:00 UTC): quarter-hours from then on, hours and days from midnight. */
export const sampleTimeline = ({ quarterHours = 60, days = 9 } = {}): Timeline => {
  const fetchedAt = Date.parse('2026-11-21T06:00Z')
  const timeline = layOut(
    fetchedAt,
    { start: fetchedAt, length: quarterHours },
    { start: Date.parse('2026-11-20T18:00Z'), length: days * 24 },
    { start: dayNumber('2026-11-21'), length: days },
  )
  const fill = ({ offset, length }: Series, until: number, base: number) => {
    for (let i = offset; i < until; i++) {
      const [column, step] = [Math.floor((i - offset) / length), (i - offset) % length]
      timeline.values[i] = base + column + step / 100
    }
  }
  fill(timeline.quarterHours, timeline.hours.offset, 100)
  fill(timeline.hours, timeline.days.offset, 200)
  fill(timeline.days, timeline.values.length, 300)
  return timeline
}

type Variable = keyof typeof ranges
const units = [currentUnits, hourlyUnits, dailyUnits]

/** The columns of a timeline, in the order of its values. */
export const columnsOf = ({ values, quarterHours, hours, days }: Timeline): Float32Array[] =>
  [quarterHours, hours, days].flatMap(({ offset, length }, i) =>
    Object.keys(units[i] ?? {}).map((_, column) =>
      values.subarray(offset + column * length, offset + (column + 1) * length),
    ),
  )

/** The same times with weather that there may be: each value is the least of its variable, or a little more. */
export const possibleTimeline = (): Timeline => {
  const timeline = sampleTimeline()
  const variables = units.flatMap(Object.keys) as Variable[]
  for (const [i, column] of columnsOf(timeline).entries()) {
    const { least, whole } = ranges[variables[i] as Variable]
    column.forEach((_, step) => {
      column[step] = whole ? least : least + step / 100
    })
  }
  return timeline
}
