// Navigates the schema: the list of settings, the schema at a path, and the nearest known name.

import { closestMatch } from 'leven'
import * as z from 'zod'
import { quoted } from '../common/outside-text.ts'
import { configSchema } from './schema.ts'

export type Path = readonly PropertyKey[]

/** One value that a file or a variable can set; a `named` one holds values under names of the operator's choice. */
export type Setting = { path: readonly string[]; schema: z.core.$ZodType; named?: z.ZodRecord }

/** The kind of a value, without units, sections, defaults and null. */
export const coreOf = (schema: z.core.$ZodType): z.core.$ZodType => {
  if (schema instanceof z.ZodPipe) return coreOf(schema.in)
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodPrefault) return coreOf(schema.unwrap())
  return schema
}

/** Whether null is a valid value of this setting. */
export const allowsNull = (schema: z.core.$ZodType): boolean =>
  schema instanceof z.ZodNullable || (schema instanceof z.ZodPrefault && allowsNull(schema.unwrap()))

/** The parts that a map must have: the settings of a section, the fields of a list's item. */
export const partsOf = (schema: z.core.$ZodType): Record<string, z.core.$ZodType> | undefined => {
  const core = coreOf(schema)
  return core instanceof z.ZodObject ? core.shape : undefined
}

/** What a setting or a section is for. */
export const descriptionOf = (schema: z.core.$ZodType): string =>
  z.globalRegistry.get(schema)?.description ?? ''

/** The default of a setting, in the form of a file. */
export const defaultOf = (schema: z.core.$ZodType): unknown =>
  schema instanceof z.ZodPrefault ? schema.def.defaultValue : undefined

/** The map of names to values that a setting is, if it is one. */
export const namedIn = (schema: z.core.$ZodType): z.ZodRecord | undefined => {
  const core = coreOf(schema)
  return core instanceof z.ZodRecord ? core : undefined
}

/** The kind of each item of the list that a setting is, if it is one. */
export const itemOf = (schema: z.core.$ZodType): z.core.$ZodType | undefined => {
  const core = coreOf(schema)
  return core instanceof z.ZodArray ? core.element : undefined
}

/** The kind of a value at this path; undefined for an unknown path. */
export const schemaAt = (path: Path, from: z.core.$ZodType = configSchema): z.core.$ZodType | undefined => {
  const [key, ...rest] = path
  if (key === undefined) return from
  const core = coreOf(from)
  const parts = partsOf(core)
  const below =
    core instanceof z.ZodArray
      ? core.element
      : core instanceof z.ZodRecord
        ? core.valueType
        : parts && Object.hasOwn(parts, key)
          ? parts[String(key)]
          : undefined
  return below && schemaAt(rest, below)
}

const settingsIn = (schema: z.core.$ZodType, path: readonly string[]): Setting[] => {
  const parts = partsOf(schema)
  if (parts) return Object.entries(parts).flatMap(([key, part]) => settingsIn(part, [...path, key]))
  const named = namedIn(schema)
  return [named ? { path, schema, named } : { path, schema }]
}

/** Every setting, in the order of the sections. */
export const settings: readonly Setting[] = settingsIn(configSchema, [])

// Names come from files as well: whatever stands in one, a path stays one short line.
const printKey = (key: string): string => (/^[\w-]{1,60}$/.test(key) ? key : quoted(key))

/** A path as people write it: `catalogue.sources[0].url`. */
export const printPath = (path: Path): string =>
  path
    .map(key => (typeof key === 'number' ? `[${key}]` : `.${printKey(String(key))}`))
    .join('')
    .replace(/^\./, '') || 'the whole file'

const pathsIn = (schema: z.core.$ZodType, path: Path): Path[] =>
  Object.entries(partsOf(schema) ?? {}).flatMap(([key, part]) => [
    [...path, key],
    ...pathsIn(part, [...path, key]),
  ])

/** The longest beginning of a printed path that the schema names; undefined for none. Other names are text of a file. */
export const knownPath = (printed: string): string | undefined => {
  const known = pathsIn(configSchema, []).map(printPath)
  const isIn = (path: string) =>
    printed === path || printed.startsWith(`${path}.`) || printed.startsWith(`${path}[`)
  return known.findLast(isIn)
}

/**
 * The item nearest to what was written. A third of the letters may be wrong: beyond that another name was meant, and a suggestion
 * would mislead.
 */
export const nearestOf = <Item>(
  written: string,
  items: readonly Item[],
  nameOf: (item: Item) => string,
): Item | undefined => {
  const names = items.map(item => nameOf(item).toLowerCase())
  const nearest = closestMatch(written.toLowerCase(), names, { maxDistance: Math.ceil(written.length / 3) })
  return nearest === undefined ? undefined : items[names.indexOf(nearest)]
}

/** The path that somebody who wrote an unknown one most likely meant: a near name here, or else elsewhere; undefined for none. */
export const nearestPath = (written: Path): Path | undefined => {
  const parent = written.slice(0, -1)
  const holder = schemaAt(parent) ?? configSchema
  const here = Object.keys(partsOf(holder) ?? {}).map(key => [...parent, key])
  const nearest = (paths: readonly Path[]) =>
    nearestOf(String(written.at(-1)), paths, path => String(path.at(-1)))
  return nearest(here) ?? nearest(pathsIn(configSchema, []))
}
