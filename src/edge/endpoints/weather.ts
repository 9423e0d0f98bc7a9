// GET /weather/{type}/{id}: the current weather of a place.

import type { Endpoint } from '../endpoint.ts'
import { languageOf, queryOf } from '../parameters.ts'
import { badRequest } from '../problem.ts'
import { sentences } from '../sentences.ts'
import { type WeatherParts, whenRead } from '../weather-parts.ts'

export const weatherEndpoint = ({ answers, findPlace, rendered }: WeatherParts): Endpoint => ({
  name: 'weather',
  path: '/weather/:type/:id',
  answer: ({ params: { type = '', id = '' }, query }) => {
    if (type === 'coords') throw badRequest(sentences.path.longitudeMissing)
    const lang = languageOf(queryOf(query, ['lang']).lang)
    const place = findPlace(type, id)
    return whenRead(answers.read(place.cell), result =>
      rendered.represent(result, rendered.weather(result), place.piece(lang), languageHeaders[lang]),
    )
  },
})

export const languageHeaders = { bn: 'content-language: bn\r\n', en: 'content-language: en\r\n' } as const
