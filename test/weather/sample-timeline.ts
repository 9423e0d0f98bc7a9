// A timeline for tests in which every value encodes its own section, column and step.

import { dayNumber } from '../../src/common/calendar.ts'
import { ranges } from '../../src/weather/ranges.ts'
import { layOut, type Series, type Timeline } from '../../src/weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../src/weather/weather-variables.ts'

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

/** The same with possible weather values. */
export const plausibleTimeline = (): Timeline => {
  const timeline = sampleTimeline()
  const { values, quarterHours, hours, days } = timeline
  for (const [series, units] of [
    [quarterHours, currentUnits],
    [hours, hourlyUnits],
    [days, dailyUnits],
  ] as const)
    Object.keys(units).forEach((name, column) => {
      const { least, most, whole } = ranges[name as keyof typeof ranges]
      const from = series.offset + column * series.length
      values.fill(whole ? least + 1 : (least + most) / 2, from, from + series.length)
    })
  return timeline
}
