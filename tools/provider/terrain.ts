// The terrain: coast, hills, height above the sea, and how terrain changes the rain. Drawn by hand for Bangladesh and its
// surroundings; the same for every seed.

import { bumpsAt, saltOf } from './noise.ts'
import type { Place } from './points.ts'

// Longitude and latitude of the shore from the Sundarbans to Teknaf; north of it is land.
const shore: readonly (readonly [number, number])[] = [
  [86, 20.6],
  [87.5, 21.5],
  [89, 21.7],
  [90, 21.8],
  [91, 22.4],
  [91.7, 22.6],
  [91.95, 21.4],
  [92.35, 20.7],
  [93.5, 19.5],
]

/** The influence of the sea at a place: 1 at and beyond the shore, 0 some 300 km inland. */
export const seaInfluence = (place: Place): number => 1 - clamp(inlandDegrees(place) / 2.8)

/** How much less lift rain needs at a place than on the plains around Dhaka: about -0.05 to 0.15. */
export const orographicLift = ({ latitude, longitude }: Place): number =>
  0.15 * hump(latitude, 25.1, 1.1) * hump(longitude, 91.7, 1.7) +
  0.08 * hump(latitude, 21.6, 1.8) * hump(longitude, 92.1, 1.1) -
  0.05 * clamp((89.8 - longitude) / 1.5)

/** Height of the ground in whole metres, on squares of 1/1200 degree as in the provider's height model. */
export const groundHeight = ({ latitude, longitude }: Place): number => {
  const square = {
    latitude: Math.floor(latitude * 1200) / 1200,
    longitude: Math.floor(longitude * 1200) / 1200,
  }
  const broad = broadHeight(square)
  const rough = broad + (1.5 + broad * 0.12) * bumpsAt(saltOf('rough'), square, 0.004)
  return Math.max(0, Math.round(rough))
}

/** Height of the land around a place without its small features, in metres. */
export const broadHeight = (place: Place): number => {
  const { latitude, longitude } = place
  const plains = 2 + 33 * clamp((latitude - 22) / 4.3) ** 1.4
  const ridges = 0.5 + 0.5 * bumpsAt(saltOf('ridges'), place, 0.12)
  const hillTracts = 800 * ridges * hump(latitude, 22.2, 1.7) * hump(longitude, 92.55, 0.7)
  const plateau = (700 + 700 * ridges) * hump(latitude, 25.6, 0.45) * hump(longitude, 91.2, 1.8)
  const mountains = 2600 * clamp((latitude - 26.9) / 1.2) * hump(longitude, 88.5, 10)
  return (plains + hillTracts + plateau + mountains) * clamp(inlandDegrees(place) / 0.1)
}

const inlandDegrees = ({ latitude, longitude }: Place): number => latitude - shoreLatitude(longitude)

const shoreLatitude = (longitude: number): number => {
  const [first, ...rest] = shore as [readonly [number, number], ...(readonly [number, number])[]]
  let [fromLongitude, fromLatitude] = first
  if (longitude <= fromLongitude) return fromLatitude
  for (const [toLongitude, toLatitude] of rest) {
    if (longitude <= toLongitude) {
      const share = (longitude - fromLongitude) / (toLongitude - fromLongitude)
      return fromLatitude + (toLatitude - fromLatitude) * share
    }
    fromLongitude = toLongitude
    fromLatitude = toLatitude
  }
  return fromLatitude
}

const clamp = (value: number): number => Math.min(1, Math.max(0, value))

// A smooth rise to 1 around `centre`, 0 from `reach` on.
const hump = (value: number, centre: number, reach: number): number =>
  Math.max(0, 1 - ((value - centre) / reach) ** 2) ** 2
