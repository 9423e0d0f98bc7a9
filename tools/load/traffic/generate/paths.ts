// Paths as consumers send them: valid ones by endpoint, and ones that the API refuses.

import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import type { Bounds, Location, LocationType } from 'abohawa/catalogue/location-schema.ts'
import type { EndpointName } from 'abohawa/common/endpoints.ts'
import type { Random } from './random.ts'

type PathOf = (place: Location, isEnglish: boolean) => string

/** By endpoint, the path for a place, without the prefix of the API. */
export const createPaths = (
  catalogue: Catalogue,
  bounds: Bounds,
  random: Random,
): Readonly<Record<EndpointName, PathOf>> => {
  const parentIdOf = (place: Location, type: LocationType): string | undefined => {
    for (let at: Location | undefined = place; at; at = catalogue.parentOf(at))
      if (at.type === type) return at.published ? at.id : undefined
    return undefined
  }

  // Applications list places by level, by parent, or by typed text.
  const lists: readonly PathOf[] = [
    () => '/locations?type=district',
    place => {
      const division = parentIdOf(place, 'division')
      return division === undefined
        ? '/locations?type=division'
        : `/locations?type=district&division_id=${division}`
    },
    place => {
      const district = parentIdOf(place, 'district')
      return district === undefined
        ? '/locations?type=upazila&limit=100'
        : `/locations?type=upazila&district_id=${district}&limit=100`
    },
    ({ type, name_en, name_bn }, isEnglish) => {
      const name = isEnglish ? name_en : name_bn
      const typed = [...name].slice(0, 3 + Math.floor(random() * 4)).join('')
      return `/locations?type=${type}&q=${encodeURIComponent(typed)}&limit=10`
    },
  ]

  /** A place with its siblings, as a dashboard shows them. */
  const besides = ({ type, id, parentId }: Location): string => {
    const { results } = catalogue.list({
      type,
      ...(parentId !== null && { parentId }),
      limit: placesOfList,
      offset: 0,
    })
    return [...new Set([id, ...results.map(place => place.id)])].map(id => `${type}/${id}`).join()
  }

  return {
    weather: ({ type, id }, isEnglish) => `/weather/${type}/${id}${isEnglish ? '?lang=en' : ''}`,
    forecast: ({ type, id }) => `/forecast/${type}/${id}?days=${1 + Math.floor(random() * 7)}`,
    coords: ({ latitude, longitude }, isEnglish) => {
      const lat = near(latitude, bounds.south, bounds.north, random)
      const lng = near(longitude, bounds.west, bounds.east, random)
      return `/weather/coords/${lat}/${lng}${isEnglish ? '?lang=en' : ''}`
    },
    weather_places: (place, isEnglish) => `/weather?places=${besides(place)}${isEnglish ? '&lang=en' : ''}`,
    forecast_places: place => `/forecast?places=${besides(place)}&days=${1 + Math.floor(random() * 7)}`,
    locations: (place, isEnglish) => (lists[Math.floor(random() * lists.length)] as PathOf)(place, isEnglish),
    location: ({ type, id }) => `/locations/${type}/${id}`,
  }
}

const placesOfList = 20

// About 11 km; two draws, so that most points are closer.
const spreadDegrees = 0.1

const near = (degrees: number, least: number, most: number, random: Random): string => {
  const moved = degrees + (random() + random() - 1) * spreadDegrees
  return Math.min(most, Math.max(least, moved)).toFixed(4)
}

type BadRequest = { readonly path: string; readonly hasKey: boolean }

type BadPathOf = (place: Location, bounds: Bounds) => string

// 404. Ids are digits, and no slug is one of these.
const unknownPlaces: readonly BadPathOf[] = [
  ({ type, slug_en }) => `/weather/${type}/${encodeURIComponent(slug_en)}-city`,
  ({ type, id }) => `/weather/${type}/x${id}`,
  ({ type }) => `/forecast/${type}/undefined?days=3`,
  ({ type }) => `/locations/${type}/null`,
]

// 400.
const badParameters: readonly BadPathOf[] = [
  ({ type, id }) => `/weather/${type}/${id}?lang=fr`,
  ({ type, id }) => `/forecast/${type}/${id}?days=14`,
  ({ id }) => `/weather/city/${id}`,
  (_place, { north, east }) => `/weather/coords/${north + 1}/${east}`,
  (_place, { east }) => `/weather/coords/NaN/${east}`,
  () => '/locations',
  ({ type }) => `/locations?type=${type}&limit=1000`,
]

// 404.
const unknownEndpoints: readonly BadPathOf[] = [
  ({ type, id }) => `/current/${type}/${id}`,
  ({ id }) => `/weather/${id}`,
  () => '/alerts',
  () => '/status',
]

// 401.
const withoutKey: BadPathOf = ({ type, id }) => `/weather/${type}/${id}`

const kinds = [unknownPlaces, badParameters, unknownEndpoints, [withoutKey]]

/** Draws a bad request for a place; all kinds are equally likely. */
export const createBadRequests =
  (bounds: Bounds, random: Random): ((place: Location) => BadRequest) =>
  place => {
    const kind = kinds[Math.floor(random() * kinds.length)] as readonly BadPathOf[]
    const pathOf = kind[Math.floor(random() * kind.length)] as BadPathOf
    return { path: pathOf(place, bounds), hasKey: pathOf !== withoutKey }
  }
