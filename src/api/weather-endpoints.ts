// The endpoints with weather, over the places and rendered bodies that they share. Apart from api.ts, so that tools can call
// them without a listener.

import type { Bounds } from '../catalogue/location-schema.ts'
import type { WeatherEndpoint } from '../common/endpoints.ts'
import type { Answers } from './answer.ts'
import type { Endpoint } from './endpoint.ts'
import { forecastEndpoint } from './endpoints/forecast.ts'
import { weatherEndpoint } from './endpoints/weather.ts'
import { weatherCoordsEndpoint } from './endpoints/weather-coords.ts'
import { type CurrentCatalogue, createPlaces } from './places.ts'
import { type Compression, createRenderedWeather } from './rendered-weather.ts'

export type WeatherEndpointParts = {
  readonly catalogue: CurrentCatalogue
  readonly answers: Answers
  /** The box that raw coordinates must lie in, and what it is called. */
  readonly bounds: Bounds
  readonly area: string
  /** The IANA zone of all local times. */
  readonly timezone: string
  /** Compresses bodies; by default with zlib. */
  readonly compression?: Compression | undefined
}

export const weatherEndpointsOf = ({
  catalogue,
  answers,
  bounds,
  area,
  timezone,
  compression,
}: WeatherEndpointParts): Readonly<Record<WeatherEndpoint, Endpoint>> => {
  const findPlace = createPlaces(catalogue, answers.cellAt)
  const weather = createRenderedWeather(answers, timezone, compression)
  return {
    weather: weatherEndpoint(findPlace, weather),
    coords: weatherCoordsEndpoint(answers.cellAt, weather, bounds, area),
    forecast: forecastEndpoint(findPlace, weather),
  }
}
