// Requests that the API refuses, of the kinds that consumers send: an unknown place, a bad parameter, an endpoint that does
// not exist, no key.

import type { Bounds, Location } from '../../catalogue/location.ts'
import type { Random } from './random.ts'

type BadRequest = { readonly path: string; readonly hasKey: boolean }

type PathOf = (place: Location, bounds: Bounds) => string
type Kind = (place: Location, bounds: Bounds, random: Random) => BadRequest

const oneOf =
  (paths: readonly PathOf[]): Kind =>
  (place, bounds, random) => ({
    path: (paths[Math.floor(random() * paths.length)] as PathOf)(place, bounds),
    hasKey: true,
  })

// 404. Ids are digits, so that none of these is one.
const unknownPlace = oneOf([
  ({ type, slug_en }) => `/weather/${type}/${encodeURIComponent(slug_en)}`,
  ({ type, id }) => `/weather/${type}/x${id}`,
  ({ type }) => `/forecast/${type}/undefined?days=3`,
  ({ type }) => `/locations/${type}/null`,
])

// 400.
const badParameter = oneOf([
  ({ type, id }) => `/weather/${type}/${id}?lang=fr`,
  ({ type, id }) => `/forecast/${type}/${id}?days=14`,
  ({ id }) => `/weather/city/${id}`,
  (_place, { north, east }) => `/weather/coords/${north + 1}/${east}`,
  (_place, { east }) => `/weather/coords/NaN/${east}`,
  () => '/locations',
  ({ type }) => `/locations?type=${type}&limit=1000`,
])

// 404.
const unknownEndpoint = oneOf([
  ({ type, id }) => `/current/${type}/${id}`,
  ({ id }) => `/weather/${id}`,
  () => '/alerts',
  () => '/status',
])

// 401.
const noKey: Kind = ({ type, id }) => ({ path: `/weather/${type}/${id}`, hasKey: false })

const kinds = [unknownPlace, badParameter, unknownEndpoint, noKey]

/** A bad request, each kind as often as the others. The path is below that of the API. */
export const badRequestFor: Kind = (place, bounds, random) =>
  (kinds[Math.floor(random() * kinds.length)] as Kind)(place, bounds, random)
