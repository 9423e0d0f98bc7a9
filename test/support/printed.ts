// Checks the whole output of command lines, as text and as JSON: no terminal controls, and one line when they fail.

import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { cleanEnv, type Ended } from './process.ts'
import { rawControlIn } from './raw-controls.ts'

const script = join(import.meta.dirname, 'command-lines.ts')
let files = 0

/** The outcomes of command lines that run in one process, in their order. */
export const runCommands = async (
  lines: readonly (readonly string[])[],
  env: Record<string, string> = {},
): Promise<Ended[]> => {
  files += 1
  const file = join(tmpdir(), `abohawa-lines-${process.pid}-${files}.json`)
  await writeFile(file, JSON.stringify(lines))
  const options = { env: cleanEnv(env), maxBuffer: 1e8 }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, file], options).finally(
    () => rm(file),
  )
  const outputs = stdout.split('\0')
  const errors = stderr.split('\0')
  return lines.map((_, i) => ({
    stdout: outputs[2 * i] ?? '',
    code: Number(outputs[2 * i + 1]),
    stderr: errors[i] ?? '',
  }))
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
