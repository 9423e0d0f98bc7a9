// The maximum size of the response body for a number of points: far more than a complete one needs, and little enough that
// no body fills the memory or blocks the event loop. Depends on the request alone; does not check a body's content.

import { type Horizon, stepsWithin } from '../../weather/horizon.ts'
import type { ElementBounds } from './json-elements.ts'
import { sections, variableCount } from './sections.ts'

/** The bounds of a body. */
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

/** The bounds of the body for so many points. */
export const boundsFor = (points: number, horizon: Horizon): BodyBounds => {
  const steps = stepsWithin(horizon)
  const bytesOf = (series: keyof typeof sections): number =>
    steps[series] * (bytesPerTime + variableCount(sections[series]) * bytesPerValue)
  const elementBytes = bytesBesides + bytesOf('quarterHours') + bytesOf('hours') + bytesOf('days')
  return { bytes: Math.min(maxBytes, points * elementBytes), elements: points, elementBytes, depth, lists }
}
