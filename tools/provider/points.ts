// Reads the points and the time zone of a call.

import { maxPointsPerRequest } from 'abohawa/protocol/limits.ts'
import { cut, numbersIn, type Parameters, refused } from './parameters.ts'

/** A point in decimal degrees, north and east positive. */
export type Place = { readonly latitude: number; readonly longitude: number }

/** The points in their order, 32-bit exact as the provider stores them. @throws Refusal */
export const readPoints = (given: Parameters): Place[] => {
  const latitudes = numbersIn(given, 'latitude', 90) ?? []
  const longitudes = numbersIn(given, 'longitude', 180) ?? []
  const count = latitudes.length
  if (longitudes.length !== count)
    throw refused(
      `Parameter 'latitude' and 'longitude' must have the same number of elements. Given ${count} and ${longitudes.length}.`,
    )
  if (count > maxPointsPerRequest)
    throw refused(`Only up to ${maxPointsPerRequest} locations can be requested at once. Given ${count}.`)
  return latitudes.map((latitude, i) => ({
    latitude: Math.fround(latitude),
    longitude: Math.fround(longitudes[i] ?? 0),
  }))
}

/** A time zone: how a request names it, and its offset and abbreviation at an instant. */
export type Zone = {
  readonly name: string
  at(instant: number): { readonly abbreviation: string; readonly offsetSeconds: number }
}

const gmt: Zone = { name: 'GMT', at: () => ({ abbreviation: 'GMT', offsetSeconds: 0 }) }

// Finding a zone takes a tenth of a millisecond. Every spelling is kept, up to a bound.
const zones = new Map<string, Zone>()
const maxZones = 100

/** The zone of a call; offsets come from the runtime's database. @throws Refusal */
export const readZone = (given: Parameters): Zone => {
  const requested = given.get('timezone') || 'GMT'
  const known = zones.get(requested)
  if (known) return known
  if (zones.size >= maxZones) zones.clear()
  const zone = zoneOf(requested)
  zones.set(requested, zone)
  return zone
}

const zoneOf = (requested: string): Zone => {
  if (/^(gmt|utc)$/i.test(requested)) return gmt
  try {
    // The runtime also accepts "+06:00", the provider does not.
    if (!/^[a-z]/i.test(requested) || requested === 'auto') throw new RangeError()
    const format = (timeZoneName: 'longOffset' | 'short') =>
      new Intl.DateTimeFormat('en-US', { timeZone: requested, timeZoneName })
    const [offset, short] = [format('longOffset'), format('short')]
    const resolved = offset.resolvedOptions().timeZone
    // The runtime resolves some zones to an older name: Asia/Calcutta for Asia/Kolkata.
    const name = resolved.toLowerCase() === requested.toLowerCase() ? resolved : requested
    return {
      name,
      at: instant => ({
        abbreviation: zonePart(short, instant),
        offsetSeconds: secondsIn(zonePart(offset, instant)),
      }),
    }
  } catch {
    throw refused(`Invalid timezone. Given: ${cut(requested)}.`)
  }
}

const zonePart = (format: Intl.DateTimeFormat, instant: number): string =>
  format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT'

// "GMT", "GMT+06:00", "GMT-03:30"
const secondsIn = (offset: string): number => {
  const [, sign, hours, minutes] = /^GMT([+-])(\d{2}):(\d{2})/.exec(offset) ?? []
  if (!sign) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60)
}
