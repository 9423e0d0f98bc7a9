// A timeline made up for a test: every value tells its own section, column and step.

import { dayNumber } from '../../src/calendar.ts'
import type { Series, Timeline } from '../../src/weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../src/weather/variables.ts'

const series = (start: number, length: number, variables: object, base: number): Series => ({
  start,
  length,
  columns: Object.keys(variables).map((_, column) =>
    Float32Array.from({ length }, (_, step) => base + column + step / 100),
  ),
})

/** Fetched at 2026-11-21T12:00 in Dhaka (06:00 UTC): quarter-hours from then on, hours and days from midnight. */
export const sampleTimeline = ({ quarterHours = 60, days = 9 } = {}): Timeline => ({
  fetchedAt: Date.parse('2026-11-21T06:00Z'),
  quarterHours: series(Date.parse('2026-11-21T06:00Z'), quarterHours, currentUnits, 100),
  hours: series(Date.parse('2026-11-20T18:00Z'), days * 24, hourlyUnits, 200),
  days: series(dayNumber('2026-11-21'), days, dailyUnits, 300),
})
