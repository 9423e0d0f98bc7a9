// Wind and gusts: the sum of the season's wind, weather systems, afternoon mixing, lower friction over the sea, and the
// outflow of storms. Gusts are never below the wind. Speeds are km/h; directions are degrees that the wind comes from.

import type { Season } from './climate.ts'
import type { Place } from './points.ts'
import { solarHour } from './sun.ts'
import { seaInfluence } from './terrain.ts'
import type { Texture } from './texture.ts'

export const createWind = (texture: Texture, place: Place) => {
  const east = texture.truth('wind east', 2.2, 22)
  const north = texture.truth('wind north', 2.2, 22)
  const swirlEast = texture.truth('swirl east', 0.5, 3.5)
  const swirlNorth = texture.truth('swirl north', 0.5, 3.5)
  const errorEast = texture.error('wind error east', 2, 16)
  const errorNorth = texture.error('wind error north', 2, 16)
  const roughness = texture.truth('gusts', 0.35, 2.5)
  const sea = seaInfluence(place)
  const freedom = 1 + 0.7 * sea * sea

  // Friction slows the wind at night, least by the sea.
  const mixing = (instant: number): number =>
    freedom * (1 + (0.3 - 0.15 * sea) * Math.cos(((solarHour(instant, place.longitude) - 14) * Math.PI) / 12))
  const eastAt = (instant: number, season: Season): number =>
    season.eastward + 7 * east(instant) + 3.5 * swirlEast(instant) + 6 * errorEast(instant)
  const northAt = (instant: number, season: Season): number =>
    season.northward + 7 * north(instant) + 3.5 * swirlNorth(instant) + 6 * errorNorth(instant)
  const speedOf = (instant: number, eastward: number, northward: number): number =>
    mixing(instant) * Math.sqrt(eastward * eastward + northward * northward)

  return {
    at: (instant: number, season: Season) => {
      const eastward = eastAt(instant, season)
      const northward = northAt(instant, season)
      const direction = (Math.atan2(-eastward, -northward) * 180) / Math.PI
      return { speed: speedOf(instant, eastward, northward), direction: (direction + 360) % 360 }
    },
    /** The strongest gust of the 15 minutes up to the instant. @param rain hundredths of a mm in this time */
    gust: (instant: number, season: Season, rain: number): number => {
      const speed = speedOf(instant, eastAt(instant, season), northAt(instant, season))
      const outflow = Math.min(55, rain * 0.3 * season.convection)
      return speed * (1.75 + 0.4 * roughness(instant)) + 2 + outflow
    },
  }
}
