// Reads settings from environment variables, named after their paths, and secrets from the files that variables ending in
// __FILE name. Text is taken as it is, so that a key of digits stays text; numbers, flags and lists are parsed as YAML.
// Variables of other programs are ignored, those that Kubernetes makes for a service of our name too.

import * as z from 'zod'
import { safeText } from '../common/outside-text.ts'
import { maxFileBytes, readTextFileSync } from '../common/regular-file.ts'
import {
  type Assignment,
  type Fault,
  isFault,
  maxFaults,
  type Reading,
  unreadable,
  unusableName,
} from './faults.ts'
import { secrets } from './kinds.ts'
import { allowsNull, coreOf, nearestOf, printPath, type Setting, schemaAt, settings } from './tree.ts'
import { yamlLibrary } from './yaml.ts'

const PREFIX = 'ABOHAWA_'
const longestName = 80
const IGNORED = 'ABOHAWA_TEST_'
const FILE = '__FILE'
// No setting: where settings are read from.
const CONFIG_FILES = 'ABOHAWA_CONFIG_FILE'
const longestFile = 300

// Kubernetes sets these in every container of a namespace that has a service called abohawa or abohawa-…
const ofKubernetes: ReadonlyArray<readonly [name: RegExp, value: RegExp]> = [
  [/_SERVICE_HOST$/, /^[0-9a-f.:]+$/i],
  [/_SERVICE_PORT(_[A-Z0-9_]+)?$/, /^[0-9]+$/],
  [/_PORT(_[0-9]+_(TCP|UDP|SCTP))?$/, /^(tcp|udp|sctp):\/\//],
  [/_PORT_[0-9]+_(TCP|UDP|SCTP)_PROTO$/, /^(tcp|udp|sctp)$/],
  [/_PORT_[0-9]+_(TCP|UDP|SCTP)_PORT$/, /^[0-9]+$/],
  [/_PORT_[0-9]+_(TCP|UDP|SCTP)_ADDR$/, /^[0-9a-f.:]+$/i],
]

const isOfKubernetes = (variable: string, text: string): boolean =>
  pathOf(variable) === undefined &&
  ofKubernetes.some(([name, value]) => name.test(variable) && value.test(text))

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

const shownVariable = ({ path, named }: Setting): string => variableOf(path) + (named ? '__<NAME>' : '')

const namedSettings = settings.map(({ path, named }) => ({ path, named, name: variableOf(path) }))

// Compared without what all begin with.
const suggestions = [
  ...settings.map(setting => ({
    near: variableOf(setting.path).slice(PREFIX.length),
    shown: shownVariable(setting),
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
  if (core instanceof z.ZodArray) return asList(text)
  if (text === '') return allowsNull(schema) ? null : text
  return core instanceof z.ZodNumber || core instanceof z.ZodBoolean ? asYaml(text) : text
}

/** The setting that a variable ending in __FILE names the file of; undefined for other variables. */
const secretOf = (variable: string): Setting | undefined =>
  variable.endsWith(FILE)
    ? settings.find(({ path, schema }) => secrets.has(coreOf(schema)) && variable === variableOf(path) + FILE)
    : undefined

const readSecret = (variable: string, { path }: Setting, env: NodeJS.ProcessEnv): Assignment | Fault => {
  const at = { variable }
  const file = env[variable] ?? ''
  if (env[variableOf(path)] !== undefined)
    return {
      at,
      path,
      reason: `${printPath(path)} is given by ${variableOf(path)} too; keep one of the two`,
      setting: path,
    }
  try {
    // Editors and `echo` end a file with a line break.
    return { path, value: readTextFileSync(file, maxFileBytes.config).replace(/\r?\n$/, ''), at: () => at }
  } catch (thrown) {
    const name = safeText(file, longestFile)
    return {
      at,
      path,
      reason: `${printPath(path)} is to be read from "${name}", which cannot be read: ${unreadable(thrown)}`,
      setting: path,
    }
  }
}

const read = (variable: string, text: string): Assignment | Fault => {
  const at = { variable: safeText(variable, longestName) }
  const path = pathOf(variable)
  const schema = path && schemaAt(path)
  if (path && schema) {
    const reason = unusableName(path)
    return reason === undefined
      ? { path, value: meaningOf(text, schema), at: () => at }
      : { at, reason, path }
  }
  const nearest = nearestOf(variable.slice(PREFIX.length), suggestions, ({ near }) => near)
  const suggestion = nearest ? `; did you mean ${nearest.shown}?` : ''
  return { at, reason: `this variable is not known${suggestion}` }
}

/** The config files of a command: those given, else those that ABOHAWA_CONFIG_FILE names, with colons between. */
export const configFilesOf = (given: readonly string[], env: NodeJS.ProcessEnv): readonly string[] =>
  given.length > 0 ? given : (env[CONFIG_FILES] ?? '').split(':').filter(file => file !== '')

/** The files that secrets are read from: those that variables ending in __FILE name. */
export const secretFilesIn = (env: NodeJS.ProcessEnv): string[] =>
  Object.entries(env).flatMap(([variable, file]) => (file && secretOf(variable) ? [file] : []))

/**
 * Reads the variables that start with ABOHAWA_, except ABOHAWA_CONFIG_FILE, those that start with ABOHAWA_TEST_ and those of
 * Kubernetes.
 */
export const readEnvironment = (env: NodeJS.ProcessEnv): Reading => {
  let faults = 0
  return Object.entries(env).flatMap(([variable, text]) => {
    // More than are named cost time and help nobody.
    if (faults > maxFaults || text === undefined || !variable.startsWith(PREFIX)) return []
    if (variable.startsWith(IGNORED) || variable === CONFIG_FILES) return []
    const secret = secretOf(variable)
    if (!secret && isOfKubernetes(variable, text)) return []
    const part = secret ? readSecret(variable, secret, env) : read(variable, text)
    if (isFault(part)) faults += 1
    return [part]
  })
}
