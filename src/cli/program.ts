// The commands and their exit codes: 0 done, 1 failed, 2 usage error. Every error is one plain sentence on standard error;
// only an unexpected error shows a stack.

import { Command, CommanderError } from 'commander'
import { AbohawaError, messageOf } from '../common/errors.ts'
import { withoutKeys } from '../common/key-redaction.ts'
import { printableLines, safeText } from '../common/outside-text.ts'
import { redactedUrls } from '../common/redacted-url.ts'
import { version } from '../common/version.ts'
import { isOfClosedOutput } from './standard-output.ts'
import type { AddCommand, AddTopCommand, Surroundings } from './terminal.ts'
import { UsageError } from './usage-error.ts'

type TopCommand = {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<AddTopCommand>
}

/** The commands of the first level, in the order of the help. */
const commands: readonly TopCommand[] = [
  {
    name: 'serve',
    summary: 'run the gateway: the listeners for consumers, operators and probes',
    load: async () => (await import('./serve/serve.ts')).addServeCommand,
  },
  {
    name: 'demo',
    summary: 'run a provider and a gateway, and print keys and curl commands to try',
    load: async () => (await import('./serve/demo.ts')).addDemoCommand,
  },
  {
    name: 'provider',
    summary: 'run a simulated weather provider with seeded weather, for demos, tests and load',
    load: async () => (await import('./serve/provider.ts')).addProviderCommand,
  },
  {
    name: 'keys',
    summary: 'create, rotate, revoke and inspect API keys',
    load: async () => (await import('./keys/keys.ts')).addKeyCommands,
  },
  {
    name: 'subscribers',
    summary: 'list and revoke subscribers',
    load: async () => (await import('./keys/subscribers.ts')).addSubscriberCommands,
  },
  {
    name: 'store',
    summary: 'back up, export, import and copy keys, subscribers and usage',
    load: async () => (await import('./operate/store.ts')).addStoreCommands,
  },
  {
    name: 'catalogue',
    summary: 'build, check and publish the places that the gateway serves',
    load: async () => (await import('./operate/catalogue.ts')).addCatalogueCommands,
  },
  {
    name: 'cache',
    summary: 'see what is cached for a place, purge it, and load it',
    load: async () => (await import('./operate/cache.ts')).addCacheCommands,
  },
  {
    name: 'budget',
    summary: 'reopen the budget for the provider after a limit that it reported wrongly',
    load: async () => (await import('./operate/budget.ts')).addBudgetCommands,
  },
  {
    name: 'whatif',
    summary: 'compute what other settings would do to traffic: hits, weight, age, memory, budget',
    load: async () => (await import('./load/whatif.ts')).addWhatIfCommand,
  },
  {
    name: 'status',
    summary: 'show the fleet: instances, provider, budget, cache, store, keys near their limit',
    load: async () => (await import('./operate/status.ts')).addStatusCommand,
  },
  {
    name: 'config',
    summary: 'check, print and explain the configuration',
    load: async () => (await import('./operate/config.ts')).addConfigCommands,
  },
  {
    name: 'traffic',
    summary: 'import, generate, cut and describe traffic files for replays',
    load: async () => (await import('./load/traffic.ts')).addTrafficCommands,
  },
  {
    name: 'doctor',
    summary: 'check all that a gateway needs, with a fix for each fault; exit code 1 when one fails',
    load: async () => (await import('./operate/doctor.ts')).addDoctorCommand,
  },
  {
    name: 'rehearse',
    summary: 'send the traffic of a file to a gateway on a moved clock: a day in minutes',
    load: async () => (await import('./load/rehearse.ts')).addRehearseCommand,
  },
  {
    name: 'replay',
    summary: 'send the requests of traffic files to a gateway, and measure its responses',
    load: async () => (await import('./load/replay.ts')).addReplayCommands,
  },
  {
    name: 'saturate',
    summary: 'send traffic at rising rates until a threshold breaks: how far that is from its own rate',
    load: async () => (await import('./load/saturate.ts')).addSaturateCommand,
  },
]

// Most of what a command imports is not needed to name it.
const adder = async (surroundings: Surroundings, onExit: (code: number) => void): Promise<AddCommand> =>
  (await import('./terminal.ts')).createAddCommand(surroundings, onExit)

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
  // So that an option behind a command is one of that command.
  program.enablePositionalOptions()
  // With an option in front no command runs: it is one of the program, or an unknown one.
  const called = argv.find(word => word !== '--')
  const isCalled = ({ name }: TopCommand): boolean => name === called
  try {
    const add = commands.some(isCalled) ? await adder(surroundings, code => (exitCode = code)) : undefined
    for (const command of commands)
      if (add && isCalled(command)) (await command.load())(program, add, command.summary)
      else program.command(command.name).summary(command.summary)
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
  // The reader of a long output has left, and had what it wanted.
  if (isOfClosedOutput(error)) return 0
  if (error instanceof AbohawaError) printError(error.message)
  else printError(error instanceof Error ? (error.stack ?? error.message) : messageOf(error))
  return error instanceof UsageError ? 2 : 1
}
