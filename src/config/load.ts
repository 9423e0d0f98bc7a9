// Loads the configuration: files, then variables, over the defaults. The result is a frozen object or a list of faults.

import { createRequire } from 'node:module'
import * as z from 'zod'
import { InputError, messageOf } from '../common/errors.ts'
import { constants } from './constants.ts'
import { readEnvironment, readSecret, secretFilesIn } from './environment.ts'
import { type Fault, faultsIn, maxFaults, type Place, printPlace, type Source, type Tree } from './faults.ts'
import { keepAccessShare, type RemovedSetting, takeRemoved } from './removed.ts'
import { rules } from './rules.ts'
import { type Config, configSchema } from './schema.ts'
import { knownPath, namedIn, type Path, partsOf, printPath, schemaAt, settings } from './tree.ts'
import { frozen, put, together } from './values.ts'
import type * as yamlFile from './yaml-file.ts'

// Loaded with the first file, for the library that reads it.
const yamlFiles = (): typeof yamlFile => createRequire(import.meta.url)('./yaml-file.ts')

export type ConfigSources = { readonly files: readonly string[]; readonly env: NodeJS.ProcessEnv }

/** A configuration, and where each of its values comes from. */
export type LoadedConfig = {
  readonly config: Config
  /** By printed path, of every setting that was given, and of every name in a map of names. */
  readonly origins: ReadonlyMap<string, Place>
  /** Settings that no longer exist, which were ignored. */
  readonly removed: readonly RemovedSetting[]
}

/** A fault as programs read it; line and column count from 1. */
export type ConfigFault = {
  readonly file?: string
  readonly line?: number
  readonly column?: number
  readonly variable?: string
  readonly path?: string
  /** Begins with its place. */
  readonly sentence: string
}

/** The faults of a configuration; the message has a line for each, for the operator's own terminal. */
export class ConfigError extends InputError {
  override name = 'ConfigError'
  readonly faults: readonly ConfigFault[]

  /** The message without text of a file, which may be a secret in a wrong place: position and setting of each fault. */
  get withoutText(): string {
    return this.faults.map(faultWithoutText).join('\n')
  }

  constructor(faults: readonly ConfigFault[]) {
    super(faults.map(({ sentence }) => sentence))
    this.faults = faults
  }
}

/** The paths of the settings that are given, and of the names in a map of names. */
const pathsIn = (tree: Tree, above: readonly string[] = []): string[][] =>
  Object.entries(tree).flatMap(([key, value]) => {
    const path = [...above, key]
    const schema = schemaAt(path)
    const isSection = schema && (partsOf(schema) || namedIn(schema))
    return isSection ? pathsIn(value as Tree, path) : [path]
  })

/** The whole setting that a path leads into: a list with a wrong item is not used. */
const wholeOf = (path: Path): Path =>
  settings.find(setting => setting.path.every((key, i) => key === path[i]))?.path ?? path

/** What a source gives, without invalid values. */
const usable = ({ tree }: Source, faults: readonly Fault[]): Tree => {
  for (const { path } of faults) {
    if (path?.length === 0) return {}
    if (path) put(tree as Tree, wholeOf(path).map(String), undefined)
  }
  return tree as Tree
}

const disagreements = (config: Config, origins: LoadedConfig['origins'], unusable: Set<string>): Fault[] =>
  rules.flatMap(({ reads, fault }) => {
    const found = !reads.some(path => unusable.has(path)) && fault(config)
    const isRead = (path: string) => reads.some(read => path === read || path.startsWith(`${read}.`))
    const culprit = [...origins].findLast(([path]) => isRead(path))
    if (!found || !culprit) return []
    return [found].flat().map(reason => ({ at: culprit[1], path: culprit[0].split('.'), reason }))
  })

/** Reads the keys of fallbacks that are in files of their own. */
const readKeyFiles = (
  { fallbacks }: Pick<Config['provider'], 'fallbacks'>,
  origins: LoadedConfig['origins'],
): Fault[] =>
  fallbacks.flatMap((fallback, i) => {
    if (fallback.apiKeyFile === null) return []
    const path = ['provider', 'fallbacks', i, 'apiKey']
    try {
      if (fallback.apiKey !== null)
        throw new InputError(`${printPath(path)} can't be combined with apiKeyFile: keep one of the two`)
      const key = readSecret(fallback.apiKeyFile, path)
      if (!z.safeParse(schemaAt(path) ?? z.never(), key).success)
        throw new InputError(
          `${printPath(path)} in its file must be text without blanks, quotes and control characters`,
        )
      Object.assign(fallback, { apiKey: key })
      return []
    } catch (error) {
      const at = origins.get('provider.fallbacks')
      return at ? [{ at, path, reason: messageOf(error) }] : []
    }
  })

const printed = ({ at, path, reason }: Fault): ConfigFault => ({
  ...at,
  ...(path && path.length > 0 && { path: printPath(path) }),
  sentence: `${printPlace(at)}: ${reason}`,
})

const faultWithoutText = ({ file, line, column, variable, path, sentence }: ConfigFault): string => {
  const place = file ?? variable
  // Of the file as a whole: it can't be read, or is too large.
  if (path === undefined && line === undefined) return sentence
  const position = [place, line, column].filter(part => part !== undefined).join(':')
  const known = path === undefined ? undefined : knownPath(path)
  const what =
    path === undefined
      ? 'the file is no valid YAML'
      : known === undefined
        ? 'the file has an unknown setting'
        : `${known} ${known === path ? 'is invalid' : 'has an invalid setting'}`
  return place === undefined ? what : `${position}: ${what}`
}

const tooMany = (faults: readonly Fault[]): ConfigError => {
  const named = faults.slice(0, maxFaults)
  const first = named[0]?.at ?? { file: 'the configuration' }
  const at = 'file' in first ? { file: first.file } : first
  return new ConfigError(
    [...named, { at, reason: `there are more mistakes than these ${maxFaults}` }].map(printed),
  )
}

/** The files that a configuration is read from: config files, and files of secrets that variables name. */
export const filesOf = ({ files, env }: ConfigSources): string[] => [...files, ...secretFilesIn(env)]

/** The files of keys and certificates that a configuration names; they are read again when they change. */
export const filesNamedIn = ({ provider, server: { tls } }: Config): string[] =>
  [...provider.fallbacks.map(({ apiKeyFile }) => apiKeyFile), tls.cert, tls.key, tls.ticketKey].filter(
    file => file !== null,
  )

/**
 * The defaults, the given files and the given variables, later ones winning; maps are merged, lists replaced. Throws one
 * ConfigError with a line for each fault.
 */
export const loadConfig = (sources: ConfigSources): Config => readConfig(sources).config

/** The same, with the place of every value. */
export const readConfig = ({ files, env }: ConfigSources): LoadedConfig => {
  const faults: Fault[] = []
  const origins = new Map<string, Place>()
  const removed: RemovedSetting[] = []
  let given: Tree = {}
  for (const source of [...files.map(file => yamlFiles().readYamlFile(file)), readEnvironment(env)]) {
    let found = faultsIn(source)
    // A removed setting is a fault as long as it is there.
    if (found.length > 0) {
      removed.push(...takeRemoved(source))
      found = faultsIn(source)
    }
    faults.push(...found)
    if (faults.length > maxFaults) throw tooMany(faults)
    const tree = usable(source, found)
    for (const path of pathsIn(tree)) {
      // A setting that is given again moves to the end, so that the order shows which was given last.
      origins.delete(printPath(path))
      origins.set(printPath(path), source.placeOf(path))
    }
    given = together(given, tree)
  }
  if (removed.length > 0) keepAccessShare(given, origins, removed)
  // Parsed once: to compile a parser for each section would take longer.
  // Each source is valid without its invalid values, and so are all together.
  const parsed = configSchema.parse(given, { jitless: true })
  const unusable = new Set(faults.map(({ path = [] }) => printPath(wholeOf(path))))
  // A key that can't be read says nothing of the rest of its list.
  faults.push(...readKeyFiles(parsed.provider, origins))
  const config = frozen(together(structuredClone(constants), parsed))
  faults.push(...disagreements(config, origins, unusable))
  if (faults.length > 0) throw new ConfigError(faults.map(printed))
  return { config, origins, removed }
}
