// Judges a mutant in a copy of the checkout: by the tests of its room, and if these stay green by a few histories of a fleet. A
// failure counts when it comes twice, because a busy machine fails a test too.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { allFiles, startsProcess } from '../../test/support/test-files.ts'
import type { Mutant, Room } from './draw.ts'

type Outcome = 'tests' | 'histories' | 'survived'
export type Judgement = { readonly outcome: Outcome /** The test file that failed. */; readonly by?: string }

/** How long each test takes in the unchanged copy; one that fails there is missing. */
export type Durations = ReadonlyMap<string, number>

const testDataBytes = 1_536 * 2 ** 20
const proofDataBytes = 6_144 * 2 ** 20
const [leastMs, timesUsual] = [15_000, 4]
const testAtMostMs = 120_000
const historiesAtMostMs = 300_000

const textOf = (root: string, test: string): string => readFileSync(join(root, test), 'utf8')

// Only commands administer keys, so the tests of these commands are the tests of that code.
const testsElsewhere: Partial<Record<Room, readonly string[]>> = {
  keys: ['keys', 'key-lists', 'key-create', 'store'].map(name => `test/cli/${name}.test.ts`),
}
const isOfRoom = (test: string, room: Room): boolean =>
  test.startsWith(`test/${room}/`) || (testsElsewhere[room]?.includes(test) ?? false)

/** Tests of a room, and quick ones of others that import one of the files. */
const testsOf = (root: string, room: Room, files: readonly string[]): string[] =>
  allFiles().filter(
    test =>
      isOfRoom(test, room) || (files.some(file => textOf(root, test).includes(file)) && !startsProcess(test)),
  )

/** Copies the checkout without its packages, which the copy links to. */
export const openCopy = (root: string) => {
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-mutants-'))
  const left = ['node_modules', '.git', '.tap']
  cpSync(root, folder, { recursive: true, filter: path => !left.includes(relative(root, path)) })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const run = (args: readonly string[], dataBytes: number, atMostMs: number) =>
    runLimited(folder, args, dataBytes, atMostMs)
  return {
    runTest: (test: string, atMostMs: number) => run([test], testDataBytes, atMostMs),
    runHistories: (seeds: number) =>
      run(
        ['proof/main.ts', '--seeds', `${seeds}`, '--lanes', '2', '--json'],
        proofDataBytes,
        historiesAtMostMs,
      ),
    write: (file: string, text: string): void => writeFileSync(join(folder, file), text),
    close: (): void => rmSync(folder, { recursive: true, force: true }),
  }
}
export type Copy = ReturnType<typeof openCopy>

/** Whether a Node process ends with exit code 0 in time. What it started ends with it. */
const runLimited = async (
  ...[cwd, args, dataBytes, atMostMs]: [string, readonly string[], number, number]
): Promise<boolean> => {
  const all = [`--data=${dataBytes}`, process.execPath, '--disable-warning=ExperimentalWarning', ...args]
  const env = { ...process.env, TAP_TIMEOUT: `${testAtMostMs / 1_000}` }
  const child = spawn('prlimit', all, { cwd, env, detached: true, stdio: 'ignore' })
  const endAll = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of them have ended.
    }
  }
  const limit = setTimeout(endAll, atMostMs)
  process.once('exit', endAll)
  const [code] = await once(child, 'exit')
  clearTimeout(limit)
  endAll()
  process.off('exit', endAll)
  return code === 0
}

/** Runs the tests that may judge mutants of these files of a room, in the unchanged copy. */
export const timeTests = async (
  ...[copy, root, room, files]: [Copy, string, Room, readonly string[]]
): Promise<Durations> => {
  const durations = new Map<string, number>()
  for (const test of testsOf(root, room, files)) {
    const begun = performance.now()
    if (await copy.runTest(test, testAtMostMs)) durations.set(test, performance.now() - begun)
    else process.stderr.write(`${test} fails without a mutant and is left out\n`)
  }
  return durations
}

/** The tests for a mutant: first those that import its file, and of each kind the fastest. */
const inOrder = (root: string, { room, file }: Mutant, durations: Durations): string[] => {
  const importing = new Set([...durations.keys()].filter(test => textOf(root, test).includes(file)))
  const rankOf = (test: string): number => (importing.has(test) ? 0 : 1)
  return [...durations.keys()]
    .filter(test => importing.has(test) || isOfRoom(test, room))
    .sort((a, b) => rankOf(a) - rankOf(b) || (durations.get(a) ?? 0) - (durations.get(b) ?? 0))
}

export const judgeMutant = async (
  ...[copy, root, mutant, durations, seeds]: [Copy, string, Mutant, Durations, number]
): Promise<Judgement> => {
  const original = readFileSync(join(root, mutant.file), 'utf8')
  copy.write(mutant.file, mutant.source)
  try {
    for (const test of inOrder(root, mutant, durations)) {
      const atMostMs = leastMs + timesUsual * (durations.get(test) ?? 0)
      if (await failsTwice(() => copy.runTest(test, atMostMs))) return { outcome: 'tests', by: test }
    }
    if (seeds > 0 && (await failsTwice(() => copy.runHistories(seeds)))) return { outcome: 'histories' }
    return { outcome: 'survived' }
  } finally {
    copy.write(mutant.file, original)
  }
}

const failsTwice = async (passes: () => Promise<boolean>): Promise<boolean> =>
  !(await passes()) && !(await passes())
