// `abohawa completion …`: prints a script that completes commands, options, files and fixed words in a shell. Reads what there is from
// the commands themselves; what each shell needs is in completion-scripts.ts.

import { Argument, type Command, type Option } from 'commander'
import { locationTypes } from '../catalogue/location-schema.ts'
import { knownPaths } from '../config/explain.ts'
import { loadConfig } from '../config/load.ts'
import { type CompletedCommand, type CompletedValues, scriptOf, shells } from './completion-scripts.ts'
import type { AddTopCommand } from './terminal.ts'

export const addCompletionCommand: AddTopCommand = (program, add, summary) =>
  add(program, 'completion', {
    summary,
    example: 'completion bash > ~/.local/share/bash-completion/completions/abohawa',
    setUp: command =>
      void command.addArgument(new Argument('<shell>', 'the shell to write for').choices(shells)),
    run: async (terminal, _options, name) => {
      const shell = shells.find(each => each === name) ?? 'bash'
      const script = scriptOf(shell, commandsIn(program))
      if (terminal.json) terminal.show({ shell, script }, '')
      else terminal.write(script)
      return 0
    },
  })

/** Every command of the program with the words that may follow it, parents first. */
const commandsIn = (program: Command): CompletedCommand[] => {
  // Those of the defaults: a script that is read at the start of a shell must not fail for a configuration.
  const tiers = Object.keys(loadConfig({ files: [], env: {} }).quota.tiers)
  const wordsOf: Readonly<Record<string, readonly string[]>> = {
    target: ['all', ...locationTypes.map(type => `${type}/`)],
    tier: tiers,
    setting: knownPaths(),
  }
  const valuesOf = (name: string, placeholder: string, choices: readonly string[]): CompletedValues => {
    if (choices.length > 0) return { words: choices }
    if (/\b(files?|path|csv|before|after)\b/.test(placeholder)) return 'files'
    return { words: wordsOf[name] ?? [] }
  }
  const optionOf = (option: Option) => ({
    flags: [option.short, option.long].filter(flag => flag !== undefined && flag !== null),
    summary: option.description,
    values:
      option.required || option.optional
        ? valuesOf(
            option.long?.replace(/^--/, '') ?? '',
            option.flags.replace(/^[^<[]*/, ''),
            option.argChoices ?? [],
          )
        : undefined,
  })
  const walk = (command: Command, path: readonly string[]): CompletedCommand[] => [
    {
      path,
      commands: command.commands.map(each => ({ name: each.name(), summary: each.summary() })),
      options: command.createHelp().visibleOptions(command).map(optionOf),
      // The first argument: the words of the others are ids.
      argument: command.registeredArguments
        .map(argument => valuesOf(argument.name(), argument.name(), argument.argChoices ?? []))
        .find(values => values === 'files' || values.words.length > 0),
    },
    ...command.commands.flatMap(each => walk(each, [...path, each.name()])),
  ]
  return walk(program, [])
}
