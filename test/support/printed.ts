// Checks the whole output of command lines: no terminal controls as text and as JSON, and one sentence for a mistake.

import type { Test } from 'tap'
import { type Ended, runShared } from './process.ts'
import { rawControlIn } from './raw-controls.ts'

/** A command line, as its words or as a text with blanks between them. */
type Line = string | readonly string[]
const wordsOf = (line: Line) => (typeof line === 'string' ? line.split(' ').filter(Boolean) : line)

/** The outcomes of command lines, in their order. */
export const runCommands = (lines: readonly Line[], env: Record<string, string> = {}): Promise<Ended[]> =>
  Promise.all(lines.map(line => runShared(wordsOf(line), env)))

/** A command line, its exit code, and what is said of it. */
export type Mistake = readonly [line: Line, code: number, sentence: RegExp]

/** Runs command lines that are wrong: each ends with its exit code and one sentence, and prints nothing else. */
export const checkMistakes = async (
  t: Test,
  mistakes: readonly Mistake[],
  env: Record<string, string> = {},
): Promise<void> => {
  const lines = mistakes.map(([line]) => wordsOf(line))
  const ended = await runCommands(lines, env)
  for (const [i, [, code, sentence]] of mistakes.entries()) {
    const title = plain((lines[i] ?? []).join(' '))
    const { code: given, stdout, stderr = '' } = ended[i] ?? {}
    t.hasStrict({ code: given, stdout }, { code, stdout: '' }, title)
    t.match(stderr, sentence, title)
    t.match(stderr, /^abohawa: [^\n]*\n$/, `${title}: one line`)
    t.notMatch(stderr, / at .*\.ts|\.; `--help/, `${title}: no stack, and no stop in the sentence`)
  }
}

// Such text confuses the reporter of the tests too.
const plain = (text: string): string => text.replaceAll(/[^ -~]/g, '?')

/** Runs command lines that end with the same exit code, each as text and, unless `json` is false, as JSON. */
export const checkOutput = async (
  t: Test,
  lines: readonly (readonly string[])[],
  { code, json = true }: { code: number; json?: boolean },
  env: Record<string, string> = {},
): Promise<Ended[]> => {
  const variants = json ? lines.flatMap(args => [args, [...args, '--json']]) : lines
  const ended = await runCommands(variants, env)
  for (const [i, { code: given, stdout, stderr }] of ended.entries()) {
    const title = plain((variants[i] ?? []).join(' ')).slice(0, 80)
    t.equal(given, code, `${title}: ${plain(stderr.slice(0, 500))}`)
    t.equal(rawControlIn(stdout), undefined, `${title}: standard output`)
    t.equal(rawControlIn(stderr), undefined, `${title}: standard error`)
    t.ok(stderr.length < 5_000, `${title}: ${stderr.length} characters on standard error`)
    if (code !== 0) t.ok(/^abohawa: [^\n]*\n$/.test(stderr), `${title}: one line`)
  }
  return json ? ended.filter((_, i) => i % 2 === 0) : ended
}
