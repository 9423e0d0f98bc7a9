// Prints what `npm test` gives to tap: files, written here, that each run several test files one after the other (sharing.ts),
// because starting a process and loading tap, the product and its packages takes longer than many a test. With `--quick` only
// those of tests that start no process. Files that end their process or measure its memory are alone, as is one by its name.

import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

export const allFiles = (): string[] => globSync('test/**/*.test.ts', { cwd: root }).sort()

const known = new Map<string, boolean>()
/** Whether a file or one that it imports can start a process. Those of `src` and packages start none by being imported. */
export const startsProcess = (file: string): boolean => {
  const found = known.get(file)
  if (found !== undefined) return found
  known.set(file, false)
  const text = textOf(file)
  const imported = [...text.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, path = '']) =>
    join(dirname(file), path),
  )
  const starts =
    /'node:(child_process|worker_threads|cluster)'|playwright-core/.test(text) ||
    imported.some(path => path.startsWith('test/') && startsProcess(path))
  known.set(file, starts)
  return starts
}

// Each process loads tap, the product and what scenarios need; few and large ones would leave the last alone at the end.
const [quickAtMost, othersAtMost] = [40, 9]

/** The files of each process. Those of a folder are spread over all, so that none has only slow ones. */
const shared = (files: readonly string[], atMost: number): string[][] => {
  const count = Math.ceil(files.length / atMost)
  return Array.from({ length: count }, (_, group) => files.filter((_, i) => i % count === group))
}

/**
 * The files of each process, in the order in which they begin. Those of many files take longest and wait most, so they are spread
 * over the others; short ones come last, so that hardly one is left alone at the end.
 * @param isQuick only those that start no process
 */
export const sharedProcesses = (isQuick: boolean): string[][] => {
  const files = allFiles().filter(file => !isQuick || !startsProcess(file))
  const alone = files.filter(file => /\bprocess\.exit\(|memoryUsage|\bgc\(\)/.test(textOf(file)))
  const together = files.filter(file => !alone.includes(file))
  const quick = shared(
    together.filter(file => !startsProcess(file)),
    quickAtMost,
  )
  const others = shared(together.filter(startsProcess), othersAtMost)
  const apart = others.length / (quick.length + 1)
  const spread = quick.flatMap((group, i) => [
    group,
    ...others.slice(Math.round(i * apart), Math.round((i + 1) * apart)),
  ])
  return [...spread, ...others.slice(Math.round(quick.length * apart)), ...alone.map(file => [file])]
}

const written = join('.tap', 'together')

const pathOf = (files: readonly string[], i: number): string => {
  const [alone = '', ...more] = files
  if (more.length === 0) return alone
  // tap begins them in the order of their names, and with such a name a file comes behind them.
  const path = join(written, `${String(i + 1).padStart(3, '0')}.test.mjs`)
  const list = files.map(file => `  '${relative(written, file)}',\n`).join('')
  const runner = relative(written, 'test/runner/sharing.ts')
  const text = `import { runTogether } from '${runner}'\n\nawait runTogether(import.meta.url, [\n${list}])\n`
  writeFileSync(join(root, path), text)
  return path
}

if (import.meta.main) {
  rmSync(join(root, written), { recursive: true, force: true })
  mkdirSync(join(root, written), { recursive: true })
  process.stdout.write(`${sharedProcesses(process.argv.includes('--quick')).map(pathOf).join('\n')}\n`)
}
