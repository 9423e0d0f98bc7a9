// Decodes one element of the provider's body into the timeline of its point, or throws a ProviderError. Checks every section,
// variable, time and value. A few odd values are left out; many refuse the element. Values are not compared with each other: they may come
// from different models, and any may be missing.

import { type Calendar, dayNumber, hourMs, quarterHourMs } from '../../common/calendar.ts'
import type { Clock } from '../../common/clock.ts'
import type { Cell } from '../../weather/cell.ts'
import { type Horizon, stepsWithin } from '../../weather/horizon.ts'
import { allowedIn, type Range, ranges, valueWithin } from '../../weather/ranges.ts'
import { layOut, type Span, type Timeline } from '../../weather/timeline.ts'
import { excerptOf, garbled, type RefusedAnswer } from '../errors.ts'
import type { OddValues } from '../protocol.ts'
import { sections } from './request.ts'

export type Expected = {
  readonly horizon: Horizon
  readonly calendar: Calendar
  readonly clock: Clock
  /** When the request was sent, ms since the epoch. */
  readonly requestedAt: number
  /** Called for each variable of an element with values that are left out. */
  readonly onOdd: (odd: OddValues) => void
}

type Fields = Readonly<Record<string, unknown>>

type Column = { readonly name: string; readonly unit: string; readonly range: Range }
const columnsOf = (units: Partial<Record<keyof typeof ranges, string>>): readonly Column[] =>
  (Object.keys(units) as (keyof typeof units)[]).map(name => ({
    name,
    unit: units[name] ?? '',
    range: ranges[name],
  }))
const quarterHourColumns = columnsOf(sections.quarterHours.units)
const hourColumns = columnsOf(sections.hours.units)
const dayColumns = columnsOf(sections.days.units)

const localMinute = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/
const localDay = /^\d{4}-\d\d-\d\d$/

/** Reads the elements of one body. @throws ProviderError */
export const createElementReader = ({ horizon, calendar, clock, requestedAt, onOdd }: Expected) => {
  const lengths = stepsWithin(horizon)

  return (raw: unknown, cell: Cell): Timeline => {
    const answeredAt = clock.now()
    const element = fieldsOf('an element', raw)
    expectPlace(element, cell)
    const offset = numberOf('utc_offset_seconds', element.utc_offset_seconds)
    const expectedOffset = calendar.offsetSecondsAt(answeredAt)
    if (offset !== expectedOffset)
      throw wrongTime(`utc_offset_seconds is ${offset}, expected ${expectedOffset}`)
    const minutely = sectionOf(sections.quarterHours.name, element)
    const hourly = sectionOf(sections.hours.name, element)
    const daily = sectionOf(sections.days.name, element)

    const instant = (local: string) => Date.parse(`${local}Z`) - offset * 1000
    const timeline = layOut(
      // Not the instant of the response, so that weather never seems younger than it is.
      requestedAt,
      spanOf(minutely, offset, lengths.quarterHours, localMinute, instant, quarterHourMs),
      spanOf(hourly, offset, lengths.hours, localMinute, instant, hourMs),
      spanOf(daily, offset, lengths.days, localDay, dayNumber, 1),
    )
    // Hours are found by their times; hours of other days would count as missing for as long as they are cached.
    if (hourly.time[0] !== `${daily.time[0]}T00:00`)
      throw wrongTime(`hourly begins at ${hourly.time[0]}, expected the beginning of ${daily.time[0]}`)
    // Between two quarter-hours `current` would have a time without values.
    if (timeline.quarterHours.start % quarterHourMs !== 0)
      throw wrongTime(`minutely_15 begins at ${minutely.time[0]}, expected a whole quarter of an hour`)
    for (const now of [requestedAt, answeredAt])
      if (!covers(timeline, now))
        throw wrongTime(`its times, from ${minutely.time[0]} and ${daily.time[0]} on, do not cover now`)
    fill(timeline.values, timeline.quarterHours.offset, minutely, quarterHourColumns, onOdd)
    fill(timeline.values, timeline.hours.offset, hourly, hourColumns, onOdd)
    fill(timeline.values, timeline.days.offset, daily, dayColumns, onOdd)
    return timeline
  }

  // A provider with a wrong clock would fill the cache with weather for another time.
  function covers({ quarterHours, days }: Timeline, now: number): boolean {
    const step = Math.floor((now - quarterHours.start) / quarterHourMs)
    const day = dayNumber(calendar.dayOf(now)) - days.start
    return step >= 0 && step < quarterHours.length && day >= 0 && day + horizon.days - 1 <= days.length
  }
}

/** The error of an element, or of a whole body, that is complete JSON. */
export const mismatch = (refused: RefusedAnswer, what: string) =>
  garbled(refused, `the provider's body does not match the request: ${what}`, true)

const wrongTime = (what: string) => mismatch('wrong_time', what)
const wrongPlace = (what: string) => mismatch('wrong_place', what)

/** The provider's number of an element; undefined if it has none. */
export const locationIdOf = (raw: unknown): unknown =>
  typeof raw === 'object' && raw !== null && 'location_id' in raw ? raw.location_id : undefined

const fieldsOf = (name: string, raw: unknown): Fields => {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw wrongShape(name, 'an object', raw)
  return raw as Fields
}

const listOf = (name: string, raw: unknown): readonly unknown[] => {
  if (!Array.isArray(raw)) throw wrongShape(name, 'an array', raw)
  return raw
}

const numberOf = (name: string, raw: unknown): number => {
  if (typeof raw !== 'number') throw wrongShape(name, 'a number', raw)
  return raw
}

const wrongShape = (name: string, expected: string, given: unknown) =>
  mismatch('wrong_shape', `${name}: expected ${expected}, got ${excerptOf(given)}`)

// The provider answers with the middle of a cell of its models: up to half of 0.25 degrees away, and for a point by the
// sea or in the hills with the next one. Half a degree is more than both; only the order distinguishes nearer cells.
const degreesAway = 0.5

const expectPlace = ({ latitude, longitude }: Fields, cell: Cell): void => {
  const north = numberOf('latitude', latitude)
  const east = numberOf('longitude', longitude)
  if (!(Math.abs(north - cell.latitude) <= degreesAway))
    throw wrongPlace(`latitude is ${north}, expected ${cell.latitude} or up to ${degreesAway} degrees away`)
  // As many kilometres as that: degrees of longitude shrink towards the poles, and wrap at 180.
  const most = degreesAway / Math.max(Math.cos((cell.latitude * Math.PI) / 180), 1e-9)
  const apart = Math.abs(east - cell.longitude)
  if (!(Math.min(apart, Math.abs(360 - apart)) <= most))
    throw wrongPlace(
      `longitude is ${east}, expected ${cell.longitude} or up to ${Math.min(most, 180).toFixed(2)} degrees away`,
    )
}

type Section = {
  readonly name: string
  readonly time: readonly unknown[]
  readonly columns: Fields
  readonly units: Fields
}

const sectionOf = (name: string, element: Fields): Section => {
  const units = fieldsOf(`${name}_units`, element[`${name}_units`])
  const columns = fieldsOf(name, element[name])
  return { name, units, columns, time: listOf(`${name}.time`, columns.time) }
}

// Nearly all elements of an hour have the same times, so most are compared, not parsed. For all bodies: most have one element.
type KnownTimes = { readonly time: readonly unknown[]; readonly offset: number; readonly span: Span }
const knownTimes = new Map<string, KnownTimes>()

const spanOf = (
  { name, time }: Section,
  offset: number,
  length: number,
  form: RegExp,
  positionOf: (time: string) => number,
  step: number,
): Span => {
  if (time.length !== length)
    throw mismatch('wrong_shape', `${name} has ${time.length} steps, expected ${length}`)
  const before = knownTimes.get(name)
  const isAsBefore = before?.offset === offset && before.time.length === length
  if (isAsBefore && time.every((text, i) => text === before.time[i])) return before.span
  let start = Number.NaN
  for (const [i, text] of time.entries()) {
    const position = typeof text === 'string' && form.test(text) ? positionOf(text) : Number.NaN
    if (i === 0) start = position
    if (position !== start + i * step)
      throw wrongTime(`${name}.time[${i}] is ${excerptOf(text)}, out of step`)
  }
  const span = { start, length }
  knownTimes.set(name, { time, offset, span })
  return span
}

// The provider's unit of a variable that its models lack; all its values are null then.
const noUnit = 'undefined'

// Of one variable's values at most this share, and one in any case, may be odd.
const oddShare = 0.1

// Writes a section's columns into the timeline's values, from its offset on.
const fill = (
  values: Float32Array,
  offset: number,
  { name, time, columns, units }: Section,
  wanted: readonly Column[],
  onOdd: Expected['onOdd'],
): void => {
  let at = offset
  let presentInAll = 0
  for (const { name: variable, unit, range } of wanted) {
    const column = columns[variable]
    const givenUnit = units[variable]
    if (column === undefined || givenUnit === undefined)
      throw mismatch('wrong_shape', `${name}.${variable} is missing`)
    const given = listOf(`${name}.${variable}`, column)
    if (given.length !== time.length)
      throw mismatch('wrong_shape', `${name}.${variable} has ${given.length} values for ${time.length} times`)
    if (givenUnit !== unit && givenUnit !== noUnit)
      throw mismatch('wrong_unit', `${name}.${variable} is in "${excerptOf(givenUnit)}", expected "${unit}"`)
    const present = fillColumn(values, at, given, range)
    if (present < 0) presentInAll += leaveOut({ section: name, variable }, given, range, onOdd)
    else presentInAll += present
    if (present !== 0 && givenUnit === noUnit && unit !== noUnit)
      throw mismatch('wrong_unit', `${name}.${variable} has values in no unit, expected "${unit}"`)
    at += given.length
  }
  if (presentInAll === 0) throw mismatch('no_value', `${name} has no value at all`)
}

/** How many of a column's values are there, each written into `values`; -1 where some are odd and therefore left out. */
const fillColumn = (values: Float32Array, at: number, column: readonly unknown[], range: Range): number => {
  let present = 0
  let isOdd = false
  for (let i = 0; i < column.length; i++) {
    const value = column[i]
    if (value === null) {
      values[at + i] = Number.NaN
      continue
    }
    const within = valueWithin(range, value)
    values[at + i] = within
    if (Number.isNaN(within)) isOdd = true
    else present += 1
  }
  return isOdd ? -1 : present
}

/** How many values are there besides the odd ones. @throws ProviderError where too many are odd */
const leaveOut = (
  { section, variable }: Pick<OddValues, 'section' | 'variable'>,
  column: readonly unknown[],
  range: Range,
  onOdd: Expected['onOdd'],
): number => {
  const given = column.filter(value => value !== null)
  const odd = given.filter(value => Number.isNaN(valueWithin(range, value)))
  const count = odd.length
  const value = excerptOf(JSON.stringify(odd[0]))
  const allowed = allowedIn(range)
  if (count > 1 && count > column.length * oddShare)
    throw mismatch(
      typeof odd[0] === 'number' ? 'out_of_range' : 'wrong_shape',
      `${section}.${variable} holds ${count} odd values of ${column.length}, such as ${value}, expected ${allowed}`,
    )
  onOdd({ section, variable, count, value, allowed })
  return given.length - count
}
