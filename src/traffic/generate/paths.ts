// The path of a request for a place, by endpoint: what a consumer of the API sends. Every one of these is answered with 200.

import type { Catalogue } from '../../catalogue/catalogue.ts'
import type { Bounds, Location, LocationType } from '../../catalogue/location.ts'
import type { Random } from './random.ts'

/** The endpoints, by the names that the log and the metrics have for them. */
export const endpoints = ['weather', 'forecast', 'coords', 'locations', 'location'] as const
export type Endpoint = (typeof endpoints)[number]

export const apiPath = '/api/v1'

type Drawn = {
  readonly random: Random
  readonly english: boolean
}

type PathOf = (place: Location, drawn: Drawn) => string

/** The paths of each endpoint in a catalogue. */
export const createPaths = (catalogue: Catalogue, bounds: Bounds): Readonly<Record<Endpoint, PathOf>> => {
  const parentIdOf = (place: Location, type: LocationType): string | undefined => {
    for (let at: Location | undefined = place; at; at = catalogue.parentOf(at))
      if (at.type === type) return at.published ? at.id : undefined
    return undefined
  }

  // What an application shows for a choice of places: a level, the part of it under a place, or what someone types.
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
    ({ type, name_en, name_bn }, { random, english }) => {
      const name = english ? name_en : name_bn
      const letters = [...name].slice(0, 3 + Math.floor(random() * 4)).join('')
      return `/locations?type=${type}&q=${encodeURIComponent(letters)}&limit=10`
    },
  ]

  return {
    weather: ({ type, id }, { english }) => `/weather/${type}/${id}${english ? '?lang=en' : ''}`,
    forecast: ({ type, id }, { random }) => `/forecast/${type}/${id}?days=${1 + Math.floor(random() * 7)}`,
    coords: ({ latitude, longitude }, { random, english }) => {
      const lat = near(latitude, bounds.south, bounds.north, random)
      const lng = near(longitude, bounds.west, bounds.east, random)
      return `/weather/coords/${lat}/${lng}${english ? '?lang=en' : ''}`
    },
    locations: (place, drawn) => (lists[Math.floor(drawn.random() * lists.length)] as PathOf)(place, drawn),
    location: ({ type, id }) => `/locations/${type}/${id}`,
  }
}

// About 11 km; two draws, so that most points are closer.
const spreadDegrees = 0.1

const near = (degrees: number, least: number, most: number, random: Random): string => {
  const moved = degrees + (random() + random() - 1) * spreadDegrees
  return Math.min(most, Math.max(least, moved)).toFixed(4)
}
