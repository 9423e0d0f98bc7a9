// Runs seeds with each planted fault in turn, and says in how many of them the checker found it, and by which promise. A sabotage
// ends early once it was found.

import { UsageError } from '../../fuzz/command-line.ts'
import type { Options } from '../command-line.ts'
import { runLanes } from '../lanes.ts'
import type { PromiseNumber } from '../promises.ts'
import { type Sabotage, sabotages } from './sabotages.ts'

export type SabotageResult = {
  readonly name: string
  readonly promise: readonly PromiseNumber[]
  /** Seeds in which the checker found one of these promises broken. */
  readonly foundIn: number
  readonly seeds: number
  /** The first seed that found it. */
  readonly first: number | null
  /** Every promise that was broken, and in how many seeds. */
  readonly broken: Readonly<Record<string, number>>
}

export const findSabotages = async (
  options: Options,
): Promise<{ results: SabotageResult[]; summary: string; table: string }> => {
  const results: SabotageResult[] = []
  const most = 'seeds' in options.until ? options.until.seeds : 0
  const isWanted = ({ name, file }: Sabotage): boolean => `${name} ${file}`.includes(options.only)
  const wanted = sabotages.filter(isWanted)
  if (wanted.length === 0) throw new UsageError(`no planted fault has ${options.only} in its name or file`)
  for (const { name, promise } of wanted) {
    let next = options.first
    let seeds = 0
    const found: number[] = []
    const broken: Record<string, number> = {}
    await runLanes({
      lanes: options.lanes,
      folder: options.keep,
      sabotage: name,
      // More than one finds it where others were under way.
      next: () => (next - options.first >= most || found.length > 0 ? undefined : next++),
      shrink: () => false,
      onJudged: ({ seed, verdict, stalledMs }) => {
        seeds += 1
        if (stalledMs !== undefined) return
        const promises = new Set(verdict.violations.map(each => each.promise))
        if (promise.some(each => promises.has(each))) found.push(seed)
        for (const each of promises) broken[each] = (broken[each] ?? 0) + 1
      },
      // Says nothing of the checker.
      onFailed: (seed, why) => {
        seeds += 1
        process.stderr.write(`${name}, seed ${seed}: ${why.split('\n')[0]}\n`)
      },
    })
    const first = found.length > 0 ? Math.min(...found) : null
    results.push({ name, promise, foundIn: found.length, seeds, first, broken })
    process.stderr.write(`${name}: found in ${found.length} of ${seeds} seeds\n`)
  }
  return { results, summary: summaryOf(results), table: tableOf(results) }
}

/** How many were found, and the five that took most seeds. */
const summaryOf = (results: readonly SabotageResult[]): string => {
  const found = results.filter(({ foundIn }) => foundIn > 0)
  const rarest = found.toSorted((a, b) => b.seeds / b.foundIn - a.seeds / a.foundIn).slice(0, 5)
  return [
    `${found.length} of ${results.length} planted faults were found. These were the rarest:`,
    '',
    ...rarest.map(({ name, foundIn, seeds }) => `- ${name}: in ${foundIn} of ${seeds} seeds`),
  ].join('\n')
}

const tableOf = (results: readonly SabotageResult[]): string =>
  [
    '| fault | found in | promises broken |',
    '|---|--:|---|',
    ...results.map(
      ({ name, foundIn, seeds, broken }) =>
        `| ${name} | ${foundIn} of ${seeds} | ${Object.keys(broken).join(', ')} |`,
    ),
  ].join('\n')
