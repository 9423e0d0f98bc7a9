// The commands and their exit codes: 0 done, 1 failed, 2 usage error. Every error is one plain sentence on standard error;
// only an unexpected error shows a stack.

import { Command, CommanderError } from 'commander'
import packageFile from '../../package.json' with { type: 'json' }
import { AbohawaError, messageOf } from '../errors.ts'
import { withoutKeys } from '../key-redaction.ts'
import { printableLines, safeText } from '../outside-text.ts'
import { redactedUrls } from '../redacted-url.ts'
import { addCompletionCommand } from './completion.ts'
import { addKeyCommands } from './keys/keys.ts'
import { addSubscriberCommands } from './keys/subscribers.ts'
import { addRehearseCommand } from './load/rehearse.ts'
import { addReplayCommand } from './load/replay.ts'
import { addReplayCompareCommands } from './load/replay-compare.ts'
import { addSaturateCommand } from './load/saturate.ts'
import { addTrafficCommands } from './load/traffic.ts'
import { addWhatIfCommand } from './load/whatif.ts'
import { addBudgetCommands } from './operate/budget.ts'
import { addCacheCommands } from './operate/cache.ts'
import { addCatalogueCommands } from './operate/catalogue.ts'
import { addConfigCommands } from './operate/config.ts'
import { addDoctorCommand } from './operate/doctor.ts'
import { addStatusCommand } from './operate/status.ts'
import { addStoreCommands } from './operate/store.ts'
import { addDemoCommand } from './serve/demo.ts'
import { addProviderCommand } from './serve/provider.ts'
import { addServeCommand } from './serve/serve.ts'
import { addWorkerCommands } from './serve/workers.ts'
import { createAddCommand, type Surroundings, UsageError } from './terminal.ts'

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
  addBudgetCommands(program, add)
  addWhatIfCommand(program, add)
  addStatusCommand(program, add)
  addWorkerCommands(program, add)
  addConfigCommands(program, add)
  addTrafficCommands(program, add)
  addDoctorCommand(program, add)
  addRehearseCommand(program, add)
  addReplayCommand(program, add)
  addReplayCompareCommands(program, add)
  addSaturateCommand(program, add)
  addCompletionCommand(program, add)

  try {
    await program.parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    return outcomeOf(error)
  }
}

const outcomeOf = (error: unknown): number => {
  // Redacts here, last: commander's messages quote the command line.
  const printError = (text: string) =>
    process.stderr.write(`abohawa: ${printableLines(redactedUrls(withoutKeys(text)))}\n`)
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    // Behind a command it is one of the command, to which commander adds none.
    if (/^error: unknown option '(--version|-v)'/.test(error.message)) {
      process.stdout.write(`${version}\n`)
      return 0
    }
    const negative = /^error: unknown option '(-[\d.][^']*)'/.exec(error.message)?.[1]
    if (negative !== undefined) {
      printError(
        `${negative} looks like an option; put \`--\` before an argument that begins with a minus, after all options`,
      )
      return 2
    }
    // A command group without a subcommand has printed its help already.
    if (error.code !== 'commander.help') {
      const sentence = safeText(error.message.replace(/^error: /, '').replaceAll('\n', ' '))
      printError(`${sentence}${sentence.endsWith('.') ? '' : ';'} \`--help\` shows the usage`)
    }
    return 2
  }
  if (error instanceof AbohawaError) printError(error.message)
  else printError(error instanceof Error ? (error.stack ?? error.message) : messageOf(error))
  return error instanceof UsageError ? 2 : 1
}
