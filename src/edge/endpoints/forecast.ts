// GET /forecast/{type}/{id}: the days to come of a place, with their hours.

import { forecastDays } from '../../weather/variables.ts'
import type { Endpoint } from '../endpoint.ts'
import { queryOf, wholeNumberOf } from '../parameters.ts'
import type { FindPlace } from '../places.ts'
import type { RenderedWeather } from '../rendered-weather.ts'

export const forecastEndpoint = (findPlace: FindPlace, rendered: RenderedWeather): Endpoint => ({
  name: 'forecast',
  path: '/forecast/:type/:id',
  answer: ({ params: { type = '', id = '' }, query }) => {
    const days = wholeNumberOf('days', queryOf(query, ['days']).days, {
      min: 1,
      max: forecastDays,
      fallback: forecastDays,
    })
    const place = findPlace(type, id)
    return rendered.forecast(place.cell, days, place.piece('forecast'))
  },
})
