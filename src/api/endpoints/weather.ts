// GET /weather/{type}/{id}: the current weather of a place.

import type { Endpoint } from '../endpoint.ts'
import { identifier, language, locationType, queryOf } from '../parameters.ts'
import type { FindPlace } from '../places.ts'
import { badRequest } from '../problem.ts'
import type { RenderedWeather } from '../rendered-weather.ts'
import { sentences } from '../sentences.ts'

export const weatherParameters = {
  path: { type: locationType, id: identifier },
  query: { lang: language },
} as const

export const weatherEndpoint =
  (findPlace: FindPlace, rendered: RenderedWeather): Endpoint =>
  ({ params: { type = '', id = '' }, query, keyId }) => {
    if (type === 'coords') throw badRequest(sentences.path.longitudeMissing)
    const lang = language.read(queryOf(query, weatherParameters.query).lang)
    const place = findPlace(type, id)
    return rendered.current(place.cell, place.part(lang), languageHeaders[lang], keyId)
  }

export const languageHeaders = { bn: 'content-language: bn\r\n', en: 'content-language: en\r\n' } as const
