// GET /weather/coords/{lat}/{lng}: the current weather of a raw point within the bounds of the catalogue.

import type { Answers } from '../../answer.ts'
import type { Bounds } from '../../catalogue/location.ts'
import type { Endpoint } from '../endpoint.ts'
import { degreesOf, languageOf, queryOf } from '../parameters.ts'
import { pointPiece } from '../places.ts'
import type { RenderedWeather } from '../rendered-weather.ts'
import { languageHeaders } from './weather.ts'

/** @param area what the bounds are called */
export const weatherCoordsEndpoint = (
  cellAt: Answers['cellAt'],
  rendered: RenderedWeather,
  bounds: Bounds,
  area: string,
): Endpoint => ({
  name: 'coords',
  path: '/weather/coords/:lat/:lng',
  answer: ({ params: { lat = '', lng = '' }, query }) => {
    const lang = languageOf(queryOf(query, ['lang']).lang)
    const latitude = degreesOf('lat', lat, { min: bounds.south, max: bounds.north, area })
    const longitude = degreesOf('lng', lng, { min: bounds.west, max: bounds.east, area })
    const cell = cellAt({ latitude, longitude })
    return rendered.current(cell, pointPiece(latitude, longitude), languageHeaders[lang])
  },
})
