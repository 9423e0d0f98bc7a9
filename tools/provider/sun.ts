// The position of the sun: whether it is day at a place and instant, and when the sun rises and sets on a local day.
// Low-precision almanac formulas, good to well under a minute for this century.

import { hourMs, utcDayMs } from 'abohawa/common/calendar.ts'
import type { Place } from './points.ts'

const radians = Math.PI / 180
// Sunrise is the moment when the upper rim of the sun appears, refraction included.
const horizon = Math.sin(-0.833 * radians)
const noonOf2000 = Date.UTC(2000, 0, 1, 12)

/** Hours since midnight by the sun's mean course at a longitude, 0..24. */
export const solarHour = (instant: number, longitude: number): number => {
  const hours = (instant / hourMs + longitude / 15) % 24
  return hours < 0 ? hours + 24 : hours
}

/** Whether any of the sun is above the horizon. */
export const isDay = (instant: number, { latitude, longitude }: Place): boolean => {
  const { declination, advance } = sunAt(instant)
  const angle = (solarHour(instant, longitude) * 15 - 180 + advance) * radians
  const height =
    Math.sin(latitude * radians) * Math.sin(declination) +
    Math.cos(latitude * radians) * Math.cos(declination) * Math.cos(angle)
  return height > horizon
}

/** Sunrise and sunset in ms since the epoch, of the day that begins at `midnight`. In polar day the sun is up all day. */
export const sunTimes = (midnight: number, place: Place): { rise: number; set: number } => {
  const toNoon = (36 - solarHour(midnight, place.longitude)) % 24
  const noon = midnight + toNoon * hourMs
  return { rise: crossing(noon, -1, place), set: crossing(noon, 1, place) }
}

// The instant when the sun is on the horizon, before (-1) or after (1) the mean noon.
const crossing = (noon: number, side: -1 | 1, { latitude }: Place): number => {
  let instant = noon
  for (let round = 0; round < 3; round++) {
    const { declination, advance } = sunAt(instant)
    const cosine =
      (horizon - Math.sin(latitude * radians) * Math.sin(declination)) /
      (Math.cos(latitude * radians) * Math.cos(declination))
    const angle = Math.acos(Math.min(1, Math.max(-1, cosine))) / radians
    instant = noon + ((side * angle - advance) * utcDayMs) / 360
  }
  return instant
}

// Declination in radians, and by how many degrees the true sun is ahead of the mean one.
const sunAt = (instant: number): { declination: number; advance: number } => {
  const days = (instant - noonOf2000) / utcDayMs
  const anomaly = (357.529 + 0.98560028 * days) * radians
  const mean = 280.459 + 0.98564736 * days
  const longitude = (mean + 1.915 * Math.sin(anomaly) + 0.02 * Math.sin(2 * anomaly)) * radians
  const tilt = 23.437 * radians
  const ascension = Math.atan2(Math.cos(tilt) * Math.sin(longitude), Math.cos(longitude)) / radians
  const apart = (((mean - ascension) % 360) + 540) % 360
  return { declination: Math.asin(Math.sin(tilt) * Math.sin(longitude)), advance: apart - 180 }
}
