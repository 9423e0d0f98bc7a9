// Which test files share a process: those that start none, and the others a few at a time. Each file is in one of them, and those
// that end their process or measure its memory are alone.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { allFiles, quickFiles } from './quick-files.ts'

const root = join(import.meta.dirname, '..', '..')
// Each process loads tap, the product and what scenarios need; few and large ones would leave the last alone at the end.
const [quickAtMost, othersAtMost] = [40, 9]

const isAlone = (file: string): boolean =>
  /\bprocess\.exit\(|memoryUsage|\bgc\(\)/.test(readFileSync(join(root, file), 'utf8'))

/** The files of each process. Those of a folder are spread over all, so that none has only slow ones. */
const shared = (files: readonly string[], atMost: number): string[][] => {
  const count = Math.ceil(files.length / atMost)
  return Array.from({ length: count }, (_, group) => files.filter((_, i) => i % count === group))
}

/** Those of one list spread evenly over the other. */
const spreadOver = <Item>(some: readonly Item[], others: readonly Item[]): Item[] => {
  const apart = others.length / (some.length + 1)
  return some
    .flatMap((item, i) => [item, ...others.slice(Math.round(i * apart), Math.round((i + 1) * apart))])
    .concat(others.slice(Math.round(some.length * apart)))
}

/**
 * In the order in which they begin. Those of many files take longest and wait most, so they are spread over the others; short ones
 * come last, so that hardly one is left alone at the end.
 * @param isQuick only those that start no process
 */
export const sharedProcesses = (isQuick: boolean): string[][] => {
  const files = isQuick ? quickFiles() : allFiles()
  const quick = new Set(quickFiles())
  const alone = files.filter(isAlone)
  const together = files.filter(file => !alone.includes(file))
  const quickProcesses = shared(
    together.filter(file => quick.has(file)),
    quickAtMost,
  )
  const others = shared(
    together.filter(file => !quick.has(file)),
    othersAtMost,
  )
  return [...spreadOver(quickProcesses, others), ...alone.map(file => [file])]
}
