// Generates requests from a seed. Equal settings and an equal catalogue give equal requests on every machine.

import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import type { Bounds } from 'abohawa/catalogue/location-schema.ts'
import { apiPrefix, type EndpointName, endpointNames } from 'abohawa/common/endpoints.ts'
import type { TrafficRequest } from '../traffic-request.ts'
import { arrivalsOf, type Shape, type Span, weightOf } from './arrivals.ts'
import { createBadRequests, createPaths } from './paths.ts'
import { createPopularPlaces, type Storm } from './places.ts'
import { createChoice, createRandom, zipfWeights } from './random.ts'

/** Shares are from 0 to 1. */
export type GeneratedTraffic = Span & {
  readonly seed: number
  /** Mean requests per second. */
  readonly rate: number
  readonly arrivals: 'poisson' | 'even'
  readonly shape: Shape
  readonly storms: readonly Storm[]
  readonly mix: Readonly<Record<EndpointName, number>>
  /** Zipf exponent of the places, by population. */
  readonly alpha: number
  readonly keys: number
  /** Zipf exponent of the keys. */
  readonly keysAlpha: number
  readonly english: number
  readonly conditional: number
  readonly compressed: number
  readonly bad: number
}

export type World = {
  readonly catalogue: Catalogue
  readonly bounds: Bounds
  /** Seconds that local time is ahead of UTC at an instant. */
  readonly offsetSecondsAt: (instant: number) => number
}

const keyIds = (count: number): string[] => {
  const digits = Math.max(4, String(count).length)
  return Array.from({ length: count }, (_, i) => `key-${String(i + 1).padStart(digits, '0')}`)
}

const encodings = ['gzip', 'gzip, deflate, br']

export function* generate(settings: GeneratedTraffic, world: World): Generator<TrafficRequest> {
  const { seed, start, durationMs, rate, arrivals, shape, mix } = settings
  const { catalogue, bounds, offsetSecondsAt } = world
  const randomOf = (name: string) => createRandom(seed, name)
  const places = createPopularPlaces(catalogue, settings)
  const instants = arrivalsOf({
    start,
    durationMs,
    rate,
    arrivals,
    weightAt: instant => {
      const local = instant + offsetSecondsAt(instant) * 1000
      return weightOf[shape](local, (instant - start) / durationMs) * (1 + places.addedAt(instant))
    },
    random: randomOf('arrivals'),
  })

  const ids = keyIds(settings.keys)
  const key = createChoice(zipfWeights(settings.keys, settings.keysAlpha), randomOf('keys'))
  const shares = endpointNames.map(name => mix[name])
  const endpoint = createChoice(shares, randomOf('endpoints'))
  const paths = createPaths(catalogue, bounds, randomOf('paths'))
  const language = randomOf('languages')
  const encoding = randomOf('encodings')
  const condition = randomOf('conditions')
  const isBad = randomOf('bad')
  const badRequest = createBadRequests(bounds, randomOf('bad paths'))

  for (const at of instants) {
    // Everything is drawn for every request, so that changing a share leaves the rest as it was.
    const place = places.placeAt(at)
    const id = ids[key()] as string
    const path = paths[endpointNames[endpoint()] as EndpointName](place, language() < settings.english)
    const conditional = condition() < settings.conditional
    const drawn = encoding() / settings.compressed
    const accepts = drawn < 1 ? { accepts: encodings[Math.floor(drawn * encodings.length)] as string } : {}
    if (isBad() < settings.bad) {
      const bad = badRequest(place)
      yield { at, method: 'GET', path: apiPrefix + bad.path, ...(bad.hasKey ? { key: id } : {}), ...accepts }
    } else {
      const request = { at, method: 'GET', path: apiPrefix + path, key: id, ...accepts }
      yield conditional ? { ...request, conditional } : request
    }
  }
}
