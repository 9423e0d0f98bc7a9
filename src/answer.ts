// The story of an answer: a point, its grid cell, the cell's timeline from the cache, the slice of it that is right
// now. Knows no HTTP and no keys, so that tools can ask the same questions as consumers.

import type { Reading, ReadThrough } from './cache/read-through.ts'
import { type Calendar, quarterHourMs } from './calendar.ts'
import { AbohawaError } from './errors.ts'
import type { Cell, Grid } from './weather/cell.ts'
import type { Timeline } from './weather/timeline.ts'
import { createTimelineText } from './weather/timeline-text.ts'
import { forecastDays } from './weather/variables.ts'

/** The weather of a cell as it is known at the instant it was read: what slices are cut from. */
export type Known = Reading<Timeline> & { readonly cell: Cell }

/** What is right from one instant until before another, as far as the timeline knows; ms since the epoch. */
export type Slice<Content> = Content & { readonly beginsAt: number; readonly endsAt: number }
/** Sections of the contract as JSON text. */
export type Weather = Slice<{ current: string; hourly: string; daily: string }>
export type Forecast = Slice<{ daily: string }>

type Point = { readonly latitude: number; readonly longitude: number }

export type Answers = {
  cellAt(point: Point): Cell
  /**
   * The weather of a cell, at once when memory has it. Rejects with what the loader throws when nothing usable is
   * cached.
   */
  read(cell: Cell): Known | Promise<Known>
  /** Current conditions, hours and days. @throws AbohawaError when the timeline does not reach so far */
  weather(known: Known): Weather
  /** The first `days` (1 to 7) of the daily forecast. @throws AbohawaError as `weather` does */
  forecast(known: Known, days: number): Forecast
}

export type AnswerParts = {
  readonly grid: Grid
  readonly timelines: ReadThrough<Cell, Timeline>
  readonly calendar: Calendar
  readonly hourlyHours: number
}

export const createAnswers = ({ grid, timelines, calendar, hourlyHours }: AnswerParts): Answers => {
  const text = createTimelineText(calendar)
  const knownAs = (cell: Cell, reading: Reading<Timeline>): Known => ({ ...reading, cell })

  return {
    cellAt: ({ latitude, longitude }) => grid.cellOf(latitude, longitude),
    read: cell => {
      const reading = timelines.read(cell)
      return reading instanceof Promise ? reading.then(late => knownAs(cell, late)) : knownAs(cell, reading)
    },
    weather: known => {
      const { value: timeline, readAt } = known
      const beginsAt = Math.floor(readAt / quarterHourMs) * quarterHourMs
      return {
        current: within(text.current(timeline, readAt), known),
        hourly: within(text.hourly(timeline, readAt, hourlyHours), known),
        daily: within(text.daily(timeline, readAt, forecastDays), known),
        beginsAt,
        endsAt: beginsAt + quarterHourMs,
      }
    },
    forecast: (known, days) => ({
      daily: within(text.daily(known.value, known.readAt, days), known),
      beginsAt: known.readAt,
      endsAt: calendar.nextMidnight(known.readAt),
    }),
  }
}

const within = <Cut>(slice: Cut | undefined, { cell, fetchedAt, readAt }: Known): Cut => {
  if (slice !== undefined) return slice
  throw new AbohawaError(
    'timeline_exhausted',
    `the timeline of ${cell.id}, fetched ${new Date(fetchedAt).toISOString()}, does not reach ${new Date(readAt).toISOString()}`,
  )
}
