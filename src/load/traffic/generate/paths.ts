// The path of a request for a place, by endpoint, as consumers of the API send it: each is answered with 200.

import type { Catalogue } from '../../../catalogue/catalogue.ts'
import type { Bounds, Location, LocationType } from '../../../catalogue/location-schema.ts'
import type { EndpointName } from '../../../common/endpoints.ts'
import type { Random } from './random.ts'

type PathOf = (place: Location, isEnglish: boolean) => string

/** The path of a request for a place, below that of the API, by endpoint. */
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

  // An application lists places by level, by the places under another one, or by a typed text.
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

  return {
    weather: ({ type, id }, isEnglish) => `/weather/${type}/${id}${isEnglish ? '?lang=en' : ''}`,
    forecast: ({ type, id }) => `/forecast/${type}/${id}?days=${1 + Math.floor(random() * 7)}`,
    coords: ({ latitude, longitude }, isEnglish) => {
      const lat = near(latitude, bounds.south, bounds.north, random)
      const lng = near(longitude, bounds.west, bounds.east, random)
      return `/weather/coords/${lat}/${lng}${isEnglish ? '?lang=en' : ''}`
    },
    locations: (place, isEnglish) => (lists[Math.floor(random() * lists.length)] as PathOf)(place, isEnglish),
    location: ({ type, id }) => `/locations/${type}/${id}`,
  }
}

// About 11 km; two draws, so that most points are closer.
const spreadDegrees = 0.1

const near = (degrees: number, least: number, most: number, random: Random): string => {
  const moved = degrees + (random() + random() - 1) * spreadDegrees
  return Math.min(most, Math.max(least, moved)).toFixed(4)
}
