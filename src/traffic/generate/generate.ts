// Generates traffic: who sends which request at which instant, drawn from a seed. Equal settings and an equal catalogue give
// equal requests on every machine. Draws alone; writing a file is left to the command.

import type { Catalogue } from '../../catalogue/catalogue.ts'
import type { Bounds, Location } from '../../catalogue/location.ts'
import type { TrafficRequest } from '../traffic-request.ts'
import { arrivalsOf, type Span } from './arrivals.ts'
import { badRequestFor } from './bad-requests.ts'
import { createChoice, zipfWeights } from './choice.ts'
import { apiPath, createPaths, type Endpoint, endpoints } from './paths.ts'
import { createRandom } from './random.ts'
import { type Shape, weightOf } from './shape.ts'
import { isWithin, type Storm, strengthAt } from './storm.ts'

/** Shares are from 0 to 1. */
export type GeneratedTraffic = Span & {
  readonly seed: number
  /** The mean of requests per second. */
  readonly rate: number
  readonly arrivals: 'poisson' | 'even'
  readonly shape: Shape
  readonly storms: readonly Storm[]
  /** How often each endpoint is requested beside the others. */
  readonly mix: Readonly<Record<Endpoint, number>>
  /** Zipf's exponent of the places, the most populous first. */
  readonly alpha: number
  readonly keys: number
  /** Zipf's exponent of the keys. */
  readonly keysAlpha: number
  readonly english: number
  readonly conditional: number
  readonly compressed: number
  readonly bad: number
}

/** What the requests are drawn for. */
export type World = {
  readonly catalogue: Catalogue
  readonly bounds: Bounds
  /** Seconds that local time is ahead of UTC at an instant. */
  readonly offsetSecondsAt: (instant: number) => number
}

/** The published places, the most populous first, equals by id. */
const placesByPopulation = (catalogue: Catalogue): Location[] =>
  catalogue.all().toSorted((a, b) => b.population - a.population)

/** The ids of so many keys: key-0001 and on. */
const keyIds = (count: number): string[] => {
  const digits = Math.max(4, String(count).length)
  return Array.from({ length: count }, (_, i) => `key-${String(i + 1).padStart(digits, '0')}`)
}

const encodings = ['gzip', 'gzip, deflate, br']

/** The requests, by their instants. */
export function* generate(settings: GeneratedTraffic, world: World): Generator<TrafficRequest> {
  const { seed, start, durationMs, rate, shape, storms, mix, keys } = settings
  const { catalogue, bounds, offsetSecondsAt } = world
  const places = placesByPopulation(catalogue)
  const randomOf = (name: string) => createRandom(seed, name)

  const popularity = zipfWeights(places.length, settings.alpha)
  const drawPlace = createChoice(popularity, randomOf('places'))
  const surges = storms.map(storm => surgeOf(storm, places, popularity, catalogue, randomOf('storms')))
  const surgesAt = (instant: number) =>
    surges.reduce((sum, { share, storm }) => sum + (storm.factor - 1) * share * strengthAt(storm, instant), 0)
  const whichPlaces = randomOf('surges')
  const placeAt = (instant: number): number => {
    let drawn = whichPlaces() * (1 + (surges.length > 0 ? surgesAt(instant) : 0)) - 1
    if (drawn < 0) return drawPlace()
    for (const { storm, share, draw } of surges) {
      drawn -= (storm.factor - 1) * share * strengthAt(storm, instant)
      if (drawn < 0) return draw()
    }
    return drawPlace()
  }

  const instants = arrivalsOf({
    start,
    durationMs,
    rate,
    kind: settings.arrivals,
    weightAt: instant =>
      weightOf[shape](instant + offsetSecondsAt(instant) * 1000, (instant - start) / durationMs) *
      (1 + surgesAt(instant)),
    random: randomOf('arrivals'),
  })

  const ids = keyIds(keys)
  const drawKey = createChoice(zipfWeights(keys, settings.keysAlpha), randomOf('keys'))
  const drawEndpoint = createChoice(
    endpoints.map(name => mix[name]),
    randomOf('endpoints'),
  )
  const paths = createPaths(catalogue, bounds)
  const random = randomOf('paths')
  const language = randomOf('languages')
  const encoding = randomOf('encodings')
  const condition = randomOf('conditions')
  const badness = randomOf('bad')
  const badPaths = randomOf('bad paths')

  for (const at of instants) {
    // Drawn for every request, wanted or not, so that other shares leave the rest of a file as it was.
    const place = places[placeAt(at)] as Location
    const key = ids[drawKey()] as string
    const endpoint = endpoints[drawEndpoint()] as Endpoint
    const english = language() < settings.english
    const conditional = condition() < settings.conditional
    const compressed = encoding() / settings.compressed
    const accepts =
      compressed < 1 ? { accepts: encodings[Math.floor(compressed * encodings.length)] as string } : {}
    const path = paths[endpoint](place, { random, english })
    if (badness() < settings.bad) {
      const bad = badRequestFor(place, bounds, badPaths)
      yield { at, method: 'GET', path: apiPath + bad.path, ...(bad.hasKey ? { key } : {}), ...accepts }
    } else
      yield {
        at,
        method: 'GET',
        path: apiPath + path,
        key,
        ...accepts,
        ...(conditional ? { conditional } : {}),
      }
  }
}

/** The requests that a storm adds, as a share of the usual ones, and where. */
const surgeOf = (
  storm: Storm,
  places: readonly Location[],
  popularity: readonly number[],
  catalogue: Catalogue,
  random: () => number,
) => {
  const affected = places.map(place => isWithin(place, storm, catalogue))
  const weights = popularity.map((weight, position) => (affected[position] ? weight : 0))
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
  return { storm, share: sum(weights) / sum(popularity), draw: createChoice(weights, random) }
}
