// Reads what the provider said for a point by the times in it, and compares it with an answer of the API: every value of every
// section must stand under the same time, or null where no weather has it.

import type { SaidByProvider } from '../history.ts'

type Section = Readonly<Record<string, unknown>>

export type WeatherBody = { readonly current?: Section; readonly hourly?: Section; readonly daily?: Section }

/** What one body said for one point. */
export type SaidElement = {
  readonly said: SaidByProvider
  readonly element: Readonly<Record<string, unknown>>
}

const parsed = new WeakMap<SaidByProvider, unknown>()
const indices = new WeakMap<readonly unknown[], Map<unknown, number>>()
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

const sources = { current: 'minutely_15', hourly: 'hourly', daily: 'daily' } as const

export const hasSame = (answer: WeatherBody, { element }: SaidElement): boolean =>
  Object.entries(sources).every(([name, source]) => {
    const served = answer[name as keyof typeof sources]
    return served === undefined || agree(served, element[source])
  })

const agree = (served: Section, said: unknown): boolean => {
  if (typeof said !== 'object' || said === null) return false
  const columns = said as Section
  if (!Array.isArray(columns.time)) return false
  const index = indices.getOrInsertComputed(columns.time, times => new Map(times.map((time, i) => [time, i])))
  const isList = Array.isArray(served.time)
  const at = (isList ? (served.time as unknown[]) : [served.time]).map(time => index.get(time))
  return Object.entries(served).every(([name, values]) => {
    // The words follow from the codes.
    if (/^(?:time|interval|weather_text|icon)$/.test(name)) return true
    const column = columns[name]
    const list = isList ? values : [values]
    return (
      Array.isArray(column) &&
      Array.isArray(list) &&
      list.length === at.length &&
      list.every((value, i) => isNear(value, meantBy(name, column[at[i] ?? -1])))
    )
  })
}

const codes = new Set([
  0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99,
])
/** What an answer has where the provider gives this value: null for what no weather has, the bound for what was rounded. */
const meantBy = (name: string, said: unknown): unknown => {
  if (typeof said !== 'number') return said
  if (name === 'weather_code') return codes.has(said) ? said : null
  if (/humidity|cloud|probability/.test(name) && said > 100) return said > 101 ? null : 100
  if (/^(?:precipitation|rain|showers|snowfall)$/.test(name) && said < 0) return said < -0.1 ? null : 0
  return said
}

// The provider has its values as numbers of 32 bits, with three decimals at most.
const isNear = (served: unknown, said: unknown): boolean =>
  typeof served === 'number' && typeof said === 'number'
    ? Math.abs(served - said) <= 0.0006 + Math.abs(said) * 1e-6
    : served === null && said === null
