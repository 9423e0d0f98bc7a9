// Answers a weather request without HTTP and keys: the grid cell of a point, its timeline from the cache, and the slice for the instant.

import type { CacheResult } from '../cache/cache-parts.ts'
import type { ReadThrough } from '../cache/read-through.ts'
import { type Calendar, isoOf, quarterHourMs } from '../common/calendar.ts'
import { AbohawaError } from '../common/errors.ts'
import type { Cell, Grid } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import { createTimelineText, type TimelineText } from '../weather/timeline-text.ts'
import { forecastDays } from '../weather/weather-variables.ts'

/** The cache result for a cell: its timeline at the instant of the read. */
export type CellResult = CacheResult<Cell, Timeline>

/** A part of a timeline that holds from `beginsAt` until before `endsAt`; ms since the epoch. */
export type Slice<Content> = Content & { readonly beginsAt: number; readonly endsAt: number }
/** Sections of the contract as JSON text, and what local time is ahead of UTC. */
export type Forecast = Slice<{ daily: string; utcOffsetSeconds: number }>
export type Weather = Forecast & { current: string; hourly: string }

type Point = { readonly latitude: number; readonly longitude: number }

export type Answers = ReturnType<typeof createAnswers>

export type AnswerParts = {
  readonly grid: Grid
  readonly timelines: Pick<ReadThrough<Cell, Timeline>, 'read'>
  readonly calendar: Calendar
  readonly hourlyHours: number
  /** Of timelines; that of timeline-text.ts where absent. */
  readonly text?: TimelineText | undefined
}

export const createAnswers = ({ grid, timelines, calendar, hourlyHours, ...parts }: AnswerParts) => {
  const text = parts.text ?? createTimelineText(calendar)

  return {
    cellAt: ({ latitude, longitude }: Point): Cell => grid.cellOf(latitude, longitude),
    /** The cache result of a cell, a promise where it is loaded. A load counts towards the consumer's share of the provider's budget. */
    read: timelines.read,
    /** Current conditions, hours and days. @throws AbohawaError when the timeline does not reach so far */
    weather: (result: CellResult): Weather => {
      const { value: timeline, readAt } = result
      const beginsAt = Math.floor(readAt / quarterHourMs) * quarterHourMs
      return {
        current: within(text.current(timeline, readAt), result),
        hourly: within(text.hourly(timeline, readAt, hourlyHours), result),
        daily: within(text.daily(timeline, readAt, forecastDays), result),
        // Offsets change on quarter-hours at the earliest.
        utcOffsetSeconds: calendar.offsetSecondsAt(readAt),
        beginsAt,
        endsAt: beginsAt + quarterHourMs,
      }
    },
    /** The first `days` (1 to 7) of the daily forecast. @throws AbohawaError as `weather` does */
    forecast: (result: CellResult, days: number): Forecast => {
      const { value: timeline, readAt } = result
      const utcOffsetSeconds = calendar.offsetSecondsAt(readAt)
      const midnight = calendar.nextMidnight(readAt)
      // On a day that changes its offset, a slice is right for no longer than that is known.
      const isSteady = calendar.offsetSecondsAt(midnight - 1) === utcOffsetSeconds
      return {
        daily: within(text.daily(timeline, readAt, days), result),
        utcOffsetSeconds,
        beginsAt: readAt,
        endsAt: isSteady ? midnight : (Math.floor(readAt / quarterHourMs) + 1) * quarterHourMs,
      }
    },
  }
}

const within = <Cut>(slice: Cut | undefined, { subject: cell, fetchedAt, readAt }: CellResult): Cut => {
  if (slice !== undefined) return slice
  throw new AbohawaError(
    'timeline_exhausted',
    `the timeline of ${cell.id}, fetched ${isoOf(fetchedAt)}, does not reach ${isoOf(readAt)}`,
  )
}
