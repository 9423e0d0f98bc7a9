// Loads the configuration: config files, then variables, later ones winning, over the defaults of the schema. The result is one
// complete frozen object or a list of errors. Does not read the process; its environment is an argument.

import { InputError } from '../common/errors.ts'
import { constants } from './constants.ts'
import { readEnvironment, secretFilesIn } from './environment.ts'
import {
  type Assignment,
  type Fault,
  faultsOf,
  isFault,
  maxFaults,
  type Place,
  printPlace,
} from './faults.ts'
import { rules } from './rules.ts'
import { type Config, configSchema } from './schema.ts'
import { printPath } from './tree.ts'
import { frozen, together } from './values.ts'
import { yamlFiles } from './yaml.ts'

export type ConfigSources = { readonly files: readonly string[]; readonly env: NodeJS.ProcessEnv }

/** A configuration, and where each of its values comes from. */
export type LoadedConfig = {
  readonly config: Config
  /** By printed path, of every setting that was given, and of every name in a map of names. */
  readonly origins: ReadonlyMap<string, Place>
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

/** The faults of a configuration; the message has a line for each. */
export class ConfigError extends InputError {
  override name = 'ConfigError'
  readonly faults: readonly ConfigFault[]

  constructor(faults: readonly ConfigFault[]) {
    super(faults.map(({ sentence }) => sentence))
    this.faults = faults
  }
}

type Settings = { [key: string]: unknown }

const merged = (assignments: Iterable<Assignment>): Settings => {
  const all: Settings = {}
  for (const { path, value } of assignments) {
    let section = all
    for (const key of path.slice(0, -1)) {
      const below = (section[key] ?? {}) as Settings
      section[key] = below
      section = below
    }
    section[path.at(-1) ?? ''] = value
  }
  return all
}

// A setting that is given again moves to the end, so that the order shows which was given last.
const lastOfEach = (given: readonly Assignment[]): Map<string, Assignment> => {
  const last = new Map<string, Assignment>()
  for (const assignment of given) {
    last.delete(printPath(assignment.path))
    last.set(printPath(assignment.path), assignment)
  }
  return last
}

const disagreements = (config: Config, last: Map<string, Assignment>, unusable: Set<string>): Fault[] =>
  rules.flatMap(({ reads, fault }) => {
    const sentence = !reads.some(path => unusable.has(path)) && fault(config)
    const culprit = [...last].findLast(([path]) => reads.includes(path))?.[1]
    return sentence && culprit ? [{ at: culprit.at([]), path: culprit.path, reason: sentence }] : []
  })

const printed = ({ at, path, reason }: Fault): ConfigFault => ({
  ...at,
  ...(path && path.length > 0 && { path: printPath(path) }),
  sentence: `${printPlace(at)}: ${reason}`,
})

const tooMany = (faults: readonly Fault[]): ConfigError => {
  const named = faults.slice(0, maxFaults)
  const first = named[0]?.at ?? { file: 'the configuration' }
  const at = 'file' in first ? { file: first.file } : first
  return new ConfigError(
    [...named, { at, reason: `there are more mistakes than these ${maxFaults}` }].map(printed),
  )
}

/** The files that a configuration is read from: the config files, and those of secrets. */
export const filesOf = ({ files, env }: ConfigSources): string[] => [...files, ...secretFilesIn(env)]

/**
 * The defaults, the given files and the given variables, later ones winning; maps are merged, lists replaced. Throws one
 * ConfigError with a line for each fault.
 */
export const loadConfig = (sources: ConfigSources): Config => readConfig(sources).config

/** The same, with the place of every value. */
export const readConfig = ({ files, env }: ConfigSources): LoadedConfig => {
  const given = [...files.map(file => yamlFiles().readYamlFile(file)), readEnvironment(env)].flat()
  const usable: Assignment[] = []
  const faults: Fault[] = []
  for (const part of given) {
    const found = isFault(part) ? [part] : faultsOf(part)
    faults.push(...found)
    if (faults.length > maxFaults) throw tooMany(faults)
    if (found.length === 0 && !isFault(part)) usable.push(part)
  }
  const last = lastOfEach(usable)
  // Parsed once: to compile a parser for each section would take longer. Each part fits by itself, and so do all of them.
  const parsed = configSchema.parse(merged(last.values()), { jitless: true })
  const config = frozen(together(structuredClone(constants), parsed))
  const unusable = new Set(faults.flatMap(({ setting }) => (setting ? [printPath(setting)] : [])))
  faults.push(...disagreements(config, last, unusable))
  if (faults.length > 0) throw new ConfigError(faults.map(printed))
  return { config, origins: new Map([...last].map(([path, part]) => [path, part.at([])])) }
}
