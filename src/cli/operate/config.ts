// `abohawa config …`: checks, prints, compares and explains the configuration, and prints its JSON Schema for editors.

import { parse } from 'yaml'
import { configFilesOf } from '../../config/environment.ts'
import { type ExplainedSetting, explainConfig, explainPath, nearestKnown } from '../../config/explain.ts'
import { checkFiles } from '../../config/file-check.ts'
import { configJsonSchemaText } from '../../config/json-schema.ts'
import { ConfigError, type ConfigFault, loadConfig, readConfig } from '../../config/load.ts'
import { changesBetween, describeConfig } from '../../config/values.ts'
import type { Reached } from '../../doctor/connection-check.ts'
import { InputError, messageOf } from '../../errors.ts'
import { type AddTopCommand, factsText, indented, type Terminal, tableOf } from '../terminal.ts'

export const addConfigCommands: AddTopCommand = (program, add, summary) => {
  const config = program.command('config').summary(summary).description('The configuration.')

  add<{ files: boolean; connect?: boolean }>(config, 'check', {
    summary: 'check the configuration, and the files it names, and report every fault',
    example: 'config check config/production.yaml --connect',
    setUp: command =>
      void command
        .argument('[files...]', 'configuration files, like --config; the later one wins')
        .option('--no-files', 'do not check the files it names: certificates, catalogue, store')
        .option(
          '--connect',
          'also connect to Redis, and load the weather of one point from the provider, which weighs as much as a cell',
        ),
    run: async (terminal, options, ...files) => {
      // Kept beside the faults: where one of two is away, the other is known to answer.
      const reached: Reached[] = []
      const shown = () => (options.connect ? { reached } : {})
      try {
        await check(terminal, options, files, reached)
      } catch (error) {
        // With --json the faults are on standard output too; standard error has the same sentences.
        if (terminal.json) terminal.show({ ok: false, faults: faultsIn(error), ...shown() }, '')
        else if (reached.length > 0) terminal.show(reached, reachedText(reached))
        throw error
      }
      terminal.show(
        { ok: true, faults: [], ...shown() },
        ['The configuration is right.', ...(reached.length > 0 ? [reachedText(reached)] : [])].join('\n'),
      )
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
    summary: 'compare two configuration files over the defaults, without variables',
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
    setUp: command => void command.argument('<setting>', 'a setting such as cache.freshFor, or a section'),
    run: async (terminal, _, path = '') => {
      const found = explainPath(readConfig(terminal.sources), path)
      if (found.length === 0) throw new InputError(`"${path}" is not a known setting${suggestion(path)}`)
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

const suggestion = (path: string): string => {
  const nearest = nearestKnown(path)
  return nearest === undefined ? '; config print lists all of them' : `; did you mean ${nearest}?`
}

const check = async (
  { given, env, clock }: Terminal,
  { files: withFiles, connect = false }: { files: boolean; connect?: boolean },
  files: readonly string[],
  reached: Reached[],
): Promise<void> => {
  const { config, origins } = readConfig({ files: configFilesOf([...given, ...files], env), env })
  const faults: ConfigFault[] = withFiles ? await checkFiles(config, origins) : []
  if (connect) {
    // Imported here, so that a check without it starts without the clients.
    const { checkConnections } = await import('../../doctor/connection-check.ts')
    const found = await checkConnections(config, origins, clock)
    faults.push(...found.faults)
    reached.push(...found.reached)
  }
  if (faults.length > 0) throw new ConfigError(faults)
}

const reachedText = (reached: readonly Reached[]): string =>
  factsText(reached.map(({ path, url, what, latencyMs }) => [path, `${url}: ${what}, ${latencyMs} ms`]))

const faultsIn = (error: unknown): readonly ConfigFault[] =>
  error instanceof ConfigError ? error.faults : [{ sentence: messageOf(error) }]

const effectText = ({ effect, except }: ExplainedSetting): string =>
  effect === 'restart' ? 'needs a restart' : except ? `live, except ${except}` : 'live'

const withOrigin = ({ path, value, default: usual, origin, effect, except }: ExplainedSetting) => ({
  path,
  value: parse(value),
  default: usual === undefined ? null : parse(usual),
  origin,
  effect,
  except: except ?? null,
})

const originTable = (all: readonly ExplainedSetting[]): string =>
  tableOf(
    ['setting', 'value', 'default', 'from', 'a change is'],
    all.map(({ path, value, default: usual, origin, effect, except }) => [
      path,
      short(value),
      usual === value ? '=' : short(usual ?? '–'),
      origin,
      except === undefined ? effect : `${effect}, except ${except}`,
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
