// The weather of test keys: made up, the same at all times, different for each cell. Nothing is cached, loaded or counted as demand.

import type { CacheResult } from '../cache/cache-parts.ts'
import { hourMs } from '../common/calendar.ts'
import type { Cell } from '../weather/cell.ts'
import { horizonFor, stepsWithin } from '../weather/horizon.ts'
import { syntheticTimeline } from '../weather/synthetic-timeline.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { WeatherEndpointParts } from './weather-endpoints.ts'

// Noon of a day with sun and showers, long enough ago to be past on every clock: `last-modified` has it.
const instant = '2026-04-14T12:00:00Z'
const freshForMs = hourMs

/** The same parts with test weather instead of the real one. */
export const withFixedWeather = (parts: WeatherEndpointParts): WeatherEndpointParts => {
  const { calendar, hourlyHours } = parts
  const asUtc = Date.parse(instant)
  const readAt = asUtc - calendar.offsetSecondsAt(asUtc) * 1_000
  const lengths = stepsWithin(horizonFor(freshForMs, hourlyHours))
  const read = (cell: Cell): CacheResult<Cell, Timeline> => ({
    subject: cell,
    value: syntheticTimeline(readAt, lengths, calendar, seedOf(cell)),
    readAt,
    fetchedAt: readAt,
    freshUntil: readAt + freshForMs,
    outcome: 'hit',
    source: 'test',
    forwarded: false,
    collapsed: false,
    // Nothing is kept: test suites request rarely.
    derived: { data: undefined, setBytes: () => {} },
  })
  return { ...parts, timelines: { read } }
}

const seedOf = ({ latitude, longitude }: Cell): number => Math.round(latitude * 1e7 + longitude * 1e4) | 0
