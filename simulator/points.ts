// Parses the points of a call: coordinates, and the parameters that may be given for each point. Lists must be as long as
// the list of coordinates, or have one time zone for all.

import { shortened } from '../src/outside-text.ts'
import { maxPointsPerRequest } from '../src/provider/open-meteo/limits.ts'
import { perPoint, readNumbers, readNumbersOrNan } from './parameter-values.ts'
import type { Parameters } from './parameters.ts'
import type { Place } from './place.ts'
import { Refusal } from './refusal.ts'
import { autoZone, zoneName } from './zones.ts'

/** A requested point, 32-bit exact. */
export type Point = Place & {
  /** Metres; NaN selects the height of the model cell. */
  readonly elevation: number | undefined
  readonly locationId: number | undefined
  /** The name of its time zone. */
  readonly zone: string
}

/** @throws Refusal */
export const readPoints = (given: Parameters): Point[] => {
  const latitudes = readNumbers(given, 'latitude', 90) ?? []
  const longitudes = readNumbers(given, 'longitude', 180) ?? []
  const count = latitudes.length
  if (longitudes.length !== count)
    throw new Refusal(
      400,
      `Parameter 'latitude' and 'longitude' must have the same number of elements. Given ${count} and ${longitudes.length}.`,
    )
  if (count > maxPointsPerRequest)
    throw new Refusal(
      400,
      `Only up to ${maxPointsPerRequest} locations can be requested at once. Given ${count}.`,
    )
  const elevations = perPoint('elevation', readNumbersOrNan(given, 'elevation', 20_000), count)
  const ids = perPoint('location_id', readIds(given), count)
  const zones = (given.list('timezone') ?? ['GMT']).map(readZone)
  if (zones.length !== 1) perPoint('timezone', zones, count)
  return latitudes.map((latitude, i) => {
    // The provider stores coordinates as 32-bit numbers.
    const place = { latitude: Math.fround(latitude), longitude: Math.fround(longitudes[i] ?? 0) }
    const zone = zones[zones.length === 1 ? 0 : i] ?? 'GMT'
    return {
      ...place,
      elevation: elevations?.[i],
      locationId: ids?.[i],
      zone: zone === 'auto' ? autoZone(place) : zone,
    }
  })
}

const readIds = (given: Parameters): number[] | undefined =>
  readNumbers(given, 'location_id', 2 ** 53)?.map(id => {
    if (!Number.isInteger(id))
      throw new Refusal(400, `Data corrupted at path 'location_id'. Cannot read a whole number from '${id}'.`)
    return id
  })

const readZone = (requested: string): string => {
  const name = requested === 'auto' ? requested : zoneName(requested)
  if (name === undefined) throw new Refusal(400, `Invalid timezone. Given: ${shortened(requested, 60)}.`)
  return name
}
