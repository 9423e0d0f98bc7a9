// Loads the configuration: defaults, then config files, then variables, later ones winning. The result is one complete frozen
// object or a list of errors. Does not read the process; its environment is an argument.

import { InputError } from '../errors.ts'
import { DEFAULT_NAME } from './default-file.ts'
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
import { frozen } from './frozen.ts'
import { rules } from './rules.ts'
import { type Config, configSchema } from './schema.ts'
import { readDefaultValues } from './shipped-defaults.ts'
import { printPath } from './tree.ts'
import { yamlFiles } from './yaml.ts'

export type ConfigSources = { readonly files: readonly string[]; readonly env: NodeJS.ProcessEnv }

/** A configuration, and where each of its values comes from. */
export type LoadedConfig = {
  readonly config: Config
  /** By printed path, of every setting and of every name in a map of names. */
  readonly origins: Pick<ReadonlyMap<string, Place>, 'get'>
  /** The config files that it was read from, in their order. */
  readonly files: readonly ConfigFile[]
}

/** A config file as it was read. */
export type ConfigFile = {
  readonly name: string
  readonly text: string
  /** How many settings it gives. */
  readonly settings: number
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
  const [first] = named
  const at = first && 'file' in first.at ? { file: first.at.file } : (first?.at ?? { file: DEFAULT_NAME })
  return new ConfigError(
    [...named, { at, reason: `there are more mistakes than these ${maxFaults}` }].map(printed),
  )
}

/** The files that a configuration is read from: the config files, and those of secrets. */
export const filesOf = ({ files, env }: ConfigSources): string[] => [...files, ...secretFilesIn(env)]

/**
 * The configuration of default.yaml, the given files and the given variables, later ones winning; maps are merged,
 * lists replaced. Throws one ConfigError with a line for each fault.
 */
export const loadConfig = (sources: ConfigSources): Config => readConfig(sources).config

/** The same, with the place of every value. */
export const readConfig = (sources: ConfigSources): LoadedConfig => {
  const { loaded, faults } = gather(sources)
  if (!loaded || faults.length > 0) throw new ConfigError(faults.map(printed))
  return loaded
}

/**
 * The valid part of a configuration, over the defaults, and its faults: for a command that needs only a part of it.
 * @throws ConfigError where nothing is valid
 */
export const readRightPart = (
  sources: ConfigSources,
): { loaded: LoadedConfig; faults: readonly (Fault & { printed: ConfigFault })[] } => {
  const { loaded, faults } = gather(sources, true)
  if (!loaded) throw new ConfigError(faults.map(printed))
  return { loaded, faults: faults.map(fault => ({ ...fault, printed: printed(fault) })) }
}

const gather = (
  { files, env }: ConfigSources,
  byEntry = false,
): { loaded: LoadedConfig | undefined; faults: readonly Fault[] } => {
  const defaults = new Set(readDefaultValues())
  const read = files.map(name => ({ name, ...yamlFiles().readYamlFile(name, name, byEntry) }))
  const given = [...read.map(({ reading }) => reading), readEnvironment(env)].flat()
  const usable: Assignment[] = []
  const faults: Fault[] = []
  for (const part of [...defaults, ...given]) {
    // Defaults are checked with the whole alone: what is in the product is in order.
    const found = isFault(part) ? [part] : defaults.has(part) ? [] : faultsOf(part)
    faults.push(...found)
    if (faults.length > maxFaults) throw tooMany(faults)
    if (found.length === 0 && !isFault(part)) usable.push(part)
  }
  const last = lastOfEach(usable)
  const whole = merged(last.values())
  // Parsed once: to compile a parser for each section would take longer.
  const { data: config } = configSchema.safeParse(whole, { jitless: true })
  const unusable = new Set(faults.flatMap(({ setting }) => (setting ? [printPath(setting)] : [])))
  if (config) faults.push(...disagreements(config, last, unusable))
  else if (faults.length === 0)
    faults.push(...faultsOf({ path: [], value: whole, at: () => ({ file: DEFAULT_NAME }) }))
  const isDefault = (assignment: Assignment): boolean => defaults.has(assignment)
  // Those of defaults when asked for: hardly anybody does. The others now, so that no file is kept for them.
  const places = new Map(
    [...last].flatMap(([path, given]) => (isDefault(given) ? [] : [[path, given.at([])] as const])),
  )
  const ofDefaults = new Map([...last].filter(([, given]) => isDefault(given)))
  const origins = { get: (path: string) => places.get(path) ?? ofDefaults.get(path)?.at([]) }
  const loaded = config && {
    config: frozen(config),
    origins,
    files: read.map(({ name, text, reading }) => ({ name, text, settings: reading.length })),
  }
  return { loaded, faults }
}
