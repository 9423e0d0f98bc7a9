// `abohawa config …`: checks and prints the configuration, and explains a setting.

import { parse } from 'yaml'
import { factsText, indented, tableOf } from '../../command-line/tables.ts'
import type { AddTopCommand } from '../../command-line/terminal.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { shortened } from '../../common/outside-text.ts'
import { configFilesOf } from '../../config/environment.ts'
import { type ExplainedSetting, explainConfig } from '../../config/explain.ts'
import { printPlace, unknownName } from '../../config/faults.ts'
import { checkFiles } from '../../config/file-check.ts'
import { ConfigError, readConfig } from '../../config/load.ts'
import { describeConfig } from '../../config/values.ts'

export const addConfigCommands: AddTopCommand = (program, add, summary) => {
  const config = program.command('config').summary(summary).description('The configuration.')

  add<{ files: boolean }>(config, 'check', {
    summary: 'check the configuration and its files, and report every fault',
    example: 'config check config/production.yaml',
    setUp: command =>
      void command
        .argument('[files...]', 'configuration files; later files win')
        .option('--no-files', 'skip the files it names: certificates, catalogue, store'),
    run: async (terminal, options, ...files) => {
      const { given, env, json, show } = terminal
      let removed: readonly string[] = []
      try {
        const loaded = readConfig({ files: configFilesOf([...given, ...files], env), env })
        removed = loaded.removed.map(
          ({ path, at, renamedTo }) =>
            `${printPlace(at)}: ${path} ${renamedTo === undefined ? 'is removed and ignored' : `is called ${renamedTo} now`}`,
        )
        const faults = options.files
          ? await checkFiles(loaded.config, loaded.origins, terminal.clock.now())
          : []
        if (faults.length > 0) throw new ConfigError(faults)
      } catch (error) {
        const faults = error instanceof ConfigError ? error.faults : [{ sentence: messageOf(error) }]
        // With --json the faults are on standard output too; standard error has the same sentences.
        if (json) show({ ok: false, faults }, '')
        throw error
      }
      show({ ok: true, faults: [], removed }, ['The configuration is right.', ...removed].join('\n'))
    },
  })

  add<{ changed?: boolean; why?: string }>(config, 'print', {
    summary: 'print the effective configuration with secrets hidden',
    example: 'config print --changed --config config/production.yaml',
    setUp: command =>
      void command
        .option('--changed', 'print only values that differ from the defaults, with their origin')
        .option(
          '--why <setting>',
          'explain a setting or a section: purpose, allowed values, default, value, origin, variable, live or not',
        ),
    run: async (terminal, { changed = false, why }) => {
      const loaded = readConfig(terminal.sources)
      if (!changed && why === undefined) {
        const text = describeConfig(loaded.config)
        terminal.show(parse(text), text.trimEnd())
        return 0
      }
      const all = explainConfig(loaded)
      const meant = why === undefined ? all : partOf(all, why)
      const chosen = changed ? meant.filter(({ value, default: usual }) => value !== usual) : meant
      terminal.show(
        chosen.map(asValues),
        chosen.length === 0
          ? 'Nothing differs from the defaults.'
          : why === undefined
            ? changesTable(chosen)
            : chosen.map(explanation).join('\n\n'),
      )
    },
  })
}

/** The settings at or below a path. @throws InputError for an unknown one */
const partOf = (all: readonly ExplainedSetting[], path: string): ExplainedSetting[] => {
  const part = all.filter(each => each.path === path || each.path.startsWith(`${path}.`))
  if (part.length === 0) throw new InputError(unknownName(path.split('.')))
  return part
}

const asValues = ({ value, default: usual, except, ...rest }: ExplainedSetting) => ({
  ...rest,
  value: parse(value),
  default: usual === undefined ? null : parse(usual),
  except: except ?? null,
})

const effectText = ({ effect, except }: ExplainedSetting): string =>
  effect === 'restart' ? 'needs a restart' : except ? `live, except ${except}` : 'live'

const changesTable = (all: readonly ExplainedSetting[]): string =>
  tableOf(
    ['setting', 'value', 'default', 'from', 'a change'],
    all.map(each => {
      const [value, usual] = [each.value, each.default ?? '–'].map(text => shortened(text, 60))
      return [each.path, value as string, usual as string, each.origin, effectText(each)]
    }),
  )

const explanation = (setting: ExplainedSetting): string => {
  const { path, value, default: usual, origin, variable, allowed, text } = setting
  const facts = factsText([
    ['allowed', allowed],
    ['default', usual ?? 'none'],
    ['value', value],
    ['from', origin],
    ['variable', variable],
    ['a change', effectText(setting)],
  ])
  return `${path}\n${indented(text)}\n${facts}`
}
