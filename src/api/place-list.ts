// Reads a request for a list of places: which places, in which form, and how many units it costs. Needs no catalogue, so that the
// cost is known before the work; joined-weather.ts answers.

import type { ListEndpoint } from '../common/endpoints.ts'
import { listOfPlaces, listParameters, queryOf } from './parameters.ts'
import { Problem } from './problem.ts'

/** The values of a query. @throws Problem 400 */
export const listQueries = {
  weather_places: (query: string) => {
    const { places, lang } = listParameters.weather_places
    const given = queryOf(query, listParameters.weather_places)
    return { places: places.read(given.places), lang: lang.read(given.lang) }
  },
  forecast_places: (query: string) => {
    const { places, days } = listParameters.forecast_places
    const given = queryOf(query, listParameters.forecast_places)
    return { places: places.read(given.places), days: days.read(given.days) }
  },
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
    // Given twice, or not encoded.
    return true
  }
}
