// The faults of settings: place, path, given value, allowed values. Secrets are never repeated. The schema validates; this
// file only writes the sentence.

import * as z from 'zod'
import { messageOf } from '../common/errors.ts'
import { quoted, safeText } from '../common/outside-text.ts'
import { redactedUrls } from '../common/redacted-url.ts'
import { secrets } from './kinds.ts'
import { coreOf, namedIn, nearestPath, type Path, printPath, schemaAt } from './tree.ts'

/** Where a setting is given: a file, with line and column from 1 where they are known, or a variable. */
export type Place =
  | { readonly file: string; readonly line?: number; readonly column?: number }
  | { readonly variable: string }

/** A value that somebody gave to a setting, and the place (or that of a part of it) where they did. */
export type Assignment = { path: readonly string[]; value: unknown; at(inner: Path): Place }

/** A fault, its place and its path. `setting` has no usable value then. */
export type Fault = { at: Place; reason: string; path?: Path; setting?: readonly string[] }

/** The settings of one source and its faults, in its own order. */
export type Reading = ReadonlyArray<Assignment | Fault>

/** As many faults are named; a file with more of them is another file. */
export const maxFaults = 100

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

/** The sentence for an unknown name, with the nearest known one. */
export const unknownName = (path: Path): string => {
  const nearest = nearestPath(path)
  return `${printPath(path)} is not a known setting${nearest ? `; did you mean ${printPath(nearest)}?` : ''}`
}

/** The sentence for a name of the operator's choice that cannot be one, such as a tier's. */
export const unusableName = (path: Path): string | undefined => {
  const holder = schemaAt(path.slice(0, -1))
  const keys = holder && namedIn(holder)?.keyType
  const [issue] = (keys && z.safeParse(keys, path.at(-1), { jitless: true }).error?.issues) ?? []
  return issue && `${printPath(path)} must end in ${issue.message}`
}

const misfit = (path: Path, value: unknown, allowed: string): string =>
  value === undefined
    ? `${printPath(path)} is missing, but must be ${allowed}`
    : `${printPath(path)} is ${shown(value, schemaAt(path))}, but must be ${allowed}`

/** Whether a part of a reading is a fault already. */
export const isFault = (part: Assignment | Fault): part is Fault => 'reason' in part

/** A place as people write it: `gateway.yaml:3:5`, or the name of a variable. */
export const printPlace = (place: Place): string =>
  'variable' in place
    ? place.variable
    : [place.file, place.line, place.column].filter(part => part !== undefined).join(':')

/** All that is wrong with a value by itself; nothing if it fits. */
export const faultsOf = ({ path, value, at }: Assignment): Fault[] => {
  const schema = schemaAt(path)
  const issues = (schema && z.safeParse(schema, value, { jitless: true }).error?.issues) ?? []
  return issues.slice(0, maxFaults + 1).flatMap(issue => {
    const full = [...path, ...issue.path]
    if (issue.code !== 'unrecognized_keys') {
      const reason = misfit(full, within(value, issue.path), issue.message)
      return [{ at: at(issue.path), path: full, reason, setting: path }]
    }
    return issue.keys.slice(0, maxFaults + 1).map(key => {
      const unknown = [...full, key]
      return { at: at([...issue.path, key]), path: unknown, reason: unknownName(unknown), setting: path }
    })
  })
}

const READ_ERRORS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'access is denied',
}

/** Why a file could not be read. */
export const unreadable = (thrown: unknown): string => {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  return READ_ERRORS[code] ?? messageOf(thrown)
}
