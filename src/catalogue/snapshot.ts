// The snapshot of places as a value and as text: one place per line by id, so that a change shows as one line.

import { createHash } from 'node:crypto'
import {
  type Bounds,
  type Counts,
  countByType,
  type Field,
  fields,
  type Location,
  snapshotNaming,
} from './location-schema.ts'

/** The source of a part of the facts; `date` is YYYY-MM-DD, `licence` a name such as MIT. */
export type Source = Readonly<{ name: string; url: string; licence: string; date: string }>

/** What is known of places as a whole: the name of their region, its box, within which coordinates are answered, and sources. */
export type Facts = Readonly<{ title: string; bounds: Bounds; sources: readonly Source[] }>

/** The provenance of a snapshot; `built` is YYYY-MM-DD, `sha256` the checksum of its places. */
export type Provenance = Facts &
  Readonly<{
    schema: typeof schemaVersion
    built: string
    counts: Counts
    sha256: string
  }>

/** A whole file of places, sorted by id. */
export type Snapshot = Readonly<{ provenance: Provenance; locations: readonly Location[] }>

export const schemaVersion = 1

// Leaves out fields that most places do not have.
const isWritten = (location: Location, field: Field): boolean => {
  if (field === 'published') return !location.published
  return (field !== 'aliases' && field !== 'formerIds') || location[field].length > 0
}

const lineOf = (location: Location): string => {
  const line: Record<string, unknown> = {}
  for (const field of fields) if (isWritten(location, field)) line[snapshotNaming[field]] = location[field]
  return `    ${JSON.stringify(line)}`
}

const linesOf = (locations: readonly Location[]): string => locations.map(lineOf).join(',\n')

const beforeLines = ',\n  "locations": [\n'
const afterLines = '\n  ]\n}\n'

// Plain order of characters on a code that begins with its parent's: children follow their parent.
const byId = (a: Location, b: Location): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** The SHA-256 of the places as a snapshot writes them, in hexadecimal. */
const checksumOf = (lines: string): string => createHash('sha256').update(lines).digest('hex')

/** The part of a text with the lines of places, and its checksum. */
export const checksumIn = (text: string): string =>
  checksumOf(text.slice(text.indexOf(beforeLines) + beforeLines.length, -afterLines.length))

/**
 * A snapshot of these places: sorted, counted and with its checksum.
 * @param known the checksum, where it is known
 */
export const composeSnapshot = (
  { title, bounds, sources, built }: Facts & Pick<Provenance, 'built'>,
  places: readonly Location[],
  known?: string,
): Snapshot => {
  const locations = Object.freeze(places.toSorted(byId))
  const counts = countByType(locations.map(({ type }) => type))
  const sha256 = known ?? checksumOf(linesOf(locations))
  return Object.freeze({
    provenance: Object.freeze({ schema: schemaVersion, title, bounds, sources, built, counts, sha256 }),
    locations,
  })
}

/** The text of a snapshot; the same snapshot gives the same bytes. */
export const formatSnapshot = ({ provenance, locations }: Snapshot): string => {
  const { schema, title, bounds, sources, built, counts, sha256 } = provenance
  const head = JSON.stringify({ schema, title, bounds, sources, built, counts, sha256 }, null, 2).replaceAll(
    '\n',
    '\n  ',
  )
  return `{\n  "provenance": ${head}${beforeLines}${linesOf(locations)}${afterLines}`
}
