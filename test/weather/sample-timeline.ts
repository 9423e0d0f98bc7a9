// A timeline made up for a test: every value tells its own section, column and step.

import { dayNumber } from '../../src/calendar.ts'
import { layOut, type Series, type Timeline } from '../../src/weather/timeline.ts'

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
