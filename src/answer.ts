// The story of an answer: a point, its grid cell, the cell's timeline from the cache, the slice of it that is right
// now. Knows no HTTP and no keys, so that tools can ask the same questions as consumers.

import type { Outcome, ReadThrough, Source } from './cache/read-through.ts'
import { type Calendar, quarterHourMs } from './calendar.ts'
import type { Clock } from './clock.ts'
import { AbohawaError } from './errors.ts'
import type { Cell, Grid } from './weather/cell.ts'
import {
  type Current,
  currentAt,
  type Daily,
  daysFrom,
  type Hourly,
  hoursFrom,
  type Timeline,
} from './weather/timeline.ts'
import { forecastDays } from './weather/variables.ts'

/** Where an answer came from and how long it holds; instants in ms since the epoch. */
export type Provenance = {
  readonly cell: Cell
  readonly answeredAt: number
  readonly fetchedAt: number
  readonly freshUntil: number
  /** Until when this very answer stays right: its slice ends, or its timeline turns stale. */
  readonly rightUntil: number
  readonly outcome: Outcome
  readonly source: Source
  readonly forwarded: boolean
  readonly collapsed: boolean
}

export type Weather = Provenance & {
  readonly current: Current
  readonly hourly: Hourly
  readonly daily: Daily
}
export type Forecast = Provenance & { readonly daily: Daily }

export type Point = { readonly latitude: number; readonly longitude: number }

export type Answers = {
  /** Current conditions, hours and days at a point. @throws what the loader throws when nothing usable is cached */
  weather(point: Point): Promise<Weather>
  /** The first `days` (1 to 7) of the daily forecast at a point. */
  forecast(point: Point, days: number): Promise<Forecast>
}

export type AnswerParts = {
  readonly grid: Grid
  readonly timelines: ReadThrough<Cell, Timeline>
  readonly clock: Clock
  readonly calendar: Calendar
  readonly hourlyHours: number
}

export const createAnswers = ({ grid, timelines, clock, calendar, hourlyHours }: AnswerParts): Answers => {
  const read = async ({ latitude, longitude }: Point, sliceEnd: (now: number) => number) => {
    const cell = grid.cellOf(latitude, longitude)
    const { value: timeline, ...reading } = await timelines.read(cell)
    // The slice is cut when the timeline is in hand: a load may have taken us into the next quarter-hour.
    const answeredAt = clock.now()
    const rightUntil = Math.max(answeredAt, Math.min(sliceEnd(answeredAt), reading.freshUntil))
    return { timeline, provenance: { cell, answeredAt, rightUntil, ...reading } }
  }

  return {
    weather: async point => {
      const { timeline, provenance } = await read(point, nextQuarterHour)
      const now = provenance.answeredAt
      return {
        ...provenance,
        current: within(currentAt(timeline, now, calendar), provenance),
        hourly: within(hoursFrom(timeline, now, calendar, hourlyHours), provenance),
        daily: within(daysFrom(timeline, now, calendar, forecastDays), provenance),
      }
    },
    forecast: async (point, days) => {
      const { timeline, provenance } = await read(point, calendar.nextMidnight)
      return {
        ...provenance,
        daily: within(daysFrom(timeline, provenance.answeredAt, calendar, days), provenance),
      }
    },
  }
}

const nextQuarterHour = (now: number): number => (Math.floor(now / quarterHourMs) + 1) * quarterHourMs

const within = <Slice>(slice: Slice | undefined, { cell, fetchedAt, answeredAt }: Provenance): Slice => {
  if (slice !== undefined) return slice
  throw new AbohawaError(
    'timeline_exhausted',
    `the timeline of ${cell.id}, fetched ${new Date(fetchedAt).toISOString()}, does not reach ${new Date(answeredAt).toISOString()}`,
  )
}
