// Reads an element of the provider's body by its time labels, and compares it with a response of the gateway. Independent
// of the gateway's code for decoding, storing and slicing.

import { isDeepStrictEqual } from 'node:util'
import { meantBy, type Section, type WeatherBody } from './weather-body.ts'

export type Element = Readonly<Record<string, unknown>>

/** The section of the body that has the values of a section of the response. */
const sources = { current: 'minutely_15', hourly: 'hourly', daily: 'daily' } as const

const isSection = (value: unknown): value is Section =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether every value of a response is what the element means under the same time. */
export const hasSameWeather = (answer: WeatherBody, element: unknown): boolean =>
  isSection(element) &&
  Object.entries(sources).every(([name, source]) => {
    const given = element[source]
    const served = answer[name as keyof typeof sources]
    return isSection(given) && served !== undefined && sectionsAgree(served, given)
  })

const sectionsAgree = (served: Section, given: Section): boolean => {
  const times = served.time
  const labels = Array.isArray(times) ? times : [times]
  if (!Array.isArray(given.time)) return false
  const at = labels.map(label => (given.time as unknown[]).indexOf(label))
  if (at.includes(-1)) return false
  return Object.entries(served)
    .filter(([name]) => name !== 'time' && name !== 'interval')
    .every(([name, values]) => {
      const column = given[name]
      const list = Array.isArray(times) ? values : [values]
      return (
        Array.isArray(column) &&
        Array.isArray(list) &&
        list.every((value, i) => isNear(value, meantBy(name, column[at[i] ?? -1])))
      )
    })
}

// Weather values have at most three decimals in 32 bits.
const isNear = (served: unknown, given: unknown): boolean => {
  if (served === null || typeof given !== 'number' || typeof served !== 'number') return served === given
  return Math.abs(served - given) <= 0.0006 + Math.abs(given) * 1e-6
}

const used = [
  ...['location_id', 'latitude', 'longitude', 'utc_offset_seconds'],
  ...['minutely_15', 'hourly', 'daily'].flatMap(name => [`${name}_units`, name]),
]

/** Whether two elements are equal in any order of their fields, but for one value of each variable: it costs nothing else. */
export const isAsRight = (element: unknown, right: Element): boolean =>
  isSection(element) &&
  hasNoMore(element, right) &&
  used.every(name => {
    const [given, wanted] = [element[name], right[name]]
    if (!isSection(wanted) || !isSection(given)) return isDeepStrictEqual(given, wanted)
    return (
      hasNoMore(given, wanted) &&
      Object.entries(wanted).every(
        ([key, value]) =>
          isDeepStrictEqual(given[key], value) || (key !== 'time' && differInOne(given[key], value)),
      )
    )
  })

const differInOne = (given: unknown, wanted: unknown): boolean =>
  Array.isArray(given) &&
  Array.isArray(wanted) &&
  given.length === wanted.length &&
  wanted.filter((value, i) => !isDeepStrictEqual(value, given[i])).length === 1

const hasNoMore = (given: Section, wanted: Section): boolean =>
  Object.getOwnPropertyNames(given).every(name => Object.hasOwn(wanted, name))

const deepest = 3

/**
 * Whether an element is wrong in its values only: it is for the same point, not deeper and hardly longer. Other faults may
 * well cost the remaining elements of the body.
 */
export const isInPlace = (element: unknown, right: Element): boolean =>
  isSection(element) &&
  ['location_id', 'latitude', 'longitude'].every(name => element[name] === right[name]) &&
  depthOf(element) <= deepest &&
  JSON.stringify(element).length <= JSON.stringify(right).length * 1.2

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...new Set(Object.values(value).map(depthOf)))
    : 0

/** Degrees between a point and the coordinates of an element; undefined where it has none. */
export const degreesFrom = (latitude: number, longitude: number, element: unknown): number | undefined => {
  if (!isSection(element)) return undefined
  const { latitude: lat, longitude: lng } = element
  if (typeof lat !== 'number' || typeof lng !== 'number') return undefined
  return Math.max(Math.abs(lat - latitude), Math.abs(lng - longitude))
}
