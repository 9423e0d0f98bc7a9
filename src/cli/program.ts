// The table of commands, and what becomes of the one that was called: 0 done, 1 failed, 2 misused. Every error is one
// plain sentence on standard error; a stack is shown only for what nobody foresaw.

import { Command, CommanderError } from 'commander'
import packageFile from '../../package.json' with { type: 'json' }
import { AbohawaError, messageOf } from '../errors.ts'
import { withoutKeys } from '../key-redaction.ts'
import { printableLines, safeText } from '../outside-text.ts'
import { redactedUrls } from '../redacted-url.ts'
import { addCacheCommands } from './cache.ts'
import { addCatalogueCommands } from './catalogue.ts'
import { addConfigCommands } from './config.ts'
import { addDemoCommand } from './demo.ts'
import { addKeyCommands } from './keys.ts'
import { addProviderCommand } from './provider.ts'
import { addServeCommand } from './serve.ts'
import { addStoreCommands } from './store.ts'
import { addSubscriberCommands } from './subscribers.ts'
import { createAddCommand, Misuse, type Surroundings } from './terminal.ts'

const { version } = packageFile

/** Runs one command line. Resolves to the exit code and never rejects. */
export const run = async (argv: readonly string[], surroundings: Surroundings): Promise<number> => {
  let exitCode = 0
  const program = new Command('abohawa')
    .description('A weather gateway: places, grid cells, cached timelines, metered keys.')
    .addHelpText('after', '\nExample:\n  npm run -s abohawa -- serve --config config/production.yaml')
    .version(version, '-v, --version', 'print the version')
    .exitOverride()
    .configureOutput({ outputError: () => {} })
    .helpCommand(false)
  const add = createAddCommand(surroundings, code => {
    exitCode = code
  })
  addServeCommand(program, add)
  addDemoCommand(program, add)
  addProviderCommand(program, add)
  addKeyCommands(program, add)
  addSubscriberCommands(program, add)
  addStoreCommands(program, add)
  addCatalogueCommands(program, add)
  addCacheCommands(program, add)
  addConfigCommands(program, add)

  try {
    await program.parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    return outcomeOf(error)
  }
}

const outcomeOf = (error: unknown): number => {
  // The last of all: what was given on the command line is repeated by the library that reads it.
  const tell = (text: string) =>
    process.stderr.write(`abohawa: ${printableLines(redactedUrls(withoutKeys(text)))}\n`)
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    const negative = /^error: unknown option '(-[\d.][^']*)'/.exec(error.message)?.[1]
    if (negative !== undefined) {
      tell(
        `${negative} looks like an option; put -- and a blank before what begins with a minus, after all options`,
      )
      return 2
    }
    // A group of commands called without one has printed its help already.
    if (error.code !== 'commander.help') {
      const sentence = safeText(error.message.replace(/^error: /, '').replaceAll('\n', ' '))
      tell(`${sentence}; \`--help\` shows what is allowed`)
    }
    return 2
  }
  if (error instanceof AbohawaError) tell(error.message)
  else tell(error instanceof Error ? (error.stack ?? error.message) : messageOf(error))
  return error instanceof Misuse ? 2 : 1
}
