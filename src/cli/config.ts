// `abohawa config …`: checks and prints the configuration, and prints its JSON Schema for editors.

import type { Command } from 'commander'
import { parse } from 'yaml'
import { describeConfig } from '../config/describe.ts'
import { configJsonSchemaText } from '../config/json-schema.ts'
import { messageOf } from '../errors.ts'
import type { AddCommand } from './terminal.ts'

export const addConfigCommands = (program: Command, add: AddCommand): void => {
  const config = program
    .command('config')
    .summary('check and print the configuration')
    .description('The configuration.')

  add(config, 'check', {
    summary: 'check the configuration and report every fault',
    example: 'config check --config config/production.yaml',
    run: async terminal => {
      try {
        terminal.config()
      } catch (error) {
        // With --json the faults are on standard output too; standard error has the same sentences.
        if (terminal.json) terminal.show({ ok: false, faults: messageOf(error).split('\n') }, '')
        throw error
      }
      terminal.show({ ok: true, faults: [] }, 'The configuration is right.')
      return 0
    },
  })

  add(config, 'print', {
    summary: 'print the effective configuration (defaults, files, environment) with secrets hidden',
    example: 'config print --config config/production.yaml',
    run: async terminal => {
      const text = describeConfig(terminal.config())
      terminal.show(parse(text), text.trimEnd())
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
