// How every command is made: a help with an example, the options all of them share, and the terminal it is handed,
// which knows whether people or programs read the output. What others wrote (names, reasons, file names) is made
// printable here, in one place for all commands.

import type { Command } from 'commander'
import type { Clock } from '../clock.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { InputError } from '../errors.ts'
import { jsonText, printable, printableLines } from '../outside-text.ts'

/** What a command has in hand. */
export type Terminal = {
  /** Whether one JSON value is wanted instead of text for people. */
  readonly json: boolean
  readonly clock: Clock
  /** How many characters a line of the screen has; undefined when the output goes elsewhere. */
  readonly columns: number | undefined
  /** The configuration files of `--config`, then the environment, then `overrides` in the environment's own form. */
  config(overrides?: NodeJS.ProcessEnv): Config
  /** Prints the outcome: `text`, made printable line by line, or with --json the value it stands for. */
  show(value: unknown, text: string): void
  /** Prints text of a form of its own, such as CSV, as it is. */
  write(text: string): void
  /** Prints a remark or a sign of progress on standard error, on one line. */
  remark(text: string): void
}

/** A command line that can't be meant: exit code 2. */
export class Misuse extends InputError {
  override name = 'Misuse'
}

/** The surroundings that `main` hands over. */
export type Surroundings = { readonly env: NodeJS.ProcessEnv; readonly clock: Clock }

type Options = Record<string, unknown>

type CommandSpec<Given extends Options> = {
  readonly summary: string
  /** One line that works when pasted behind `npm run -s abohawa --`. */
  readonly example: string
  /** Adds the command's own arguments and options. */
  readonly setUp?: (command: Command) => void
  /** The arguments in order; resolves to the exit code, 0 when it says nothing. */
  readonly run: (terminal: Terminal, options: Given, ...args: string[]) => Promise<number | undefined>
}

export type AddCommand = <Given extends Options>(
  parent: Command,
  name: string,
  spec: CommandSpec<Given>,
) => void

/** @param onExit told the exit code of the command that ran */
export const createAddCommand =
  ({ env, clock }: Surroundings, onExit: (code: number) => void): AddCommand =>
  (parent, name, { summary, example, setUp, run }) => {
    const command = parent.command(name).summary(summary).description(summary)
    setUp?.(command)
    command
      .option('-c, --config <file>', 'a configuration file; may be given again, the later one wins', collect)
      .option('--json', 'print JSON, for programs')
      .addHelpText('after', `\nExample:\n  npm run -s abohawa -- ${example}`)
      .action(async () => {
        const options = command.opts()
        const terminal: Terminal = {
          json: options.json === true,
          clock,
          columns: process.stdout.isTTY ? process.stdout.columns : undefined,
          config: overrides =>
            loadConfig({
              files: (options.config as string[] | undefined) ?? [],
              env: { ...env, ...overrides },
            }),
          show: (value, text) => {
            process.stdout.write(`${options.json ? jsonText(value) : printableLines(text)}\n`)
          },
          write: text => {
            process.stdout.write(text)
          },
          remark: text => {
            process.stderr.write(`${printable(text)}\n`)
          },
        }
        onExit((await run(terminal, options as never, ...command.args)) ?? 0)
      })
  }

const collect = (file: string, before: string[] = []): string[] => [...before, file]

/** A number as people read it: 10,000. */
export const counted = (number: number): string => number.toLocaleString('en-US')

/** Facts behind their names, one a line, indented; printable, as in `tableOf`. */
export const factsText = (facts: readonly (readonly [string, string])[]): string =>
  indented(tableOf(['', ''], facts).replace(/^.*\n/, ''))

/** Every line that says something two blanks further in. */
export const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')

const longestCell = 500

/**
 * Rows under their headings, in columns as wide as they need. Cells are made printable, so that each stays in its row.
 * @param numbers the columns whose texts stand at the right
 */
export const tableOf = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  numbers: readonly number[] = [],
): string => {
  const lines = [headings, ...rows].map(row => row.map(cell => printable(cell, longestCell)))
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
