// The provider's body → timelines, or a ProviderError that says what is wrong with it. Nothing that fails a check here
// is ever stored: complete JSON, as many elements as cells, the expected offset, every section and variable, arrays
// as long as their times, times in even steps from today on.

import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { type Calendar, dayNumber, hourMs, quarterHourMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { currentAt, daysFrom, layOut, type Span, type Timeline } from '../weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../weather/variables.ts'
import { ProviderError } from './errors.ts'
import { elementsOf } from './json-elements.ts'
import { type Horizon, pastDays, pastQuarterHours } from './query.ts'

// Its values are looked at as they are copied, one by one.
const column = z.custom<readonly unknown[]>(Array.isArray, 'expected an array')
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
  readonly clock: Clock
  /** When the request was sent, ms since the epoch. */
  readonly askedAt: number
}

// Others are answered between the elements of a long list.
const mostMsAtOnce = 4

/**
 * For each cell in the order of the request its timeline, or what is wrong with its element: one bad element costs
 * the others nothing. Rejects with ProviderError when the body as a whole can't be used.
 * @param body its bytes as they come, cut anywhere
 */
export const decodeTimelines = async (
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  expected: Expected,
): Promise<(Timeline | ProviderError)[]> => {
  const results: (Timeline | ProviderError)[] = []
  const steps = createSteps()
  let begun = performance.now()
  for await (const raw of complete(body)) {
    if (performance.now() - begun > mostMsAtOnce) {
      await nextTurn()
      begun = performance.now()
    }
    results.push(resultOf(() => decodeTimeline(raw, expected, steps)))
  }
  if (results.length !== expected.cells)
    throw garbled(`${results.length} elements for ${expected.cells} points`)
  return results
}

async function* complete(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<unknown> {
  let bytes = 0
  const counted = async function* () {
    for await (const piece of body) {
      bytes += piece.length
      yield piece
    }
    if (bytes === 0)
      throw new ProviderError('provider_refused', 'the provider answered 200 with an empty body')
  }
  try {
    yield* elementsOf(counted())
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new ProviderError('provider_cut_off', `the provider's body is not complete JSON (${bytes} bytes)`, {
      cause,
    })
  }
}

const resultOf = (decode: () => Timeline): Timeline | ProviderError => {
  try {
    return decode()
  } catch (error) {
    if (error instanceof ProviderError) return error
    throw error
  }
}

const decodeTimeline = (
  raw: unknown,
  { calendar, horizon, clock, askedAt }: Expected,
  steps: Steps,
): Timeline => {
  const answeredAt = clock.now()
  const parsed = element.safeParse(raw)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw garbled(`${issue?.path.join('.') || 'an element'}: ${issue?.message}`)
  }
  const { utc_offset_seconds: offset, minutely_15, hourly, daily, ...unitTables } = parsed.data
  if (offset !== calendar.offsetSecondsAt(answeredAt))
    throw garbled(`utc_offset_seconds is ${offset}, expected ${calendar.offsetSecondsAt(answeredAt)}`)

  expectLength('minutely_15', minutely_15, pastQuarterHours + horizon.quarterHours)
  expectLength('hourly', hourly, (pastDays + horizon.days) * 24)
  expectLength('daily', daily, pastDays + horizon.days)
  const instant = (local: string) => Date.parse(`${local}Z`) - offset * 1000
  const timeline = layOut(
    // The earlier of the two instants: weather is never told to be younger than it may be.
    askedAt,
    steps.spanOf('minutely_15', minutely_15, instant, quarterHourMs),
    steps.spanOf('hourly', hourly, instant, hourMs),
    steps.spanOf('daily', daily, dayNumber, 1),
  )
  // Hours are found by their own times: those of other days would be told as missing for as long as they are kept.
  if (hourly.time[0] !== `${daily.time[0]}T00:00`)
    throw garbled(`hourly begins at ${hourly.time[0]}, expected the beginning of ${daily.time[0]}`)
  const { values, quarterHours, hours, days } = timeline
  fill(values, quarterHours.offset, 'minutely_15', minutely_15, unitTables.minutely_15_units, currentUnits)
  fill(values, hours.offset, 'hourly', hourly, unitTables.hourly_units, hourlyUnits)
  fill(values, days.offset, 'daily', daily, unitTables.daily_units, dailyUnits)
  // A provider whose clock is off would fill the cache with weather for another time.
  for (const instant of [askedAt, answeredAt])
    if (!currentAt(timeline, instant, calendar) || !daysFrom(timeline, instant, calendar, horizon.days - 1))
      throw garbled(`its times, from ${minutely_15.time[0]} and ${daily.time[0]} on, do not cover now`)
  return timeline
}

type Given = z.infer<typeof section>

const expectLength = (name: string, { time }: Given, expected: number): void => {
  if (time.length !== expected) throw garbled(`${name} has ${time.length} steps, expected ${expected}`)
}

type Steps = ReturnType<typeof createSteps>

/** Reads the times of sections. All elements of a body have the same, so that most are compared and not read. */
const createSteps = () => {
  const known = new Map<string, { readonly time: readonly string[]; readonly span: Span }>()
  return {
    spanOf: (name: string, { time }: Given, positionOf: (time: string) => number, step: number): Span => {
      const before = known.get(name)
      if (before?.time.length === time.length && time.every((text, i) => text === before.time[i]))
        return before.span
      const start = positionOf(time[0] ?? '')
      time.forEach((text, i) => {
        if (positionOf(text) !== start + i * step) throw garbled(`${name}.time[${i}] is ${text}, out of step`)
      })
      const span = { start, length: time.length }
      known.set(name, { time, span })
      return span
    },
  }
}

// Writes a section's columns into the timeline's values, from its offset on.
const fill = (
  values: Float32Array,
  offset: number,
  name: string,
  given: Given,
  givenUnits: Record<string, string>,
  wanted: Record<string, string>,
): void => {
  let at = offset
  let present = false
  for (const [variable, unit] of Object.entries(wanted)) {
    const column = given[variable]
    const givenUnit = givenUnits[variable]
    if (!column || givenUnit === undefined) throw garbled(`${name}.${variable} is missing`)
    if (column.length !== given.time.length)
      throw garbled(`${name}.${variable} has ${column.length} values for ${given.time.length} times`)
    // "undefined" is how the provider marks a variable that its models do not have; all its values are null then.
    if (givenUnit !== unit && givenUnit !== 'undefined')
      throw garbled(`${name}.${variable} is in "${givenUnit}", expected "${unit}"`)
    for (const value of column) {
      if (value === null) {
        values[at++] = Number.NaN
        continue
      }
      if (typeof value !== 'number' || Math.abs(value) >= 8192)
        throw garbled(`${name}.${variable} holds ${JSON.stringify(value)}, expected numbers and nulls`)
      // "+ 0" turns the provider's -0 into 0.
      values[at++] = value + 0
      present = true
    }
  }
  if (!present) throw garbled(`${name} has no value at all`)
}

const garbled = (what: string) =>
  new ProviderError('provider_garbled', `the provider's body is not as asked: ${what}`)
