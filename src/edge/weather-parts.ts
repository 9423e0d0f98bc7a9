// What the endpoints that answer with weather have in common: where places are found, where weather is read, how it is
// rendered.

import type { Answers, Known } from '../answer.ts'
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

/** What the memory tier has is answered in the same turn of the event loop. */
export const whenKnown = (
  known: Known | Promise<Known>,
  represent: (known: Known) => Representation,
): Representation | Promise<Representation> =>
  known instanceof Promise ? known.then(represent) : represent(known)
