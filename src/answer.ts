// The story of an answer: a point, its grid cell, the cell's timeline from the cache, the slice of it that is right
// now. Knows no HTTP and no keys, so that tools can ask the same questions as consumers.

import type { Reading } from './cache/read-through.ts'
import { type Calendar, quarterHourMs } from './calendar.ts'
import type { Clock } from './clock.ts'
import { AbohawaError } from './errors.ts'
import type { Timelines } from './timelines/timelines.ts'
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

/** Where an answer came from and how long that holds; instants in ms since the epoch. */
export type Provenance = Omit<Reading<Timeline>, 'value'> & {
  readonly cell: Cell
  readonly answeredAt: number
}

/** The weather of a cell as it is known at an instant: what slices are cut from. */
export type Known = Provenance & { readonly timeline: Timeline }

/** What is right from one instant until before another, as far as the timeline knows; ms since the epoch. */
export type Slice<Content> = Content & { readonly beginsAt: number; readonly endsAt: number }
export type Weather = Slice<{ current: Current; hourly: Hourly; daily: Daily }>
export type Forecast = Slice<{ daily: Daily }>

export type Point = { readonly latitude: number; readonly longitude: number }

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
  /** Says how many bytes are kept beside a timeline for as long as it is, so that they count as the cache's. */
  keepBeside(known: Pick<Known, 'cell' | 'timeline'>, bytes: number): void
}

export type AnswerParts = {
  readonly grid: Grid
  readonly timelines: Pick<Timelines, 'read' | 'keepBeside'>
  readonly clock: Clock
  readonly calendar: Calendar
  readonly hourlyHours: number
}

export const createAnswers = ({ grid, timelines, clock, calendar, hourlyHours }: AnswerParts): Answers => {
  // The instant is taken when the timeline is in hand: a load may have taken us into the next quarter-hour.
  const knownAs = (cell: Cell, reading: Reading<Timeline>): Known => ({
    cell,
    timeline: reading.value,
    answeredAt: clock.now(),
    fetchedAt: reading.fetchedAt,
    freshUntil: reading.freshUntil,
    outcome: reading.outcome,
    source: reading.source,
    forwarded: reading.forwarded,
    collapsed: reading.collapsed,
  })

  return {
    cellAt: ({ latitude, longitude }) => grid.cellOf(latitude, longitude),
    read: cell => {
      const reading = timelines.read(cell)
      return reading instanceof Promise ? reading.then(late => knownAs(cell, late)) : knownAs(cell, reading)
    },
    weather: known => {
      const { timeline, answeredAt } = known
      const beginsAt = Math.floor(answeredAt / quarterHourMs) * quarterHourMs
      return {
        current: within(currentAt(timeline, answeredAt, calendar), known),
        hourly: within(hoursFrom(timeline, answeredAt, calendar, hourlyHours), known),
        daily: within(daysFrom(timeline, answeredAt, calendar, forecastDays), known),
        beginsAt,
        endsAt: beginsAt + quarterHourMs,
      }
    },
    forecast: (known, days) => ({
      daily: within(daysFrom(known.timeline, known.answeredAt, calendar, days), known),
      beginsAt: known.answeredAt,
      endsAt: calendar.nextMidnight(known.answeredAt),
    }),
    keepBeside: ({ cell, timeline }, bytes) => timelines.keepBeside(cell, timeline, bytes),
  }
}

const within = <Cut>(slice: Cut | undefined, { cell, fetchedAt, answeredAt }: Provenance): Cut => {
  if (slice !== undefined) return slice
  throw new AbohawaError(
    'timeline_exhausted',
    `the timeline of ${cell.id}, fetched ${new Date(fetchedAt).toISOString()}, does not reach ${new Date(answeredAt).toISOString()}`,
  )
}
