// Reads a request for a list of places. Needs no catalogue, so that the cost in units is known before the work.

import { LRUCache } from 'lru-cache'
import type { ListEndpoint } from '../common/endpoints.ts'
import { listOfPlaces, listParameters, queryOf } from './parameters.ts'
import { Problem } from './problem.ts'

// A query is read before admission and after; and programs send the same lists all day.
const maxKnown = 50
const remembered = <Read extends object>(read: (query: string) => Read): ((query: string) => Read) => {
  const known = new LRUCache<string, Read>({ max: maxKnown })
  return query => {
    let found = known.get(query)
    if (!found) {
      found = read(query)
      known.set(query, found)
    }
    return found
  }
}

/** The values of a query, the same object for one that came a short while ago. @throws Problem 400 */
export const listQueries = {
  weather_places: remembered((query: string) => {
    const { places, lang } = listParameters.weather_places
    const given = queryOf(query, listParameters.weather_places)
    return { places: places.read(given.places), lang: lang.read(given.lang) }
  }),
  forecast_places: remembered((query: string) => {
    const { places, days } = listParameters.forecast_places
    const given = queryOf(query, listParameters.forecast_places)
    return { places: places.read(given.places), days: days.read(given.days) }
  }),
} as const

/**
 * The units that a request takes: one for each distinct place, and one where its parameters are refused. Undefined for a query
 * without a list, for which there is nothing at this path.
 */
export const costOfList =
  (name: ListEndpoint) =>
  (query: string): number | undefined => {
    try {
      return listQueries[name](query).places.length
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return hasList(query) ? 1 : undefined
    }
  }

const hasList = (query: string): boolean => {
  try {
    return queryOf(query, { places: listOfPlaces }).places !== undefined
  } catch {
    // Given twice, with brackets, or not encoded.
    return true
  }
}
