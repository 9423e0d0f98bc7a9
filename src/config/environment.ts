// Settings from environment variables, and secrets from the files that variables ending in __FILE name. Text stays text; numbers,
// flags and lists are parsed as YAML.

import * as z from 'zod'
import { InputError, messageOf } from '../common/errors.ts'
import { safeText } from '../common/outside-text.ts'
import { maxFileBytes, readTextFileSync } from '../common/regular-file.ts'
import { type Fault, maxFaults, type Place, type Source, type Tree, unreadable } from './faults.ts'
import { secrets } from './kinds.ts'
import { removedSettings } from './removed.ts'
import {
  allowsNull,
  coreOf,
  itemOf,
  nearestOf,
  type Path,
  partsOf,
  printPath,
  type Setting,
  schemaAt,
  settings,
} from './tree.ts'
import { put, yamlLibrary } from './values.ts'

const PREFIX = 'ABOHAWA_'
const longestName = 80
const IGNORED = 'ABOHAWA_TEST_'
const FILE = '__FILE'
// No setting: where settings are read from.
const CONFIG_FILES = 'ABOHAWA_CONFIG_FILE'
const longestFile = 300
// Those of the programs in docs/api.md and /docs: who tries the API in the shell of the gateway has them.
const ofConsumers: ReadonlySet<string> = new Set(['ABOHAWA_KEY', 'ABOHAWA_URL'])

// Kubernetes sets these in every container of a namespace that has a service called abohawa or abohawa-…
const ofKubernetes: readonly RegExp[] = [
  /_SERVICE_HOST=[0-9a-f.:]+$/i,
  /_SERVICE_PORT(_[A-Z0-9_]+)?=[0-9]+$/,
  /_PORT(_[0-9]+_(TCP|UDP|SCTP))?=(tcp|udp|sctp):\/\//,
  /_PORT_[0-9]+_(TCP|UDP|SCTP)_(PROTO=(tcp|udp|sctp)|PORT=[0-9]+|ADDR=[0-9a-fA-F.:]+)$/,
]

/** The variable of a setting: provider.baseUrl is ABOHAWA_PROVIDER__BASE_URL. */
export const variableOf = (path: readonly string[]): string =>
  PREFIX +
  path
    .map(key =>
      key
        .replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_')
        .replaceAll('-', '_')
        .toUpperCase(),
    )
    .join('__')

const namedSettings = settings.map(({ path, named }) => ({ path, named, name: variableOf(path) }))

const removedPaths = new Map(removedSettings.map(path => [variableOf(path.split('.')), path.split('.')]))

// Compared without what all begin with.
const suggestions = [
  ...namedSettings.map(({ name, named }) => ({
    near: name.slice(PREFIX.length),
    shown: name + (named ? '__<NAME>' : ''),
  })),
  ...['CONFIG', 'CONFIG_FILE'].map(near => ({ near, shown: CONFIG_FILES })),
]

const pathOf = (variable: string): readonly string[] | undefined => {
  for (const { path, named, name } of namedSettings) {
    if (!named && variable === name) return path
    if (named && variable.startsWith(`${name}__`))
      return [
        ...path,
        variable
          .slice(name.length + 2)
          .toLowerCase()
          .replaceAll('_', '-'),
      ]
  }
  return undefined
}

const asYaml = (text: string): unknown => {
  // The usual ones, which YAML would read in the same way.
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^[0-9]{1,15}$/.test(text)) return Number(text)
  try {
    return yamlLibrary().parse(text, { logLevel: 'error' })
  } catch {
    return text
  }
}

// `[::1]:7001` is an address and its port, and begins as a list of YAML does.
const asList = (text: string): unknown =>
  /^\s*\[(?![0-9a-f:.]+\]:)/i.test(text)
    ? asYaml(text)
    : text
        .split(',')
        .map(item => item.trim())
        .filter(item => item !== '')

const meaningOf = (text: string, schema: z.core.$ZodType): unknown => {
  const core = coreOf(schema)
  const item = itemOf(schema)
  if (item) return text !== '' && partsOf(item) ? asYaml(text) : asList(text)
  if (text === '') return allowsNull(schema) ? null : text
  const isParsed = [z.ZodNumber, z.ZodBoolean, z.ZodUnion, z.ZodObject].some(kind => core instanceof kind)
  return isParsed ? asYaml(text) : text
}

/** The setting that a variable ending in __FILE names the file of; undefined for other variables. */
const secretOf = (variable: string): Setting | undefined =>
  variable.endsWith(FILE)
    ? settings.find(({ path, schema }) => secrets.has(coreOf(schema)) && variable === variableOf(path) + FILE)
    : undefined

/** The secret in a file, without a line break at its end. @throws InputError */
export const readSecret = (file: string, path: Path): string => {
  try {
    // Editors and `echo` end a file with a line break.
    return readTextFileSync(file, maxFileBytes.config).replace(/\r?\n$/, '')
  } catch (thrown) {
    const name = safeText(file, longestFile)
    throw new InputError(
      `${printPath(path)} is to be read from "${name}", which can't be read: ${unreadable(thrown)}`,
    )
  }
}

/** The config files of a command: those given, else those that ABOHAWA_CONFIG_FILE names, with colons between. */
export const configFilesOf = (given: readonly string[], env: NodeJS.ProcessEnv): readonly string[] =>
  given.length > 0 ? given : (env[CONFIG_FILES] ?? '').split(':').filter(file => file !== '')

/** The files that secrets are read from: those that variables ending in __FILE name. */
export const secretFilesIn = (env: NodeJS.ProcessEnv): string[] =>
  Object.entries(env).flatMap(([variable, file]) => (file && secretOf(variable) ? [file] : []))

/**
 * Reads the variables that start with ABOHAWA_, except ABOHAWA_CONFIG_FILE, ABOHAWA_TEST_… and the variables of Kubernetes and of
 * consumers' programs.
 */
export const readEnvironment = (env: NodeJS.ProcessEnv): Source => {
  const faults: Fault[] = []
  const tree: Tree = {}
  const places = new Map<string, Place>()
  for (const [variable, text] of Object.entries(env)) {
    // More than are named cost time and help nobody.
    if (faults.length > maxFaults || text === undefined || !variable.startsWith(PREFIX)) continue
    if (variable.startsWith(IGNORED) || variable === CONFIG_FILES || ofConsumers.has(variable)) continue
    const secret = secretOf(variable)
    const removed = removedPaths.get(variable)
    const path = secret?.path ?? pathOf(variable)
    const schema = path && schemaAt(path)
    if (!schema && ofKubernetes.some(form => form.test(`${variable}=${text}`))) continue
    const at = { variable: safeText(variable, longestName) }
    if (removed) {
      put(tree, removed, asYaml(text))
      places.set(printPath(removed), at)
      continue
    }
    try {
      if (!schema) {
        const nearest = nearestOf(variable.slice(PREFIX.length), suggestions, ({ near }) => near)
        throw new InputError(`this variable is not known${nearest ? `; did you mean ${nearest.shown}?` : ''}`)
      }
      if (secret && env[variableOf(path)] !== undefined)
        throw new InputError(`${printPath(path)} is given by ${variableOf(path)} too; keep one of the two`)
      put(tree, path, secret ? readSecret(text, path) : meaningOf(text, schema))
      places.set(printPath(path), at)
    } catch (thrown) {
      faults.push({ at, reason: messageOf(thrown), ...(path && { path }) })
    }
  }
  const placeOf = (path: Path): Place =>
    places.get(printPath(path)) ?? (path.length > 0 ? placeOf(path.slice(0, -1)) : { variable: PREFIX })
  return { tree, faults, placeOf }
}
