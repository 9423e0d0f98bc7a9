// The air over a site at an instant: cloud, temperature, humidity and pressure. Rain does not act back on it. The height
// of the site enters here: like the provider, it corrects the temperature only far above or below the model cell.

import type { Season } from './climate.ts'
import type { Place } from './points.ts'
import { solarHour } from './sun.ts'
import { seaInfluence } from './terrain.ts'
import type { Texture } from './texture.ts'

/** °C, %, hPa; cloud in whole per cent. */
export type AirState = {
  temperature: number
  humidity: number
  apparent: number
  cloud: number
  seaPressure: number
  surfacePressure: number
}

/** The requested site: the middle of its model cell, the mean height of the cell, and the height to report, in m. */
export type Site = { readonly cell: Place; readonly cellHeight: number; readonly height: number }

const heightTolerance = 100

export const createAir = (texture: Texture, { cell, cellHeight, height }: Site) => {
  const spell = texture.truth('warm spell', 3, 60)
  const patch = texture.truth('warm patch', 0.7, 8)
  const moisture = texture.truth('moisture', 2.5, 36)
  const highCloud = texture.truth('high cloud', 2, 16)
  const lowCloud = texture.truth('low cloud', 0.5, 4)
  const pressure = texture.truth('pressure', 5, 80)
  const errorOfWarmth = texture.error('warmth error', 2.5, 20)
  const errorOfCloud = texture.error('cloud error', 1.5, 12)
  const sea = seaInfluence(cell)
  const airHeight = Math.abs(height - cellHeight) > heightTolerance ? height : cellHeight

  // Further north the winters are colder and the summers about as hot; the sea evens out the seasons.
  const shiftOf = ({ temperature }: Season): number => {
    const north = Math.abs(cell.latitude) - 23.8
    return -north * (0.1 + 0.05 * (29 - temperature)) + sea * 0.28 * (27 - temperature)
  }

  const cloudAt = (instant: number, season: Season, surplus: number): number => {
    const chance = 0.4 * highCloud(instant) + 0.2 * lowCloud(instant) + 0.35 * errorOfCloud(instant)
    const share = season.cloud + chance + 0.5 * Math.max(-0.25, surplus)
    return Math.round(100 * Math.min(1, Math.max(surplus > 0 ? 0.6 : 0, share)))
  }

  const temperatureAt = (instant: number, season: Season, cloud: number, surplus: number): number => {
    const course = 2 * warmthOfDay(solarHour(instant, cell.longitude)) - 1
    const swing = season.swing * (1 - 0.4 * sea) * (1.1 - 0.0025 * cloud)
    const cooling = Math.min(3.2, Math.max(0, surplus) * 9)
    const anomaly = 3.2 * spell(instant) + 0.9 * patch(instant) + 2.6 * errorOfWarmth(instant)
    return season.temperature + shiftOf(season) + swing * course + anomaly - cooling - 0.0065 * airHeight
  }

  const dewPointAt = (instant: number, season: Season, temperature: number, surplus: number): number => {
    const anomaly = 2 * moisture(instant) + 1.2 * spell(instant) - 0.005 * airHeight
    const dewPoint = season.dewPoint + 0.7 * shiftOf(season) + 1.5 * sea + anomaly
    return Math.min(temperature, surplus > 0 ? Math.max(dewPoint, temperature - 2.5) : dewPoint)
  }

  return {
    /** @param surplus lift beyond what rain needs @param wind km/h */
    at: (instant: number, season: Season, surplus: number, wind: number): AirState => {
      const cloud = cloudAt(instant, season, surplus)
      const temperature = temperatureAt(instant, season, cloud, surplus)
      const vapour = Math.max(
        0.08 * saturation(temperature),
        saturation(dewPointAt(instant, season, temperature, surplus)),
      )
      const tide = 1.3 * Math.cos(((solarHour(instant, cell.longitude) - 10) * Math.PI) / 6)
      const seaPressure = season.pressure + 3.5 * pressure(instant) + tide - 3 * Math.max(0, surplus)
      const lapse = 0.0065 * height
      return {
        temperature,
        humidity: Math.min(100, (100 * vapour) / saturation(temperature)),
        apparent: temperature + 0.33 * vapour - (0.7 * wind) / 3.6 - 4,
        cloud,
        seaPressure,
        surfacePressure: seaPressure * (1 - lapse / (temperature + 273.15 + lapse)) ** 5.257,
      }
    },
  }
}

// Pressure of the water vapour in saturated air, hPa. Magnus formula.
const saturation = (celsius: number): number => 6.112 * Math.exp((17.62 * celsius) / (243.12 + celsius))

const warmestHour = 14.5
const coolingHours = 15.3
const slowness = 6
const left = 1 / (1 + (coolingHours / slowness) ** 2)

// 0 in the coldest hour, shortly before six, and 1 in the warmest. The curve is steep from sunrise to early afternoon and
// around sunset, and flat through the night.
const warmthOfDay = (hour: number): number => {
  const since = (hour - warmestHour + 24) % 24
  if (since >= coolingHours)
    return 0.5 - 0.5 * Math.cos((Math.PI * (since - coolingHours)) / (24 - coolingHours))
  return (1 / (1 + (since / slowness) ** 2) - left) / (1 - left)
}
