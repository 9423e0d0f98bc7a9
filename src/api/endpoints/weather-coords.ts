// GET /weather/coords/{lat}/{lng}: the current weather of a raw point within the bounds of the catalogue.

import type { Bounds } from '../../catalogue/location-schema.ts'
import type { Answers } from '../answer.ts'
import type { Endpoint } from '../endpoint.ts'
import { degrees, language, queryOf } from '../parameters.ts'
import { pointPart } from '../places.ts'
import type { RenderedWeather } from '../rendered-weather.ts'
import { languageHeaders } from './weather.ts'

/** @param area what the bounds are called */
export const weatherCoordsParameters = ({ south, north, west, east }: Bounds, area: string) =>
  ({
    path: {
      lat: degrees('lat', { min: south, max: north, area }),
      lng: degrees('lng', { min: west, max: east, area }),
    },
    query: { lang: language },
  }) as const

/** @param area what the bounds are called */
export const weatherCoordsEndpoint = (
  cellAt: Answers['cellAt'],
  rendered: RenderedWeather,
  bounds: Bounds,
  area: string,
): Endpoint => {
  const { path, query: inQuery } = weatherCoordsParameters(bounds, area)
  return ({ params, query, keyId }) => {
    const lang = language.read(queryOf(query, inQuery).lang)
    const latitude = path.lat.read(params.lat)
    const longitude = path.lng.read(params.lng)
    const cell = cellAt({ latitude, longitude })
    return rendered.current(cell, pointPart(latitude, longitude), languageHeaders[lang], keyId)
  }
}
