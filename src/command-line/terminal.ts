// Builds every command: its help, the shared options, and its terminal, which escapes control characters of outside text.

import { type Command, Option } from 'commander'
import type { Clock } from '../common/clock.ts'
import { jsonText, printable, printableLines } from '../common/outside-text.ts'
import { configFilesOf } from '../config/environment.ts'
import { type ConfigSources, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { collect } from './quantities.ts'
import { isOutputClosed, writeAll, writeSeen } from './standard-output.ts'
import { UsageError } from './usage-error.ts'

/** The environment variables and the clock that `main` passes in. */
export type Surroundings = { readonly env: NodeJS.ProcessEnv; readonly clock: Clock }

type Options = Record<string, unknown>

type CommandSpec<Given extends Options> = {
  readonly summary: string
  /** A command line that works after `npm run -s abohawa --`. */
  readonly example: string
  readonly setUp?: (command: Command) => void
  /** Receives the arguments in order; resolves to the exit code, undefined for 0. */
  readonly run: (terminal: Terminal, options: Given, ...args: string[]) => Promise<number | undefined>
}

export type AddCommand = <Given extends Options>(
  parent: Command,
  name: string,
  spec: CommandSpec<Given>,
) => Command

export type AddTopCommand = (program: Command, add: AddCommand, summary: string) => void

/** @param onExit called with the exit code of the command that ran */
export const createAddCommand =
  (surroundings: Surroundings, onExit: (code: number) => void): AddCommand =>
  (parent, name, { summary, example, setUp, run }) => {
    const command = parent.command(name).summary(summary).description(summary)
    setUp?.(command)
    command
      .option(
        '-c, --config <file>',
        'configuration file (repeatable; later files win; default: ABOHAWA_CONFIG_FILE, separated by colons)',
        collect,
      )
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  npm run -s abohawa -- ${example}`)
      .action(async () => {
        const options = command.opts()
        const terminal = createTerminal(options, surroundings)
        onExit((await run(terminal, options as never, ...command.args)) ?? 0)
      })
    refuseSecondValues(command)
    return command
  }

export const csvOption = (text: string): Option => new Option('--csv', text).conflicts('json')

/** An option with one value that is given twice is a mistake: the first value would be lost without a word. */
const refuseSecondValues = (command: Command): void => {
  for (const option of command.options) {
    if ((!option.required && !option.optional) || option.variadic) continue
    let isGiven = false
    // The value is set by now: commander's own listener came first. Those that take it again have a list.
    command.on(`option:${option.name()}`, () => {
      if (isGiven && !Array.isArray(command.getOptionValue(option.attributeName())))
        throw new UsageError(`${option.long ?? option.short} can be given only once`)
      isGiven = true
    })
  }
}

export type Terminal = ReturnType<typeof createTerminal>

const createTerminal = (options: Options, { env, clock }: Surroundings) => {
  const given = (options.config as string[] | undefined) ?? []
  const hasControls = env.TERM !== 'dumb'
  const sources: ConfigSources = { files: configFilesOf(given, env), env }
  const resultText = (value: unknown, text: string): string =>
    `${options.json ? jsonText(value) : printableLines(text)}\n`
  return {
    /** Whether --json is given: print one JSON value instead of text. */
    json: options.json === true,
    clock,
    env,
    /** The width of the terminal in characters; undefined when standard output is no terminal. */
    get columns(): number | undefined {
      return process.stdout.isTTY ? process.stdout.columns : undefined
    },
    get rows(): number | undefined {
      return process.stdout.isTTY ? process.stdout.rows : undefined
    },
    /** Whether it shows colours: standard output is a terminal, and NO_COLOR is not set. */
    colours: process.stdout.isTTY && !env.NO_COLOR && hasControls,
    /** Whether terminals of this kind take control sequences, which move the cursor and clear lines. */
    controls: hasControls,
    given,
    /** The files of `--config`, or else of ABOHAWA_CONFIG_FILE, and the environment, not read yet. */
    sources,
    /** The configuration of the files, then the environment, then `overrides` in the environment's own form. */
    config: (overrides?: NodeJS.ProcessEnv): Config =>
      loadConfig({ ...sources, env: { ...env, ...overrides } }),
    /** Prints the result: `text`, escaped line by line, or with --json the value. */
    show: (value: unknown, text: string): void => {
      process.stdout.write(resultText(value, text))
    },
    /** Prints a result that nothing can show again, and resolves when standard output has taken it. */
    showOnce: (value: unknown, text: string): Promise<void> => writeSeen(resultText(value, text)),
    /** Prints text as it is: what is drawn again and again, and ends with its reader. */
    write: (text: string): void => {
      if (isOutputClosed()) process.exit(0)
      process.stdout.write(text)
    },
    /** Prints text as it is, and resolves when standard output has taken it: for CSV and long outputs. */
    writeAll,
    writeSeen,
    /** Shows progress on one line that the next one replaces; only on a terminal. */
    progress: (text: string): void => {
      if (process.stderr.isTTY && hasControls) process.stderr.write(`\r\u001b[K${printable(text)}`)
    },
    /** Prints a remark or progress on standard error, on one line. */
    remark: (text: string): void => {
      process.stderr.write(`${printable(text)}\n`)
    },
  } as const
}

/** The time zone of the gateway's configuration, for local days and the times of day on a page. @throws InputError for one that is wrong */
export const zoneOf = (terminal: Pick<Terminal, 'config'>): string => terminal.config().quota.timeZone

/** A number with thousands separators: 10,000. */
export const counted = (number: number): string => number.toLocaleString('en-US')

/** A count with its noun: 1 key, 2,000 keys. */
export const numbered = (count: number, one: string, more: string): string =>
  `${counted(count)} ${count === 1 ? one : more}`

/** A share of 1 as 12.0 %; with more digits where one would make nothing of it, or all: 0.03 %, 99.97 %. */
export const percentText = (share: number): string => {
  const percent = share * 100
  const digits = [1, 2, 3].find(digits => {
    const shown = Number(percent.toFixed(digits))
    return (shown !== 0 || share === 0) && (shown !== 100 || share === 1)
  })
  return `${percent.toFixed(digits ?? 4)} %`
}
