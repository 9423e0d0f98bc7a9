// GET /forecast/{type}/{id}: the days to come of a place, with their hours.

import { forecastDays } from '../../weather/variables.ts'
import type { Endpoint } from '../endpoint.ts'
import { queryOf, wholeNumberOf } from '../parameters.ts'
import { type WeatherParts, whenRead } from '../weather-parts.ts'

export const forecastEndpoint = ({ answers, findPlace, rendered }: WeatherParts): Endpoint => ({
  name: 'forecast',
  path: '/forecast/:type/:id',
  answer: ({ params: { type = '', id = '' }, query }) => {
    const days = wholeNumberOf('days', queryOf(query, ['days']).days, {
      min: 1,
      max: forecastDays,
      fallback: forecastDays,
    })
    const place = findPlace(type, id)
    return whenRead(answers.read(place.cell), result =>
      rendered.represent(result, rendered.forecast(result, days), place.piece('forecast')),
    )
  },
})
