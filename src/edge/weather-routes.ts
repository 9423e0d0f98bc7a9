// GET /weather and /forecast: parse, ask for the answer, send it.

import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Answers, Provenance } from '../answer.ts'
import type { Bounds } from '../catalogue/location.ts'
import { forecastDays } from '../weather/variables.ts'
import { forecastOf, namedSummaryOf, pointOf, summaryOf, weatherOf } from './bodies.ts'
import { degreesOf, languageOf, queryOf, wholeNumberOf } from './parameters.ts'
import { type CurrentCatalogue, findPlace } from './place.ts'
import { badRequest } from './problem.ts'
import { sendJson } from './representation.ts'
import { freshnessHeaders } from './response-headers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the weather of the answer came from; null for other answers. */
    provenance: Provenance | null
  }
}

export type WeatherRoutesParts = {
  readonly catalogue: CurrentCatalogue
  readonly answers: Answers
  /** The box that raw coordinates must lie in, and what it is called. */
  readonly bounds: Bounds
  readonly area: string
  /** The IANA zone of all local times. */
  readonly timezone: string
}

type PlacePath = { Params: { type: string; id: string } }
type PointPath = { Params: { lat: string; lng: string } }

export const registerWeatherRoutes = (app: FastifyInstance, parts: WeatherRoutesParts): void => {
  const { catalogue, answers, bounds, area, timezone } = parts
  app.decorateRequest('provenance', null)

  app.route<PlacePath>({
    method: ['GET', 'HEAD'],
    url: '/api/v1/weather/:type/:id',
    config: { endpoint: 'weather' },
    handler: async (request, reply) => {
      if (request.params.type === 'coords')
        throw badRequest('lng is missing; a point is asked for as /api/v1/weather/coords/{lat}/{lng}')
      const places = catalogue()
      const lang = langOf(request)
      const location = findPlace(places, request.params.type, request.params.id)
      const weather = await answers.weather(location)
      request.provenance = weather
      const body = weatherOf(namedSummaryOf(location, places, lang), weather, timezone)
      return sendJson(request, reply, body, { ...freshnessHeaders(weather), 'content-language': lang })
    },
  })

  app.route<PointPath>({
    method: ['GET', 'HEAD'],
    url: '/api/v1/weather/coords/:lat/:lng',
    config: { endpoint: 'coords' },
    handler: async (request, reply) => {
      const lang = langOf(request)
      const latitude = degreesOf('lat', request.params.lat, { min: bounds.south, max: bounds.north, area })
      const longitude = degreesOf('lng', request.params.lng, { min: bounds.west, max: bounds.east, area })
      const weather = await answers.weather({ latitude, longitude })
      request.provenance = weather
      const body = weatherOf(pointOf(latitude, longitude), weather, timezone)
      return sendJson(request, reply, body, { ...freshnessHeaders(weather), 'content-language': lang })
    },
  })

  app.route<PlacePath>({
    method: ['GET', 'HEAD'],
    url: '/api/v1/forecast/:type/:id',
    config: { endpoint: 'forecast' },
    handler: async (request, reply) => {
      const places = catalogue()
      const query = queryOf(request.raw.url ?? '', ['days'])
      const days = wholeNumberOf('days', query.days, { min: 1, max: forecastDays, fallback: forecastDays })
      const location = findPlace(places, request.params.type, request.params.id)
      const forecast = await answers.forecast(location, days)
      request.provenance = forecast
      const body = forecastOf(summaryOf(location, places), forecast, timezone)
      return sendJson(request, reply, body, freshnessHeaders(forecast))
    },
  })
}

const langOf = (request: FastifyRequest) => languageOf(queryOf(request.raw.url ?? '', ['lang']).lang)
