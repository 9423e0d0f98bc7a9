// The request for a list of cells, its weight, and the bounds of its body. One fixed set of variables gives a cell one timeline and one
// cache entry. The gateway's names and units of variables are the provider's.

import type { Cell } from '../../weather/cell.ts'
import { type Horizon, pastDays, pastQuarterHours, stepsWithin } from '../../weather/horizon.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../weather/weather-variables.ts'
import { weightOf } from './limits.ts'

const section = <Units extends object>(name: string, units: Units) => {
  const variables = Object.keys(units)
  return { name, units, count: variables.length, query: `${name}=${variables.join(',')}` }
}

/** The section that each series of a timeline is read from: its name, the unit string of each of its variables, and its part of the query. */
export const sections = {
  quarterHours: section('minutely_15', currentUnits),
  hours: section('hourly', hourlyUnits),
  days: section('daily', dailyUnits),
} as const

export const forecastPath = '/v1/forecast'

/** Path and query for cells in this order; the provider answers them in the same order. */
export const pathFor = (cells: readonly Cell[], horizon: Horizon, zone: string): string =>
  `${forecastPath}?latitude=${cells.map(cell => cell.latitude).join(',')}` +
  `&longitude=${cells.map(cell => cell.longitude).join(',')}` +
  `&${sections.quarterHours.query}` +
  `&past_minutely_15=${pastQuarterHours}&forecast_minutely_15=${horizon.quarterHours}` +
  `&${sections.hours.query}` +
  `&${sections.days.query}` +
  `&past_days=${pastDays}&forecast_days=${horizon.days}&timezone=${encodeURIComponent(zone)}`

/** The weight of one point of the request for a cell. Quarter-hours of the past add nothing. */
export const weightOfPoint = (horizon: Horizon): number =>
  weightOf({
    // A variable in two sections counts twice.
    variables: sections.quarterHours.count + sections.hours.count + sections.days.count,
    days: pastDays + horizon.days,
  })

export type ElementBounds = {
  readonly elements: number
  readonly elementBytes: number
  /** The nesting of lists and objects in an element. */
  readonly depth: number
  /** Lists and objects in an element altogether: each takes far more memory and time than its two bytes. */
  readonly lists: number
}

export type BodyBounds = ElementBounds & {
  /** Both uncompressed and compressed. */
  readonly bytes: number
}

// However many points and hours the request has.
const maxBytes = 64 * 1024 * 1024
// An element is an object of six sections, which are objects of some thirty lists together.
const depth = 8
const lists = 256
// A value takes some 5 bytes, a time 19, the header fields and units together some 2 kB. The rest is for white space,
// longer names and more decimals.
const bytesPerValue = 32
const bytesPerTime = 64
const bytesBesides = 16 * 1024

/**
 * The bounds of the body for so many points: far more than a complete one needs, and little enough that no body fills the memory
 * or blocks the event loop.
 */
export const boundsFor = (points: number, horizon: Horizon): BodyBounds => {
  const steps = stepsWithin(horizon)
  const bytesOf = (series: keyof typeof sections): number =>
    steps[series] * (bytesPerTime + sections[series].count * bytesPerValue)
  const elementBytes = bytesBesides + bytesOf('quarterHours') + bytesOf('hours') + bytesOf('days')
  return { bytes: Math.min(maxBytes, points * elementBytes), elements: points, elementBytes, depth, lists }
}
