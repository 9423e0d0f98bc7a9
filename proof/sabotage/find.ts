// Runs seeds with each planted fault in turn, and says in how many of them the checker found it, and by which promise. A sabotage
// ends early once it was found often enough.

import type { Options } from '../command-line.ts'
import { runLanes } from '../lanes.ts'
import type { PromiseNumber } from '../promises.ts'
import { sabotages } from './sabotages.ts'

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
): Promise<{ results: SabotageResult[]; text: string }> => {
  const results: SabotageResult[] = []
  for (const { name, promise } of sabotages) {
    const most = 'seeds' in options.until ? options.until.seeds : 0
    let seed = options.first
    let seeds = 0
    const found: number[] = []
    const broken: Record<string, number> = {}
    const note = (number: number, promises: readonly PromiseNumber[]): void => {
      seeds += 1
      if (promises.some(each => promise.includes(each))) found.push(number)
      for (const each of new Set(promises)) broken[each] = (broken[each] ?? 0) + 1
    }
    await runLanes({
      lanes: options.lanes,
      folder: options.keep,
      sabotage: name,
      // More than one finds it where others were under way.
      next: () => (seed - options.first >= most || found.length > 0 ? undefined : seed++),
      shrink: () => false,
      onJudged: ({ seed: number, verdict, stalledMs }) =>
        note(number, stalledMs === undefined ? verdict.violations.map(each => each.promise) : []),
      // Says nothing of the checker.
      onFailed: (number, why) => {
        process.stderr.write(`${name}, seed ${number}: ${why.split('\n')[0]}\n`)
        note(number, [])
      },
    })
    const result = {
      name,
      promise,
      foundIn: found.length,
      seeds,
      first: Math.min(...found),
      broken,
    }
    results.push({ ...result, first: found.length > 0 ? result.first : null })
    process.stderr.write(`${name}: found in ${found.length} of ${seeds} seeds\n`)
  }
  return { results, text: textOf(results) }
}

const textOf = (results: readonly SabotageResult[]): string => {
  const found = results.filter(({ foundIn }) => foundIn > 0).length
  return [
    `${found} of ${results.length} planted faults were found.`,
    '',
    '| fault | found in | first seed | promises broken (seeds) |',
    '| --- | --: | --: | --- |',
    ...results.map(
      ({ name, foundIn, seeds, first, broken }) =>
        `| ${name} | ${foundIn} of ${seeds} | ${first ?? '–'} | ${Object.entries(broken)
          .map(([promise, times]) => `${promise} (${times})`)
          .join(', ')} |`,
    ),
  ].join('\n')
}
