// Builds every command: its help with an example, the shared options, and the terminal that it prints to, as text or JSON.
// Escapes control characters of foreign text (names, reasons, file names) here, in one place for all commands.

import type { Command } from 'commander'
import type { Clock } from '../common/clock.ts'
import { jsonText, printable, printableLines } from '../common/outside-text.ts'
import { configFilesOf } from '../config/environment.ts'
import { type ConfigSources, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { collect } from './quantities.ts'
import { isOutputClosed } from './standard-output.ts'
import { UsageError } from './usage-error.ts'

/** Output and configuration of a command. */
export type Terminal = {
  /** Whether --json is given: print one JSON value instead of text. */
  readonly json: boolean
  readonly clock: Clock
  readonly env: NodeJS.ProcessEnv
  /** The width of the terminal in characters; undefined when standard output is no terminal. */
  readonly columns: number | undefined
  /** Its height in lines, when standard output is one. */
  readonly rows: number | undefined
  /** Whether it shows colours: standard output is a terminal, and NO_COLOR is not set. */
  readonly colours: boolean
  /** The files of `--config`. */
  readonly given: readonly string[]
  /** The configuration files of `--config`, or else of ABOHAWA_CONFIG_FILE, then the environment, then `overrides` in the environment's own form. */
  config(overrides?: NodeJS.ProcessEnv): Config
  /** The same files and variables, not read yet. */
  readonly sources: ConfigSources
  /** Prints the result: `text`, escaped line by line, or with --json the value. */
  show(value: unknown, text: string): void
  /** Prints text as it is, for formats such as CSV. */
  write(text: string): void
  /** Prints text as it is, and resolves when standard output has taken it: for long outputs. */
  writeAll(text: string): Promise<void>
  /** Shows how far a long command is, on a line of its own that the next one replaces; only where a terminal shows it. */
  progress(text: string): void
  /** Prints a remark or progress on standard error, on one line. */
  remark(text: string): void
}

/** The environment variables and the clock that `main` passes in. */
export type Surroundings = { readonly env: NodeJS.ProcessEnv; readonly clock: Clock }

type Options = Record<string, unknown>

type CommandSpec<Given extends Options> = {
  readonly summary: string
  /** A command line that works after `npm run -s abohawa --`. */
  readonly example: string
  /** Adds the command's own arguments and options. */
  readonly setUp?: (command: Command) => void
  /** Receives the arguments in order; resolves to the exit code, undefined for 0. */
  readonly run: (terminal: Terminal, options: Given, ...args: string[]) => Promise<number | undefined>
}

export type AddCommand = <Given extends Options>(
  parent: Command,
  name: string,
  spec: CommandSpec<Given>,
) => Command

/** Adds a command of the first level, with those below it. */
export type AddTopCommand = (program: Command, add: AddCommand, summary: string) => void

/** @param onExit called with the exit code of the command that ran */
export const createAddCommand =
  ({ env, clock }: Surroundings, onExit: (code: number) => void): AddCommand =>
  (parent, name, { summary, example, setUp, run }) => {
    const command = parent.command(name).summary(summary).description(summary)
    setUp?.(command)
    refuseSecondValues(
      command
        .option(
          '-c, --config <file>',
          'a configuration file; may be given again, the later one wins; by default those in ABOHAWA_CONFIG_FILE, separated by colons',
          collect,
        )
        .option('--json', 'print JSON, for programs'),
    )
      .addHelpText('after', `\nExample:\n  npm run -s abohawa -- ${example}`)
      .action(async () => {
        const options = command.opts()
        const given = (options.config as string[] | undefined) ?? []
        const sources = { files: configFilesOf(given, env), env }
        const terminal: Terminal = {
          json: options.json === true,
          clock,
          env,
          get columns() {
            return process.stdout.isTTY ? process.stdout.columns : undefined
          },
          get rows() {
            return process.stdout.isTTY ? process.stdout.rows : undefined
          },
          colours: process.stdout.isTTY && !env.NO_COLOR && env.TERM !== 'dumb',
          given,
          sources,
          config: overrides => loadConfig({ ...sources, env: { ...env, ...overrides } }),
          show: (value, text) => {
            process.stdout.write(`${options.json ? jsonText(value) : printableLines(text)}\n`)
          },
          write: text => {
            // What is drawn again and again ends with its reader.
            if (isOutputClosed()) process.exit(0)
            process.stdout.write(text)
          },
          writeAll: text =>
            new Promise((resolve, reject) => {
              process.stdout.write(text, error => (error ? reject(error) : resolve()))
            }),
          progress: text => {
            if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${printable(text)}`)
          },
          remark: text => {
            process.stderr.write(`${printable(text)}\n`)
          },
        }
        onExit((await run(terminal, options as never, ...command.args)) ?? 0)
      })
    return command
  }

/** An option with one value that is given twice is a mistake: the first value would be lost without a word. */
const refuseSecondValues = (command: Command): Command => {
  for (const option of command.options) {
    // One that takes several values is called with each.
    if ((!option.required && !option.optional) || option.variadic) continue
    const name = option.attributeName()
    let before: unknown
    let times = 0
    // The value is set by now: commander's own listener came first.
    command.on(`option:${option.name()}`, () => {
      const value: unknown = command.getOptionValue(name)
      times += 1
      if (times > 1 && !holdsAll(value, before))
        throw new UsageError(`${option.long ?? option.short} is given more than once; allowed: once`)
      before = value
    })
  }
  return command
}

/** Whether an option collects its values. */
const holdsAll = (value: unknown, before: unknown): boolean =>
  Array.isArray(value) &&
  Array.isArray(before) &&
  value.length > before.length &&
  before.every((each, i) => each === value[i])

/** The zone of the times of day on a page: that of the gateway's configuration. @throws InputError for one that is wrong */
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

/**
 * What is left of work of which a share is done after so many seconds: `, 1 min 20 s left`. Empty until enough is done to
 * tell, because work begins more slowly than it goes on.
 */
export const leftText = (share: number, seconds: number): string => {
  if (share < 0.02 || (share < 0.1 && seconds < 10)) return ''
  const left = Math.ceil((seconds * Math.max(0, 1 - share)) / share)
  return left < 60 ? `, ${left} s left` : `, ${Math.floor(left / 60)} min ${left % 60} s left`
}

const remarkEveryMs = 10_000

/** Shows how far a command of minutes is: on the line that is replaced, or where no terminal shows it, as a remark now and then. */
export const createProgressLine = ({ progress, remark }: Pick<Terminal, 'progress' | 'remark'>) => {
  let remarkedAt = performance.now()
  return (line: string): void => {
    const now = performance.now()
    if (process.stderr.isTTY) progress(line)
    else if (now - remarkedAt >= remarkEveryMs) {
      remarkedAt = now
      remark(line)
    }
  }
}

/** Names and values, one pair a line, indented; escaped as in `tableOf`. Those without a value are left out. */
export const factsText = (facts: readonly (readonly [string, string | undefined])[]): string => {
  const known = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return indented(tableOf(['', ''], known).replace(/^.*\n/, ''))
}

/** Indents every non-empty line by two spaces. */
export const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')

const longestValue = 500

/**
 * A table with aligned columns. Control characters of the values are escaped, so that each row stays one line.
 * @param numbers the columns to align right
 */
export const tableOf = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  numbers: readonly number[] = [],
): string => {
  const lines = [headings, ...rows].map(row => row.map(value => printable(value, longestValue)))
  const widths = headings.map((_, i) => lines.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), 0))
  return lines
    .map(row =>
      row
        .map((text, i) => (numbers.includes(i) ? text.padStart(widths[i] ?? 0) : text.padEnd(widths[i] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
