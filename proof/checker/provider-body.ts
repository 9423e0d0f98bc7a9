// Finds what the provider said for a point, and compares it with an answer of the API, by the same rules as the fuzzer.

import { hasSameSections } from '../../fuzz/oracle/provider-body.ts'
import type { WeatherBody } from '../../fuzz/oracle/weather-body.ts'
import type { SaidByProvider } from '../history.ts'

/** What one body said for one point. */
export type SaidElement = {
  readonly said: SaidByProvider
  readonly element: Readonly<Record<string, unknown>>
}

const parsed = new WeakMap<SaidByProvider, unknown>()
// Weather is given by cell of 0.1°, for its centre.
const withinDegrees = 0.0501

const bodyOf = (said: SaidByProvider): unknown =>
  parsed.getOrInsertComputed(said, ({ body }) => {
    try {
      return body === null ? undefined : JSON.parse(body)
    } catch {
      // A body that was cut off said nothing.
      return undefined
    }
  })

/** In the order in which they were said. */
export const bodiesFor = (
  all: readonly SaidByProvider[],
  latitude: number,
  longitude: number,
): SaidElement[] =>
  all.flatMap(said => {
    const body = bodyOf(said)
    const elements = Array.isArray(body) ? body : [body]
    return said.points.flatMap(([lat, lng], i) => {
      const element = elements[i]
      const isNear = Math.abs(lat - latitude) <= withinDegrees && Math.abs(lng - longitude) <= withinDegrees
      return isNear && typeof element === 'object' && element !== null ? [{ said, element }] : []
    })
  })

export const hasSame = (answer: WeatherBody, { element }: SaidElement): boolean =>
  hasSameSections(answer, element)
