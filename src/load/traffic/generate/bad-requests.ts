// Requests that the API refuses, of the kinds that consumers send: an unknown place, a bad parameter, an endpoint that does
// not exist, no key.

import type { Bounds, Location } from '../../../catalogue/location-schema.ts'
import type { Random } from './random.ts'

/** The path is below that of the API. */
type BadRequest = { readonly path: string; readonly hasKey: boolean }

type PathOf = (place: Location, bounds: Bounds) => string

// 404. Ids are digits, so that none of these is one.
const unknownPlaces: readonly PathOf[] = [
  ({ type, slug_en }) => `/weather/${type}/${encodeURIComponent(slug_en)}`,
  ({ type, id }) => `/weather/${type}/x${id}`,
  ({ type }) => `/forecast/${type}/undefined?days=3`,
  ({ type }) => `/locations/${type}/null`,
]

// 400.
const badParameters: readonly PathOf[] = [
  ({ type, id }) => `/weather/${type}/${id}?lang=fr`,
  ({ type, id }) => `/forecast/${type}/${id}?days=14`,
  ({ id }) => `/weather/city/${id}`,
  (_place, { north, east }) => `/weather/coords/${north + 1}/${east}`,
  (_place, { east }) => `/weather/coords/NaN/${east}`,
  () => '/locations',
  ({ type }) => `/locations?type=${type}&limit=1000`,
]

// 404.
const unknownEndpoints: readonly PathOf[] = [
  ({ type, id }) => `/current/${type}/${id}`,
  ({ id }) => `/weather/${id}`,
  () => '/alerts',
  () => '/status',
]

// 401, for want of a key.
const withoutKey: PathOf = ({ type, id }) => `/weather/${type}/${id}`

const kinds = [unknownPlaces, badParameters, unknownEndpoints, [withoutKey]]

/** Draws a bad request for a place, each kind as often as the others. */
export const createBadRequests =
  (bounds: Bounds, random: Random): ((place: Location) => BadRequest) =>
  place => {
    const kind = kinds[Math.floor(random() * kinds.length)] as readonly PathOf[]
    const pathOf = kind[Math.floor(random() * kind.length)] as PathOf
    return { path: pathOf(place, bounds), hasKey: pathOf !== withoutKey }
  }
