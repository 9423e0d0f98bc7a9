// GET /weather/{type}/{id}: the current weather of a place.

import type { Endpoint } from '../endpoint.ts'
import { languageOf, queryOf } from '../parameters.ts'
import { badRequest } from '../problem.ts'
import { sentences } from '../sentences.ts'
import { type WeatherParts, whenKnown } from '../weather-parts.ts'

export const weatherEndpoint = ({ answers, findPlace, rendered }: WeatherParts): Endpoint => ({
  name: 'weather',
  path: '/weather/:type/:id',
  answer: ({ params: { type = '', id = '' }, query }) => {
    if (type === 'coords') throw badRequest(sentences.path.longitudeMissing)
    const lang = languageOf(queryOf(query, ['lang']).lang)
    const place = findPlace(type, id)
    return whenKnown(answers.read(place.cell), known =>
      rendered.represent(known, rendered.weather(known), place.piece(lang), languageHeaders[lang]),
    )
  },
})

export const languageHeaders = { bn: 'content-language: bn\r\n', en: 'content-language: en\r\n' } as const
