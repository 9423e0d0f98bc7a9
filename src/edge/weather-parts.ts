// The parts that all weather endpoints share: the lookup of places, the reading of weather and its rendering.

import type { Answers, CellResult } from '../answer.ts'
import { type CurrentCatalogue, createPlaces } from './places.ts'
import { createRenderedWeather } from './rendered-weather.ts'
import type { Representation } from './representation.ts'

export type WeatherParts = ReturnType<typeof createWeatherParts>

/** @param timezone the IANA zone of all local times */
export const createWeatherParts = (catalogue: CurrentCatalogue, answers: Answers, timezone: string) => ({
  answers,
  findPlace: createPlaces(catalogue, answers.cellAt),
  rendered: createRenderedWeather(answers, timezone),
})

/** Represents a result as soon as it is there; one from memory in the same turn of the event loop. */
export const whenRead = (
  result: CellResult | Promise<CellResult>,
  represent: (result: CellResult) => Representation,
): Representation | Promise<Representation> =>
  result instanceof Promise ? result.then(represent) : represent(result)
