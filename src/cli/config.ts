// `abohawa config …`: checks, prints, compares and explains the configuration, and prints its JSON Schema for editors.

import type { Command } from 'commander'
import { parse } from 'yaml'
import { describeConfig } from '../config/describe.ts'
import { type ExplainedSetting, explainConfig, explainPath, nearestKnown } from '../config/explain.ts'
import { configJsonSchemaText } from '../config/json-schema.ts'
import { ConfigError, type ConfigFault, loadConfig, readConfig } from '../config/load.ts'
import { changesBetween } from '../config/values.ts'
import { InputError, messageOf } from '../errors.ts'
import { checkFiles } from '../gateway/file-check.ts'
import { type AddCommand, factsText, indented, type Terminal, tableOf } from './terminal.ts'

export const addConfigCommands = (program: Command, add: AddCommand): void => {
  const config = program
    .command('config')
    .summary('check, print, compare and explain the configuration')
    .description('The configuration.')

  add<{ files: boolean; connect?: boolean }>(config, 'check', {
    summary: 'check the configuration, and the files it names, and report every fault',
    example: 'config check config/production.yaml --connect',
    setUp: command =>
      void command
        .argument('[files...]', 'configuration files, like --config; the later one wins')
        .option('--no-files', 'do not look at the files it names: certificates, catalogue, store')
        .option(
          '--connect',
          'also connect to Redis, and load the weather of one point from the provider, which weighs what a cell weighs',
        ),
    run: async (terminal, options, ...files) => {
      try {
        await check(terminal, options, files)
      } catch (error) {
        // With --json the faults are on standard output too; standard error has the same sentences.
        if (terminal.json) terminal.show({ ok: false, faults: faultsIn(error) }, '')
        throw error
      }
      terminal.show({ ok: true, faults: [] }, 'The configuration is right.')
      return 0
    },
  })

  add<{ origin?: boolean }>(config, 'print', {
    summary: 'print the effective configuration (defaults, files, environment) with secrets hidden',
    example: 'config print --origin --config config/production.yaml',
    setUp: command =>
      void command.option(
        '--origin',
        'each value with its default, where it was given, and whether a change needs a restart',
      ),
    run: async (terminal, { origin = false }) => {
      const loaded = readConfig(terminal.sources)
      if (origin) {
        const all = explainConfig(loaded)
        terminal.show(all.map(withOrigin), originTable(all))
      } else {
        const text = describeConfig(loaded.config)
        terminal.show(parse(text), text.trimEnd())
      }
      return 0
    },
  })

  add(config, 'diff', {
    summary: 'compare two configuration files over the defaults; variables are left aside',
    example: 'config diff config/production.yaml config/load-test.yaml',
    setUp: command => void command.argument('<before>', 'a file').argument('<after>', 'another file'),
    run: async (terminal, _, before = '', after = '') => {
      const [one, other] = [before, after].map(file => loadConfig({ files: [file], env: {} }))
      const changes = one && other ? changesBetween(one, other) : []
      const rows = changes.map(change => [
        change.path,
        short(change.before ?? '–'),
        short(change.after ?? '–'),
        change.effect,
      ])
      terminal.show(
        changes.map(change => ({
          ...change,
          before: parse(change.before ?? 'null'),
          after: parse(change.after ?? 'null'),
        })),
        rows.length > 0
          ? tableOf(['setting', before, after, 'takes effect'], rows)
          : 'Both files mean the same.',
      )
      return 0
    },
  })

  add(config, 'explain', {
    summary:
      'explain a setting: its purpose, values, default, origin, variable, and whether it needs a restart',
    example: 'config explain cache.freshFor',
    setUp: command => void command.argument('<path>', 'a setting such as cache.freshFor, or a section'),
    run: async (terminal, _, path = '') => {
      const found = explainPath(readConfig(terminal.sources), path)
      if (found.length === 0)
        throw new InputError(`"${path}" is not a known setting; did you mean ${nearestKnown(path)}?`)
      terminal.show(
        found.map(each => ({ ...each, ...withOrigin(each) })),
        found.map(explanation).join('\n\n'),
      )
      return 0
    },
  })

  add(config, 'schema', {
    summary: 'print the JSON Schema of a configuration file',
    example: 'config schema > config/schema.json',
    run: async () => {
      process.stdout.write(configJsonSchemaText())
      return 0
    },
  })
}

const check = async (
  { sources, clock }: Terminal,
  { files: withFiles, connect = false }: { files: boolean; connect?: boolean },
  files: readonly string[],
): Promise<void> => {
  const { config, origins } = readConfig({ ...sources, files: [...sources.files, ...files] })
  const faults: ConfigFault[] = withFiles ? await checkFiles(config, origins) : []
  if (connect) {
    // Imported here, so that a check without it starts without the clients.
    const { checkConnections } = await import('../gateway/connection-check.ts')
    faults.push(...(await checkConnections(config, origins, clock)))
  }
  if (faults.length > 0) throw new ConfigError(faults)
}

const faultsIn = (error: unknown): readonly ConfigFault[] =>
  error instanceof ConfigError ? error.faults : [{ sentence: messageOf(error) }]

const effectText = ({ effect, except }: ExplainedSetting): string =>
  effect === 'restart' ? 'needs a restart' : except ? `live, except ${except}` : 'live'

const withOrigin = ({ path, value, default: usual, origin, effect }: ExplainedSetting) => ({
  path,
  value: parse(value),
  default: usual === undefined ? null : parse(usual),
  origin,
  effect,
})

const originTable = (all: readonly ExplainedSetting[]): string =>
  tableOf(
    ['setting', 'value', 'default', 'from', 'a change is'],
    all.map(({ path, value, default: usual, origin, effect }) => [
      path,
      short(value),
      usual === value ? '=' : short(usual ?? '–'),
      origin,
      effect,
    ]),
  )

const longest = 60
const short = (text: string): string => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text)

const explanation = (setting: ExplainedSetting): string => {
  const { path, value, default: usual, origin, variable, allowed, text } = setting
  return [
    path,
    indented(text),
    factsText([
      ['allowed', allowed],
      ['default', usual ?? 'none'],
      ['value', value],
      ['from', origin],
      ['variable', variable],
      ['a change', effectText(setting)],
    ]),
  ].join('\n')
}
