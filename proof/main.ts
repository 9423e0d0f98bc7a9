// `npm run proof`: takes seeded schedules of faults with a fleet, has their histories checked, and reports which promises held. Exit
// code: 0 all held, 1 one was broken, 2 usage error.

import { runMain } from '../fuzz/command-line.ts'
import { measuredWith, readMarkedPart, writeMarkedPart } from '../fuzz/marked-part.ts'
import { type Options, readCommandLine, usage } from './command-line.ts'
import type { Judged } from './lane-process.ts'
import { runLanes } from './lanes.ts'
import { faultsText, hasBroken, headOf, type Summary, summaryOf, tableOf } from './tally.ts'

const onTerminalEveryMs = 200
const elsewhereEveryMs = 10_000
const shrunkAtMost = 5

/** What a run has found until now, for whoever interrupts it. */
let textSoFar = (): string => ''

const prove = async (options: Options): Promise<Summary> => {
  const { first, until } = options
  const judged: Judged[] = []
  const failed: { seed: number; why: string }[] = []
  const begun = performance.now()
  const passedMs = (): number => performance.now() - begun
  const broken = (): number => judged.filter(hasBroken).length
  const summary = (): Summary => summaryOf({ seconds: passedMs() / 1_000, judged, failed })
  textSoFar = () => textOf(summary(), options)
  let seed = first
  let shownAt = 0
  const show = (): void => {
    const { isTTY } = process.stderr
    if (passedMs() - shownAt < (isTTY ? onTerminalEveryMs : elsewhereEveryMs)) return
    shownAt = passedMs()
    const text = `seed ${seed - 1}: ${judged.length} histories, ${broken()} broke a promise, ${Math.round(shownAt / 1_000)} s`
    process.stderr.write(isTTY ? `\r\x1b[K${text}` : `${text}\n`)
  }
  await runLanes({
    lanes: options.lanes,
    folder: options.keep,
    next: () => {
      const isEnough = options.failFast && broken() > 0
      const isOver = isEnough || ('ms' in until ? passedMs() >= until.ms : seed - first >= until.seeds)
      return isOver ? undefined : seed++
    },
    isPrinted: options.verbose,
    shrink: () => !options.verbose && !options.failFast && broken() < shrunkAtMost,
    onJudged: ({ printed = '', ...one }) => {
      process.stdout.write(printed)
      judged.push(one)
      show()
    },
    onFailed: (one, why) => void failed.push({ seed: one, why }),
  })
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  return summary()
}

const textOf = (summary: Summary, { json, verbose }: Options): string => {
  if (json) return `${JSON.stringify(summary)}\n`
  const faults = faultsText(summary)
  return verbose ? faults : `${headOf(summary)}\n\n${tableOf(summary)}\n\n${faults}`
}

const run = async (options: Options): Promise<number> => {
  const name = options.sabotage ? 'sabotage' : 'proof'
  // Checked first, because a run takes an hour.
  if (options.report !== undefined) await readMarkedPart(options.report, name)
  if (options.sabotage) {
    const { findSabotages } = await import('./sabotage/find.ts')
    const { results, summary, table } = await findSabotages(options)
    process.stdout.write(options.json ? `${JSON.stringify(results)}\n` : `${table}\n\n${summary}\n`)
    if (options.report !== undefined) await writeMarkedPart(options.report, name, `\n${summary}\n`)
    return results.every(({ foundIn }) => foundIn > 0) ? 0 : 1
  }
  const summary = await prove(options)
  process.stdout.write(textOf(summary, options))
  if (options.report !== undefined) {
    const taken = summary.seeds + summary.disturbed.length + summary.failed.length
    const seeds = `seeds ${options.first} to ${options.first + taken - 1}, ${options.lanes} processes at once`
    const part = `\n${headOf(summary)}\n\n${measuredWith(seeds)}\n\n${tableOf(summary)}\n`
    await writeMarkedPart(options.report, name, part)
  }
  return summary.faulty.length + summary.failed.length > 0 ? 1 : 0
}

// Each lane ends what it started when nobody sends it anything any more.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    process.stdout.write(textSoFar())
    process.exit(130)
  })

await runMain('proof', usage, readCommandLine, run)
