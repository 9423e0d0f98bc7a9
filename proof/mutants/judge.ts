// Judges a mutant in a copy of the checkout: by the tests of its room, and by a few histories of a fleet. A failure counts when it
// comes twice, because a busy machine fails a test too. An endless loop is a kill, since it uses up its time on the processor; a run
// that only waits beyond its limit on the clock "does not end", which is no kill.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { allFiles, startsProcess } from '../../test/runner/test-files.ts'
import type { Mutant, Room } from './draw.ts'

type Verdict = 'killed' | 'passed' | 'does not end'
export type Judgement = {
  readonly tests: Verdict
  /** The test file that failed or did not end. */
  readonly by?: string
  /** Missing where no history ran. */
  readonly histories?: Verdict
}

/** How a run ended; `loops`: it used up its time on the processor; `late`: it had not ended by its limit on the clock. */
type End = 'passed' | 'failed' | 'loops' | 'late'

/** How long each test takes in the unchanged copy; one that fails there is missing. */
export type Durations = ReadonlyMap<string, number>

const testDataBytes = 1_536 * 2 ** 20
const proofDataBytes = 6_144 * 2 ** 20
const [leastMs, timesUsual] = [15_000, 4]
const testAtMostMs = 120_000
const historiesAtMostMs = 300_000
// On the clock a run may take longer than on the processor, which others share; one that is late may take longer once more.
const [clockTimes, patientTimes] = [2, 6]

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
  return {
    /** @param cpuMs on the processor, for each process */
    runTest: (test: string, cpuMs: number, clockMs: number) =>
      runLimited(folder, [test], testDataBytes, cpuMs, clockMs),
    runHistories: (seeds: number, cpuMs: number, clockMs: number) =>
      runLimited(
        folder,
        // The first two are over plain HTTP, one on Redis and one on the embedded store.
        ['proof/main.ts', '--fail-fast', '--first', '7', '--seeds', `${seeds}`, '--lanes', '2', '--json'],
        ...[proofDataBytes, cpuMs, clockMs],
      ),
    write: (file: string, text: string): void => writeFileSync(join(folder, file), text),
    close: (): void => rmSync(folder, { recursive: true, force: true }),
  }
}
export type Copy = ReturnType<typeof openCopy>

/** How a Node process ends. What it started ends with it. */
const runLimited = async (
  ...[cwd, args, dataBytes, cpuMs, clockMs]: [string, readonly string[], number, number, number]
): Promise<End> => {
  const cpuSeconds = Math.ceil(cpuMs / 1_000)
  const limits = [`--data=${dataBytes}`, `--cpu=${cpuSeconds}:${cpuSeconds + 5}`]
  const all = [...limits, process.execPath, '--disable-warning=ExperimentalWarning', ...args]
  // Without a limit of tap's own, which would fail a test that is only slow. A test that waits for what the mutant never does fails
  // before its run is late.
  const env = { ...process.env, TAP_TIMEOUT: '0', TEST_PATIENCE_MS: `${2 * leastMs}` }
  const child = spawn('prlimit', all, { cwd, env, detached: true, stdio: 'ignore' })
  const endAll = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of them have ended.
    }
  }
  let isLate = false
  const limit = setTimeout(() => {
    isLate = true
    endAll()
  }, clockMs)
  process.once('exit', endAll)
  const [code, signal] = await once(child, 'exit')
  clearTimeout(limit)
  endAll()
  process.off('exit', endAll)
  if (isLate) return 'late'
  if (signal === 'SIGXCPU') return 'loops'
  return code === 0 ? 'passed' : 'failed'
}

/** Runs the tests that may judge mutants of these files of a room, in the unchanged copy. */
export const timeTests = async (
  ...[copy, root, room, files]: [Copy, string, Room, readonly string[]]
): Promise<Durations> => {
  const durations = new Map<string, number>()
  for (const test of testsOf(root, room, files)) {
    const begun = performance.now()
    const end = await copy.runTest(test, testAtMostMs, patientTimes * testAtMostMs)
    if (end === 'passed') durations.set(test, performance.now() - begun)
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

/** @param isBoth whether histories judge what tests kill, too */
export const judgeMutant = async (
  ...[copy, root, mutant, durations, { seeds, isBoth }]: [
    ...[Copy, string, Mutant, Durations],
    { readonly seeds: number; readonly isBoth: boolean },
  ]
): Promise<Judgement> => {
  const original = readFileSync(join(root, mutant.file), 'utf8')
  copy.write(mutant.file, mutant.source)
  try {
    const ofTests = await judgeByTests(copy, inOrder(root, mutant, durations), durations)
    if (seeds === 0 || (ofTests.tests !== 'passed' && !isBoth)) return ofTests
    const histories = await verdictOf(historiesAtMostMs, clockMs =>
      copy.runHistories(seeds, historiesAtMostMs, clockMs),
    )
    return { ...ofTests, histories }
  } finally {
    copy.write(mutant.file, original)
  }
}

const judgeByTests = async (
  copy: Copy,
  tests: readonly string[],
  durations: Durations,
): Promise<Judgement> => {
  let late: string | undefined
  for (const test of tests) {
    const cpuMs = leastMs + timesUsual * (durations.get(test) ?? 0)
    const verdict = await verdictOf(cpuMs, clockMs => copy.runTest(test, cpuMs, clockMs))
    if (verdict === 'killed') return { tests: verdict, by: test }
    if (verdict === 'does not end') late ??= test
  }
  return late === undefined ? { tests: 'passed' } : { tests: 'does not end', by: late }
}

/**
 * What runs of a mutant say together: a late one is repeated with a longer limit, and a failure has to come twice.
 * @param run runs it with a limit on the clock
 */
export const verdictOf = async (cpuMs: number, run: (clockMs: number) => Promise<End>): Promise<Verdict> => {
  const runPatiently = async (): Promise<End> => {
    const end = await run(clockTimes * cpuMs)
    return end === 'late' ? run(patientTimes * cpuMs) : end
  }
  const first = await runPatiently()
  const last = first === 'failed' ? await runPatiently() : first
  return ({ passed: 'passed', failed: 'killed', loops: 'killed', late: 'does not end' } as const)[last]
}
