// The provider's body → timelines, or a ProviderError that says what is wrong with it. Nothing that fails a check here
// is ever stored: complete JSON, as many elements as cells, the expected offset, every section and variable, arrays
// as long as their times, times in even steps from today on.

import * as z from 'zod'
import { type Calendar, dayNumber, hourMs, quarterHourMs } from '../calendar.ts'
import { currentAt, daysFrom, type Series, type Timeline } from '../weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../weather/variables.ts'
import { ProviderError } from './errors.ts'
import { type Horizon, pastDays, pastQuarterHours } from './query.ts'

const column = z.array(z.number().nullable())
const section = z.object({ time: z.array(z.string()) }).catchall(column)
const units = z.record(z.string(), z.string())
const element = z.object({
  utc_offset_seconds: z.number(),
  minutely_15_units: units,
  minutely_15: section,
  hourly_units: units,
  hourly: section,
  daily_units: units,
  daily: section,
})

export type Expected = {
  readonly cells: number
  readonly horizon: Horizon
  readonly calendar: Calendar
  /** When the request was sent and when the answer was whole, ms since the epoch. */
  readonly askedAt: number
  readonly answeredAt: number
}

/**
 * For each cell in the order of the request its timeline, or what is wrong with its element: one bad element costs
 * the others nothing. @throws ProviderError when the body as a whole can't be used
 */
export const decodeTimelines = (body: string, expected: Expected): (Timeline | ProviderError)[] => {
  const elements = elementsOf(body)
  if (elements.length !== expected.cells)
    throw garbled(`${elements.length} elements for ${expected.cells} points`)
  return elements.map(raw => {
    try {
      return decodeTimeline(raw, expected)
    } catch (error) {
      if (error instanceof ProviderError) return error
      throw error
    }
  })
}

const elementsOf = (body: string): unknown[] => {
  if (body.trim() === '')
    throw new ProviderError('provider_refused', 'the provider answered 200 with an empty body')
  try {
    const json: unknown = JSON.parse(body)
    return Array.isArray(json) ? json : [json]
  } catch (cause) {
    throw new ProviderError(
      'provider_cut_off',
      `the provider's body is not complete JSON (${body.length} characters)`,
      {
        cause,
      },
    )
  }
}

const decodeTimeline = (raw: unknown, { calendar, horizon, askedAt, answeredAt }: Expected): Timeline => {
  const parsed = element.safeParse(raw)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw garbled(`${issue?.path.join('.') || 'an element'}: ${issue?.message}`)
  }
  const { utc_offset_seconds: offset, minutely_15, hourly, daily, ...unitTables } = parsed.data
  if (offset !== calendar.offsetSecondsAt(answeredAt))
    throw garbled(`utc_offset_seconds is ${offset}, expected ${calendar.offsetSecondsAt(answeredAt)}`)

  const instant = (local: string) => Date.parse(`${local}Z`) - offset * 1000
  const timeline: Timeline = {
    // The earlier of the two instants: weather is never told to be younger than it may be.
    fetchedAt: askedAt,
    quarterHours: series(
      'minutely_15',
      minutely_15,
      unitTables.minutely_15_units,
      currentUnits,
      instant,
      quarterHourMs,
    ),
    hours: series('hourly', hourly, unitTables.hourly_units, hourlyUnits, instant, hourMs),
    days: series('daily', daily, unitTables.daily_units, dailyUnits, dayNumber, 1),
  }
  expectLength('minutely_15', timeline.quarterHours, pastQuarterHours + horizon.quarterHours)
  expectLength('hourly', timeline.hours, (pastDays + horizon.days) * 24)
  expectLength('daily', timeline.days, pastDays + horizon.days)
  for (const [name, { columns }] of Object.entries({
    minutely_15: timeline.quarterHours,
    hourly: timeline.hours,
    daily: timeline.days,
  }))
    if (columns.every(column => column.every(Number.isNaN))) throw garbled(`${name} has no value at all`)
  // A provider whose clock is off would fill the cache with weather for another time.
  for (const instant of [askedAt, answeredAt])
    if (!currentAt(timeline, instant, calendar) || !daysFrom(timeline, instant, calendar, horizon.days - 1))
      throw garbled(`its times, from ${minutely_15.time[0]} and ${daily.time[0]} on, do not cover now`)
  return timeline
}

const expectLength = (name: string, { length }: Series, expected: number): void => {
  if (length !== expected) throw garbled(`${name} has ${length} steps, expected ${expected}`)
}

const series = (
  name: string,
  given: z.infer<typeof section>,
  givenUnits: Record<string, string>,
  wanted: Record<string, string>,
  positionOf: (time: string) => number,
  step: number,
): Series => {
  const start = positionOf(given.time[0] ?? '')
  given.time.forEach((time, i) => {
    if (positionOf(time) !== start + i * step) throw garbled(`${name}.time[${i}] is ${time}, out of step`)
  })
  const columns = Object.entries(wanted).map(([variable, unit]) => {
    const values = given[variable] as (number | null)[] | undefined
    const givenUnit = givenUnits[variable]
    if (!values || givenUnit === undefined) throw garbled(`${name}.${variable} is missing`)
    if (values.length !== given.time.length)
      throw garbled(`${name}.${variable} has ${values.length} values for ${given.time.length} times`)
    // "undefined" is how the provider marks a variable that its models do not have; all its values are null then.
    if (givenUnit !== unit && givenUnit !== 'undefined')
      throw garbled(`${name}.${variable} is in "${givenUnit}", expected "${unit}"`)
    return Float32Array.from(values, value => {
      if (value === null) return Number.NaN
      if (Math.abs(value) >= 8192) throw garbled(`${name}.${variable} holds ${value}`)
      return value
    })
  })
  return { start, length: given.time.length, columns }
}

const garbled = (what: string) =>
  new ProviderError('provider_garbled', `the provider's body is not as asked: ${what}`)
