// Time zones in the provider's naming: the offset and abbreviation of a zone at an instant, and the zone that `auto` means
// at a point. Offsets come from the runtime's IANA database.

import type { Place } from './place.ts'

/** A zone at one instant. */
export type Zone = { readonly name: string; readonly abbreviation: string; readonly offsetSeconds: number }

type Formats = { offset: Intl.DateTimeFormat; short: Intl.DateTimeFormat }
const formats = new Map<string, Formats>()
const maxFormats = 1000

const names = new Map<string, string | undefined>()

/** The name of a zone in a response: usually as requested. Undefined when the runtime knows no such zone. */
export const zoneName = (requested: string): string | undefined => {
  // The runtime takes a tenth of a millisecond to resolve one.
  if (names.has(requested)) return names.get(requested)
  if (names.size >= maxFormats) names.clear()
  const name = resolvedName(requested)
  names.set(requested, name)
  return name
}

const resolvedName = (requested: string): string | undefined => {
  if (/^(gmt|utc)$/i.test(requested)) return 'GMT'
  if (!/^[a-z]/i.test(requested)) return undefined
  try {
    const resolved = new Intl.DateTimeFormat('en-US', { timeZone: requested }).resolvedOptions().timeZone
    // The runtime resolves some zones to a former name: Asia/Calcutta for Asia/Kolkata.
    return resolved.toLowerCase() === requested.toLowerCase() ? resolved : requested
  } catch {
    return undefined
  }
}

/** @param name as zoneName gives it */
export const zoneAt = (name: string, instant: number): Zone => {
  if (name === 'GMT') return { name, abbreviation: 'GMT', offsetSeconds: 0 }
  const { offset, short } = formatsOf(name)
  return { name, abbreviation: zonePart(short, instant), offsetSeconds: secondsIn(zonePart(offset, instant)) }
}

// Approximate, from west to east: a point near a border gets a neighbour's zone, as with the real provider.
const boxes: readonly (readonly [name: string, south: number, north: number, west: number, east: number])[] =
  [
    ['Asia/Dhaka', 20.5, 26.65, 88.02, 92.68],
    ['Asia/Kathmandu', 26.65, 30.45, 80.1, 88.02],
    ['Asia/Kolkata', 6, 36, 68, 93.4],
    ['Asia/Kolkata', 23.8, 29.5, 93.4, 97.4],
    ['Asia/Yangon', 9.5, 28.5, 92.3, 101.2],
  ]

/** The zone of a point; outside South Asia a zone of whole hours by longitude. */
export const autoZone = ({ latitude, longitude }: Place): string => {
  const box = boxes.find(
    ([, south, north, west, east]) =>
      latitude >= south && latitude <= north && longitude >= west && longitude <= east,
  )
  if (box) return box[0]
  const hours = Math.round(longitude / 15)
  // Names of this family have the opposite sign: Etc/GMT-6 is six hours ahead.
  return hours === 0 ? 'GMT' : `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}`
}

const formatsOf = (name: string): Formats => {
  const known = formats.get(name)
  if (known) return known
  const format = (timeZoneName: 'longOffset' | 'short') =>
    new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName })
  // Every spelling of a former name is a key of its own, so the number of keys needs a bound.
  if (formats.size >= maxFormats) formats.clear()
  const made = { offset: format('longOffset'), short: format('short') }
  formats.set(name, made)
  return made
}

const zonePart = (format: Intl.DateTimeFormat, instant: number): string =>
  format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT'

// "GMT", "GMT+06:00", "GMT-03:30"
const secondsIn = (offset: string): number => {
  const [, sign, hours, minutes] = /^GMT([+-])(\d{2}):(\d{2})/.exec(offset) ?? []
  if (!sign) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60)
}
