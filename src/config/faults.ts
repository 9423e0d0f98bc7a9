// Faults of settings as sentences, with place, path and value. Secrets are never repeated.

import { messageOf } from '../common/errors.ts'
import { quoted, safeText } from '../common/outside-text.ts'
import { redactedUrls } from '../common/redacted-url.ts'
import { secrets } from './kinds.ts'
import { configSchema } from './schema.ts'
import { coreOf, itemOf, nearestPath, type Path, partsOf, printPath, schemaAt } from './tree.ts'

/** Where a setting is given: a file, with line and column from 1 where they are known, or a variable. */
export type Place =
  | { readonly file: string; readonly line?: number; readonly column?: number }
  | { readonly variable: string }

/** A fault, its place and its path. */
export type Fault = { readonly at: Place; readonly reason: string; readonly path?: Path }

/** Values by the names of settings, section by section. */
export type Tree = { [key: string]: unknown }

/** What one source gives, a file or the environment, and the faults of its form. */
export type Source = {
  /** The form of a file, unchecked. */
  readonly tree: unknown
  readonly faults: readonly Fault[]
  /** The place of a value, or of the nearest section around it. @param isName the place of its name */
  placeOf(path: Path, isName?: boolean): Place
}

/** As many faults are named; a file with more of them is another file. */
export const maxFaults = 100

const LONGEST = 80

const shown = (value: unknown, path: Path): string => {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'a map'
  const schema = schemaAt(path)
  // Text instead of a list of sections may contain their keys.
  const section = schema && (itemOf(schema) ?? (typeof path.at(-1) === 'number' ? schema : undefined))
  if (section && partsOf(section) && typeof value === 'string') return quoted('***')
  // Redacted before it is cut, because the password in a cut URL can't be recognised.
  const text = (schema && secrets.get(coreOf(schema))?.redact(String(value))) ?? redactedUrls(String(value))
  return typeof value === 'string' ? quoted(text, LONGEST) : safeText(text, LONGEST)
}

/** The sentence for an unknown name, with the nearest known one. */
export const unknownName = (path: Path): string => {
  const nearest = nearestPath(path)
  return `${printPath(path)} is not a known setting${nearest ? `; did you mean ${printPath(nearest)}?` : ''}`
}

/** A place as people write it: `gateway.yaml:3:5`, or the name of a variable. */
export const printPlace = (place: Place): string =>
  'variable' in place
    ? place.variable
    : [place.file, place.line, place.column].filter(part => part !== undefined).join(':')

/** All that is wrong with a source: its form, and each of its values by itself, in its own order. */
export const faultsIn = ({ tree, faults, placeOf }: Source): Fault[] => {
  const { error } = configSchema.safeParse(tree, { jitless: true, reportInput: true })
  const misfits = (error?.issues ?? []).slice(0, maxFaults + 1).flatMap((issue): Fault[] => {
    const { path, message, input } = issue
    if (issue.code === 'unrecognized_keys')
      return issue.keys.slice(0, maxFaults + 1).map(key => {
        const unknown = [...path, key]
        return { at: placeOf(unknown, true), path: unknown, reason: unknownName(unknown) }
      })
    if (issue.code === 'invalid_key')
      return [
        {
          at: placeOf(path, true),
          path,
          reason: `${printPath(path)} must end in ${issue.issues[0]?.message}`,
        },
      ]
    const reason =
      input === undefined
        ? `${printPath(path)} is required: ${message}`
        : `${printPath(path)} must be ${message}, got ${shown(input, path)}`
    return [{ at: placeOf(path), path, reason }]
  })
  return [...faults, ...misfits].sort((one, other) => comparePlaces(one.at, other.at))
}

const comparePlaces = (one: Place, other: Place): number => {
  if ('variable' in one || 'variable' in other) return printPlace(one) < printPlace(other) ? -1 : 1
  return (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0)
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
