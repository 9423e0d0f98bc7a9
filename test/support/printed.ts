// Checks the whole output of command lines, as text and as JSON: no terminal controls, and one line when they fail.

import type { Test } from 'tap'
import { type Ended, runShared } from './process.ts'
import { rawControlIn } from './raw-controls.ts'

/** The outcomes of command lines, in their order. */
export const runCommands = (
  lines: readonly (readonly string[])[],
  env: Record<string, string> = {},
): Promise<Ended[]> => Promise.all(lines.map(args => runShared(args, env)))

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
