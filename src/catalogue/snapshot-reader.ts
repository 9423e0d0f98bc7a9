// Reads a file into a snapshot, or finds every fault of form, counts, checksum and places.

import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { InputError, messageOf } from '../common/errors.ts'
import { FileError, maxFileBytes, readTextFile } from '../common/regular-file.ts'
import { check, type Fault, faultLine } from './check.ts'
import { refusal } from './field-rules.ts'
import {
  type Bounds,
  type Counts,
  countByType,
  fieldOf,
  locationOf,
  type Row,
  snapshotNaming,
} from './location-schema.ts'
import { checksumIn, composeSnapshot, type Provenance, type Snapshot } from './snapshot.ts'
import { boundsIn, formFaults, isObject } from './snapshot-form.ts'

/** The result: how many places there are, and the snapshot if it has no fault, else every fault. */
export type Inspection = Readonly<{ counts: Counts; snapshot?: Snapshot; faults: readonly Fault[] }>

const rowsOf = ({ locations }: Record<string, unknown>): Row[] =>
  (Array.isArray(locations) ? locations : []).flatMap((fields, at) => {
    if (!isObject(fields)) return []
    const id = typeof fields.id === 'string' ? ` (id ${fields.id})` : ''
    return [{ row: `locations[${at}]${id}`, naming: snapshotNaming, fields }]
  })

const headFault = (column: string, given: unknown, allowed: string, because?: string): Fault => ({
  row: 'provenance',
  column,
  message: refusal(given, allowed, because),
})

const countFaults = (stated: Counts, counts: Counts): Fault[] => {
  const levels = Object.keys(counts) as (keyof Counts)[]
  return levels
    .filter(level => stated[level] !== counts[level])
    .map(level => headFault(`counts.${level}`, stated[level], `${counts[level]}, as many as the file has`))
}

const parseJson = (text: string): { file: unknown; faults: Fault[] } => {
  try {
    return { file: JSON.parse(text), faults: [] }
  } catch (thrown) {
    // The rest of the message quotes the file, which need not be a catalogue.
    const [position = ''] = / at position \d+(?: \(line \d+ column \d+\))?/.exec(messageOf(thrown)) ?? []
    const message = `not JSON${position && `: wrong${position}`}`
    return { file: undefined, faults: [{ row: 'file', column: 'the whole', message }] }
  }
}

/**
 * The places that come with the product. A test checks them by every rule, so that a start does not have to; the same test names
 * the checksum to state here once locations.json was built anew.
 */
export const shipped: { readonly sha256: string; readonly bounds: Bounds } = {
  sha256: 'f44f67c243182fefb7dcbd4e3d971a3676797d7efd90ebc75581bd54dca6cdb6',
  bounds: { south: 20, north: 27, west: 87.5, east: 93 },
}

/** Whether places with this checksum are those that come with the product, which keep every rule within these bounds. */
export const isShipped = (sha256: string, { south, north, west, east }: Bounds): boolean => {
  const checked = shipped.bounds
  return (
    sha256 === shipped.sha256 &&
    south <= checked.south &&
    north >= checked.north &&
    west <= checked.west &&
    east >= checked.east
  )
}
// For a file without bounds, which is a fault of its form.
const world = { south: -90, north: 90, west: -180, east: 180 }

/** The snapshot that a text holds, or every fault in it. */
export const inspectSnapshot = (text: string): Inspection => {
  const { file, faults: broken } = parseJson(text)
  const rows = isObject(file) ? rowsOf(file) : []
  const counts = countByType(rows.map(row => fieldOf(row, 'type')))
  if (broken.length > 0) return { counts, faults: broken }

  const checksum = checksumIn(text)
  const bounds = boundsIn(file) ?? world
  const wrong = isShipped(checksum, bounds) ? [] : check(rows, bounds)
  const malformed = formFaults(file)
  if (malformed.length > 0) return { counts, faults: [...malformed, ...wrong] }

  const { provenance } = file as { provenance: Provenance }
  const faults = [...countFaults(provenance.counts, counts), ...wrong]
  if (faults.length > 0) return { counts, faults }

  // Text that equals a build's output needs no second formatting to verify its lines.
  const known = checksum === provenance.sha256 ? checksum : undefined
  const snapshot = composeSnapshot(provenance, rows.map(locationOf), known)
  const { sha256 } = snapshot.provenance
  if (provenance.sha256 === sha256) return { counts, snapshot, faults: [] }
  const because = 'because the file was changed by hand ("abohawa catalogue publish" keeps it right)'
  return { counts, faults: [headFault('sha256', provenance.sha256, sha256, because)] }
}

const sentence = (path: string, faults: readonly Fault[]): string => {
  const [first] = faults
  const others = faults.length - 1
  const more = others === 0 ? '' : ` (and ${others} more ${others === 1 ? 'fault' : 'faults'})`
  return `${path}: ${first ? faultLine(first) : ''}${more}; "abohawa catalogue check ${path}" shows every fault`
}

/** The text of a file, without a byte order mark; InputError when it can't be read or is not UTF-8. */
export const readText = async (path: string): Promise<string> => {
  try {
    return await readTextFile(path, maxFileBytes.data)
  } catch (thrown) {
    if (thrown instanceof FileError && thrown.code === 'EILSEQ')
      throw new InputError(`${path} must be text in UTF-8`, { cause: thrown })
    throw new InputError(`${path} can't be read: ${messageOf(thrown)}`, { cause: thrown })
  }
}

/** The snapshot in a file; InputError names the file and the first fault. */
export const readSnapshot = async (path: string): Promise<Snapshot> => {
  const { snapshot, faults } = inspectSnapshot(await readText(path))
  if (snapshot === undefined) throw new InputError(sentence(path, faults))
  return snapshot
}

/** The absolute path of the file that is configured; null for the one that comes with the product. */
export const catalogueFile = (configured: string | null): string =>
  configured === null ? fileURLToPath(new URL('../../locations.json', import.meta.url)) : resolve(configured)
