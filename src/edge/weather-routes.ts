// GET /weather, /weather/coords and /forecast: parse, ask for the weather of the cell, represent it.

import type { Answers, Known } from '../answer.ts'
import type { Bounds } from '../catalogue/location.ts'
import { forecastDays } from '../weather/variables.ts'
import { degreesOf, languageOf, queryOf, wholeNumberOf } from './parameters.ts'
import { type CurrentCatalogue, createPlaces, pointPiece } from './places.ts'
import { badRequest } from './problem.ts'
import { createRenderedWeather } from './rendered-weather.ts'
import type { Representation } from './representation.ts'
import type { Answer } from './routes.ts'

export type WeatherRoutesParts = {
  readonly catalogue: CurrentCatalogue
  readonly answers: Answers
  /** The box that raw coordinates must lie in, and what it is called. */
  readonly bounds: Bounds
  readonly area: string
  /** The IANA zone of all local times. */
  readonly timezone: string
}

export const createWeatherRoutes = ({ catalogue, answers, bounds, area, timezone }: WeatherRoutesParts) => {
  const findPlace = createPlaces(catalogue, answers.cellAt)
  const rendered = createRenderedWeather(answers, timezone)

  const weather: Answer = (url, type, id) => {
    if (type === 'coords')
      throw badRequest('lng is missing; a point is asked for as /api/v1/weather/coords/{lat}/{lng}')
    const lang = languageOf(queryOf(url, ['lang']).lang)
    const place = findPlace(type, id)
    return withKnown(answers.read(place.cell), known =>
      rendered.represent(known, rendered.weather(known), place.piece(lang), languageLines[lang]),
    )
  }

  const coords: Answer = (url, lat, lng) => {
    const lang = languageOf(queryOf(url, ['lang']).lang)
    const latitude = degreesOf('lat', lat, { min: bounds.south, max: bounds.north, area })
    const longitude = degreesOf('lng', lng, { min: bounds.west, max: bounds.east, area })
    return withKnown(answers.read(answers.cellAt({ latitude, longitude })), known =>
      rendered.represent(
        known,
        rendered.weather(known),
        pointPiece(latitude, longitude),
        languageLines[lang],
      ),
    )
  }

  const forecast: Answer = (url, type, id) => {
    const days = wholeNumberOf('days', queryOf(url, ['days']).days, {
      min: 1,
      max: forecastDays,
      fallback: forecastDays,
    })
    const place = findPlace(type, id)
    return withKnown(answers.read(place.cell), known =>
      rendered.represent(known, rendered.forecast(known, days), place.piece('forecast')),
    )
  }

  return { weather, coords, forecast }
}

const languageLines = { bn: 'content-language: bn\r\n', en: 'content-language: en\r\n' } as const

// What memory has is answered in the same turn of the event loop.
const withKnown = (
  known: Known | Promise<Known>,
  represent: (known: Known) => Representation,
): Representation | Promise<Representation> =>
  known instanceof Promise ? known.then(represent) : represent(known)
