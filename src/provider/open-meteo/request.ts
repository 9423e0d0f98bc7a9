// The request for a list of cells, its weight, and the bounds of its body. One fixed set of variables gives a cell one timeline and one
// cache entry. The gateway's names and units of variables are the provider's.

import type { Cell } from '../../weather/cell.ts'
import { type Horizon, pastDays, pastQuarterHours, stepsWithin } from '../../weather/horizon.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../weather/weather-variables.ts'
import type { ElementBounds } from './json-elements.ts'
import { weightOf } from './limits.ts'

/** The section that each series of a timeline is read from: its name, and the unit string of each of its variables. */
export const sections = {
  quarterHours: { name: 'minutely_15', units: currentUnits },
  hours: { name: 'hourly', units: hourlyUnits },
  days: { name: 'daily', units: dailyUnits },
} as const

export const forecastPath = '/v1/forecast'

/** Path and query for cells in this order; the provider answers them in the same order. */
export const pathFor = (cells: readonly Cell[], horizon: Horizon, zone: string): string =>
  `${forecastPath}?latitude=${cells.map(cell => cell.latitude).join(',')}` +
  `&longitude=${cells.map(cell => cell.longitude).join(',')}` +
  `&minutely_15=${namesIn(sections.quarterHours).join(',')}` +
  `&past_minutely_15=${pastQuarterHours}&forecast_minutely_15=${horizon.quarterHours}` +
  `&hourly=${namesIn(sections.hours).join(',')}` +
  `&daily=${namesIn(sections.days).join(',')}` +
  `&past_days=${pastDays}&forecast_days=${horizon.days}&timezone=${encodeURIComponent(zone)}`

const namesIn = ({ units }: { readonly units: object }): string[] => Object.keys(units)

/** The weight of one point of the request for a cell. Quarter-hours of the past add nothing. */
export const weightOfPoint = (horizon: Horizon): number =>
  weightOf({
    // A variable in two sections counts twice.
    variables: Object.values(sections).flatMap(namesIn).length,
    days: pastDays + horizon.days,
  })

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
    steps[series] * (bytesPerTime + namesIn(sections[series]).length * bytesPerValue)
  const elementBytes = bytesBesides + bytesOf('quarterHours') + bytesOf('hours') + bytesOf('days')
  return { bytes: Math.min(maxBytes, points * elementBytes), elements: points, elementBytes, depth, lists }
}
