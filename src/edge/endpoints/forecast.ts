// GET /forecast/{type}/{id}: the days to come of a place, with their hours.

import { forecastDays } from '../../weather/variables.ts'
import type { Endpoint } from '../endpoint.ts'
import { queryOf, wholeNumberOf } from '../parameters.ts'
import { type WeatherParts, whenKnown } from '../weather-parts.ts'

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
    return whenKnown(answers.read(place.cell), known =>
      rendered.represent(known, rendered.forecast(known, days), place.piece('forecast')),
    )
  },
})
