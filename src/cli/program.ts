// The commands and their exit codes: 0 done, 1 failed, 2 usage error. Every error is one plain sentence on standard error;
// only an unexpected error shows a stack.

import { Command, CommanderError } from 'commander'
import { isOfClosedOutput } from '../command-line/standard-output.ts'
import type { AddTopCommand, Surroundings } from '../command-line/terminal.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { AbohawaError, InputError, messageOf } from '../common/errors.ts'
import { withoutKeys } from '../common/key-redaction.ts'
import { printableLines, safeText } from '../common/outside-text.ts'
import { redactedUrls } from '../common/redacted-url.ts'
import { version } from '../common/version.ts'

const summaries = {
  serve: 'run the gateway',
  demo: 'run a simulated provider and a gateway, and print commands to try',
  provider: 'run a simulated weather provider for demos, tests and load',
  keys: 'create, rotate, revoke and inspect API keys',
  subscribers: 'list and revoke subscribers',
  store: 'back up, export, import and copy keys, subscribers and usage',
  catalogue: 'build, check and publish the places that the gateway serves',
  cache: 'see what is cached for a place, purge it, and load it',
  budget: 'reopen the budget after a limit that the provider reported wrongly',
  whatif: 'compute the effect of other settings on traffic: hits, weight, age, memory, budget',
  status: 'show the fleet: instances, provider, budget, cache, store, keys near their limit',
  config: 'check, print and explain the configuration',
  traffic: 'import, generate, cut and describe traffic files for replays',
  doctor: 'check everything a gateway needs, with a fix for each fault',
  rehearse: "send a file's traffic to a gateway on a fast clock: a day in minutes",
  replay: 'send traffic files to a gateway and measure its responses',
}

type Name = keyof typeof summaries

const adders: Readonly<Partial<Record<Name, () => Promise<AddTopCommand>>>> = {
  serve: async () => (await import('./serve/serve.ts')).addServeCommand,
  keys: async () => (await import('./keys/keys.ts')).addKeyCommands,
  subscribers: async () => (await import('./keys/subscribers.ts')).addSubscriberCommands,
  store: async () => (await import('./operate/store.ts')).addStoreCommands,
  cache: async () => (await import('./operate/cache.ts')).addCacheCommands,
  budget: async () => (await import('./operate/budget.ts')).addBudgetCommands,
  status: async () => (await import('./operate/status.ts')).addStatusCommand,
  config: async () => (await import('./operate/config.ts')).addConfigCommands,
  doctor: async () => (await import('./operate/doctor.ts')).addDoctorCommand,
}

/** The commands of the tools beside the gateway, and their files in `tools/`: an installation for production has none of them. */
const tools: Readonly<Partial<Record<Name, string>>> = {
  demo: 'provider/cli/demo.ts',
  provider: 'provider/cli/provider.ts',
  catalogue: 'catalogue/cli.ts',
  whatif: 'load/cli/whatif.ts',
  traffic: 'load/cli/traffic.ts',
  rehearse: 'load/cli/rehearse.ts',
  replay: 'load/cli/replay.ts',
}

/** @throws InputError when the tool is not installed */
const adderOf = async (name: Name): Promise<AddTopCommand> => {
  const adder = adders[name]
  if (adder) return adder()
  const file = new URL(`../../tools/${tools[name]}`, import.meta.url)
  try {
    const { addCommand } = (await import(file.href)) as { readonly addCommand: AddTopCommand }
    return addCommand
  } catch (cause) {
    // The file itself, or a package that only development installs.
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND')) throw cause
    throw new InputError(
      `\`${name}\` is a tool, and this installation has no tools; run it in a checkout after \`npm ci\`, or in the image of the target \`tools\``,
      { cause },
    )
  }
}

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
  // `help keys create` is `keys create --help`.
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
  // With an option in front no command runs: it is one of the program, or an unknown one.
  const called = words.find(word => word !== '--')
  try {
    for (const [name, summary] of Object.entries(summaries)) {
      if (name === called) {
        // Imported here: most of what a command needs is not needed to name it.
        const { createAddCommand } = await import('../command-line/terminal.ts')
        const addCommand = await adderOf(name as Name)
        addCommand(
          program,
          createAddCommand(surroundings, code => (exitCode = code)),
          summary,
        )
      } else program.command(name).summary(summary)
    }
    await program.parseAsync(words, { from: 'user' })
    return exitCode
  } catch (error) {
    return exitCodeOf(error)
  }
}

/** Commander's sentence about an invalid value, in the form of the other errors. */
const invalidValue = (message: string): string =>
  message.replace(
    /^option '(?:-\w, )?(--[\w-]+)[^']*' argument '(.*)' is invalid\. (?:Allowed: |Allowed choices are (?=(.)))(.*?)\.?$/,
    (_, option, given, isChoice, allowed) =>
      `${option} must be ${isChoice ? 'one of ' : ''}${allowed}, got "${given}"`,
  )

const exitCodeOf = (error: unknown): number => {
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
      const sentence = safeText(invalidValue(error.message.replace(/^error: /, '').replaceAll('\n', ' ')))
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
