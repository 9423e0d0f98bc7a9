// Combinations of settings to compare: a grid of values (`--set cache.freshFor=30m,1h`), and single combinations
// (`--case 'cache.freshFor=1h cache.freshness=run'`).

import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { variableOf } from 'abohawa/config/environment.ts'
import { unknownName } from 'abohawa/config/faults.ts'
import { secrets } from 'abohawa/config/kinds.ts'
import { ConfigError, type ConfigSources, loadConfig } from 'abohawa/config/load.ts'
import type { Config } from 'abohawa/config/schema.ts'
import { allowsNull, coreOf, printPath, type Setting, schemaAt, settings } from 'abohawa/config/tree.ts'
import { valuesOf } from 'abohawa/config/values.ts'

/** One combination of settings, and the configuration that it makes. */
export type SettingCase = {
  /** As `--case` takes it, such as `cache.freshFor=1h cache.freshness=run`; empty without settings. */
  readonly name: string
  /** By path, as in a configuration file: `1h`. */
  readonly values: Readonly<Record<string, string>>
  /** The environment variables that set it. */
  readonly env: Readonly<Record<string, string>>
  readonly config: Config
}

export type GivenSettings = {
  /** Paths with values, such as `cache.freshFor=30m,1h`; every combination is a case. */
  readonly set?: readonly string[] | undefined
  /** Additional combinations. */
  readonly case?: readonly string[] | undefined
}

type Given = { readonly path: string; readonly text: string; readonly written: string }

const maxCases = 1_000

/**
 * The cases in order, without duplicates; one without settings if nothing is given.
 * @throws InputError with a line for each fault; ConfigError for an invalid configuration
 */
export const settingCases = (given: GivenSettings, { files, env }: ConfigSources): SettingCase[] => {
  const configured = loadConfig({ files, env })
  const lists = (given.set ?? []).map(valuesIn)
  const singles = (given.case ?? []).map(assignmentsIn)
  for (const paths of [lists.flatMap(([first]) => first?.path ?? []), ...singles.map(pathsOf)])
    refuseRepeated(paths)
  const combinations = [...(lists.length > 0 || singles.length === 0 ? gridOf(lists) : []), ...singles]
  const faults = new Set<string>()
  const cases = new Map<string, SettingCase>()
  for (const combination of combinations) {
    const added = Object.fromEntries(combination.map(each => [variableOf(each.path.split('.')), each.text]))
    try {
      const config = combination.length === 0 ? configured : loadConfig({ files, env: { ...env, ...added } })
      const shown = new Map(valuesOf(config).map(each => [each.path, each.shown]))
      const values = Object.fromEntries(combination.map(({ path }) => [path, shown.get(path) ?? '']))
      const name = Object.entries(values)
        .map(([path, value]) => `${path}=${value}`)
        .join(' ')
      if (!cases.has(name)) cases.set(name, { name, values, env: added, config })
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      for (const sentence of sentencesOf(error, combination)) faults.add(sentence)
    }
  }
  if (faults.size > 0) throw new InputError([...faults])
  return [...cases.values()]
}

const pathsOf = (combination: readonly Given[]): string[] => combination.map(({ path }) => path)

const gridOf = (lists: readonly (readonly Given[])[]): Given[][] => {
  const size = lists.reduce((product, { length }) => product * length, 1)
  if (size > maxCases)
    throw new InputError(`--set must give at most ${maxCases} combinations of settings, got ${size}`)
  return lists.reduce<Given[][]>(
    (all, list) => all.flatMap(before => list.map(one => [...before, one])),
    [[]],
  )
}

// A list is one value: [a, b].
const betweenValues = /,(?![^[]*\])/

const valuesIn = (argument: string): Given[] => {
  const [path, text] = partsOf('--set', argument, 'a setting and its values, such as cache.freshFor=30m,1h')
  return text
    .split(betweenValues)
    .map(value => assignment(path, value.trim(), `--set ${path}=${value.trim()}`))
}

const assignmentsIn = (argument: string): Given[] => {
  const words = argument.split(/\s+/).filter(word => word !== '')
  const expected = 'settings with a value each, such as "cache.freshFor=1h cache.freshness=run"'
  if (words.length === 0) throw new InputError(`--case must be ${expected}, got ${quoted(argument)}`)
  return words.map(word => {
    const [path, value] = partsOf('--case', word, expected)
    return assignment(path, value, `--case ${path}=${value}`)
  })
}

const partsOf = (option: string, argument: string, expected: string): [path: string, text: string] => {
  const [, path, text] = /^([^=\s]+)=(.*)$/s.exec(argument.trim()) ?? []
  if (path === undefined || text === undefined)
    throw new InputError(`${option} must be ${expected}, got ${quoted(argument)}`)
  return [path, text]
}

const assignment = (path: string, value: string, written: string): Given => {
  const { schema } = settingOf(path)
  // In an environment variable, an empty text is null.
  return { path, text: value === 'null' && allowsNull(schema) ? '' : value, written }
}

const settingOf = (path: string): Pick<Setting, 'schema'> => {
  const keys = path.split('.')
  const schema = schemaAt(keys)
  const found = settings.find(
    ({ path: own, named }) =>
      own.join('.') === path || (named && own.join('.') === keys.slice(0, -1).join('.')),
  )
  if (!schema) throw new InputError(unknownName(keys))
  if (!found || (found.named && found.path.length === keys.length))
    throw new InputError(`${printPath(keys)} is a group of settings; give one, such as ${below(path)}`)
  if (secrets.has(coreOf(schema)))
    throw new InputError(`${printPath(keys)} is secret, and can't be given on a command line`)
  return { schema }
}

const below = (path: string): string => {
  const { path: first = [], named } =
    settings.find(each => `${each.path.join('.')}.`.startsWith(`${path}.`)) ?? {}
  return printPath(named ? [...first, 'free'] : first)
}

const refuseRepeated = (paths: readonly string[]): void => {
  const repeated = paths.find((path, i) => paths.indexOf(path) !== i)
  if (repeated !== undefined)
    throw new InputError(`${repeated} can be given only once, as in --set ${repeated}=…,…`)
}

// Names the argument instead of the environment variable.
const sentencesOf = ({ faults }: ConfigError, combination: readonly Given[]): string[] =>
  faults.map(({ variable, sentence }) => {
    const from = combination.find(({ path }) => variableOf(path.split('.')) === variable)
    return from ? from.written + sentence.slice(variable?.length) : sentence
  })
