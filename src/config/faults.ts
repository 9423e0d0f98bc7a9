// The sentences for invalid settings: place, path, given value, allowed values. Secrets are never repeated. The schema
// validates; this file only writes the message.

import * as z from 'zod'
import { quoted, safeText } from '../outside-text.ts'
import { redactedUrls } from '../redacted-url.ts'
import { secrets } from './kinds.ts'
import { renamedSettings } from './renamed.ts'
import { coreOf, namedIn, nearestPath, type Path, printPath, schemaAt } from './tree.ts'

/** A value that somebody gave to a setting, and how to name the place (or the part of it) where they did. */
export type Assignment = { path: readonly string[]; value: unknown; at(inner: Path): string }

/** A sentence, and the setting that it leaves without a usable value, if there is one. */
export type Fault = { path?: readonly string[]; sentence: string }

/** What one source of settings says and what is wrong with the way it says it, in its own order. */
export type Reading = ReadonlyArray<Assignment | Fault>

const LONGEST = 80

// Redacted before it is cut, because the password in a cut URL can't be recognised.
const redacted = (value: string, schema: z.core.$ZodType | undefined): string =>
  (schema && secrets.get(coreOf(schema))?.redact(value)) ?? redactedUrls(value)

const shown = (value: unknown, schema: z.core.$ZodType | undefined): string => {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'a map'
  const line = redacted(String(value), schema)
  return typeof value === 'string' ? quoted(line, LONGEST) : safeText(line, LONGEST)
}

const within = (value: unknown, [key, ...rest]: Path): unknown =>
  key === undefined ? value : within((value as Record<PropertyKey, unknown> | null | undefined)?.[key], rest)

/** The sentence for an unknown name: its present name if it was renamed, else the nearest known one. */
export const unknownName = (where: string, path: Path): string => {
  const renamed = renamedSettings[printPath(path)]
  if (renamed !== undefined) return `${where}: ${printPath(path)} is now called ${renamed}; use that name`
  const nearest = nearestPath(path)
  return `${where}: ${printPath(path)} is not a known setting${nearest ? `; did you mean ${printPath(nearest)}?` : ''}`
}

/** The sentence for a name of the operator's choice that cannot be one, such as a tier's. */
export const unusableName = (where: string, path: Path): string | undefined => {
  const holder = schemaAt(path.slice(0, -1))
  const keys = holder && namedIn(holder)?.keyType
  const [issue] = (keys && z.safeParse(keys, path.at(-1), { jitless: true }).error?.issues) ?? []
  return issue && `${where}: ${printPath(path)} must end in ${issue.message}`
}

const misfit = (where: string, path: Path, value: unknown, allowed: string): string =>
  value === undefined
    ? `${where}: ${printPath(path)} is missing, but must be ${allowed}`
    : `${where}: ${printPath(path)} is ${shown(value, schemaAt(path))}, but must be ${allowed}`

/** Whether a part of a reading is a fault already. */
export const isFault = (part: Assignment | Fault): part is Fault => 'sentence' in part

/** All that is wrong with a value by itself; nothing if it fits. */
export const faultsOf = ({ path, value, at }: Assignment): Fault[] => {
  const schema = schemaAt(path)
  const issues = (schema && z.safeParse(schema, value, { jitless: true }).error?.issues) ?? []
  const sentences = issues.flatMap(issue => {
    const full = [...path, ...issue.path]
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map(key => unknownName(at([...issue.path, key]), [...full, key]))
      : [misfit(at(issue.path), full, within(value, issue.path), issue.message)]
  })
  return sentences.map(sentence => ({ path, sentence }))
}
