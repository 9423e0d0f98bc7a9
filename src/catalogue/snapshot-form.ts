// Checks the form of a snapshot and of the facts of a build: keys, types, version.

import { z } from 'zod'
import { isPrintable } from '../common/outside-text.ts'
import type { Fault } from './check.ts'
import { show } from './field-rules.ts'
import type { Bounds } from './location-schema.ts'
import { schemaVersion } from './snapshot.ts'

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const count = z.int().min(0)
const label = z.string().min(1).refine(isPrintable, 'text without control characters')
const sourceSchema = z.strictObject({
  name: label,
  url: z.url({ protocol: /^https?$/u }),
  licence: label,
  date: z.iso.date(),
})
const south = z.number().min(-90).max(90)
const west = z.number().min(-180).max(180)
const boundsSchema = z
  .strictObject({ south, north: south, west, east: west })
  .refine(bounds => bounds.south < bounds.north, { path: ['south'], error: 'must be less than north' })
  .refine(bounds => bounds.west < bounds.east, { path: ['west'], error: 'must be less than east' })
const factsSchema = z.strictObject({
  title: label.max(200),
  bounds: boundsSchema,
  sources: z.array(sourceSchema).min(1),
})
const fileSchema = z.strictObject({
  provenance: z.strictObject({
    schema: z.literal(schemaVersion),
    ...factsSchema.shape,
    built: z.iso.date(),
    counts: z.strictObject({
      division: count,
      district: count,
      upazila: count,
      union: count,
      total: count,
    }),
    sha256: z.string().regex(/^[0-9a-f]{64}$/u),
  }),
  locations: z.array(z.custom(isObject, 'invalid input: expected an object')).min(1),
})

const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at > 0 ? '.' : ''}${String(step)}`))
    .join('')

// Of thousands that are objects, one says as much.
const abridged = (file: unknown): unknown =>
  isObject(file) && Array.isArray(file.locations) && file.locations.every(isObject)
    ? { ...file, locations: file.locations.slice(0, 1) }
    : file

/** Every fault in the form of a parsed snapshot; does not check the places. */
export const formFaults = (file: unknown): Fault[] => faultsIn(fileSchema, abridged(file))

/** Every fault in the form of the facts that a build is given. */
export const factsFaults = (facts: unknown): Fault[] => faultsIn(factsSchema, facts)

/** The box of a parsed snapshot; undefined where it is none. */
export const boundsIn = (file: unknown): Bounds | undefined =>
  isObject(file) && isObject(file.provenance)
    ? boundsSchema.safeParse(file.provenance.bounds, { jitless: true }).data
    : undefined

const faultsIn = (schema: z.ZodType, given: unknown): Fault[] => {
  const { error } = schema.safeParse(given, { reportInput: true, jitless: true })
  return (error?.issues ?? []).map(({ path, message, input }) => {
    const within = path.length > 1 ? 1 : 0
    const row = within === 0 ? 'file' : pathText(path.slice(0, 1))
    const given = isObject(input) || Array.isArray(input) ? '' : `given ${show(input)}; `
    return {
      row,
      column: pathText(path.slice(within)) || 'the whole',
      message: `${given}${message.charAt(0).toLowerCase()}${message.slice(1)}`,
    }
  })
}
