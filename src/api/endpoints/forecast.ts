// GET /forecast/{type}/{id}: the days to come of a place, with their hours.

import { forecastDays } from '../../weather/weather-variables.ts'
import type { Endpoint } from '../endpoint.ts'
import { identifier, locationType, queryOf, wholeNumber } from '../parameters.ts'
import type { FindPlace } from '../places.ts'
import type { RenderedWeather } from '../rendered-weather.ts'

const days = wholeNumber('days', { min: 1, max: forecastDays, fallback: forecastDays })

export const forecastParameters = {
  path: { type: locationType, id: identifier },
  query: { days },
} as const

export const forecastEndpoint =
  (findPlace: FindPlace, rendered: RenderedWeather): Endpoint =>
  ({ params: { type = '', id = '' }, query, keyId }) => {
    const wanted = days.read(queryOf(query, forecastParameters.query).days)
    const place = findPlace(type, id)
    return rendered.forecast(place.cell, wanted, place.part('forecast'), keyId)
  }
