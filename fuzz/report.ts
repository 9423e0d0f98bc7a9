// Rewrites the measured part of a page, between two markers, and nothing else.

import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { UsageError } from './command-line.ts'
import type { Ran } from './run-target.ts'
import { counted, tableOf } from './summary.ts'
import { memoryLimitText } from './system/memory-limit.ts'

const begin = '<!-- fuzz: begin -->'
const end = '<!-- fuzz: end -->'

/** The page, and where its measured part begins and ends. @throws UsageError when it lacks the markers */
export const readReport = async (file: string): Promise<{ page: string; from: number; to: number }> => {
  const page = await readFile(file, 'utf8').catch(() => '')
  const [from, to] = [page.indexOf(begin) + begin.length, page.indexOf(end)]
  if (!page.includes(begin) || to < from)
    throw new UsageError(`--report is ${file}, which does not hold ${begin} and ${end}`)
  return { page, from, to }
}

/** @throws UsageError as `readReport` does */
export const writeReport = async (file: string, seed: number, ran: readonly Ran[]): Promise<void> => {
  const { page, from, to } = await readReport(file)
  await writeFile(file, `${page.slice(0, from)}\n${measured(seed, ran)}\n${page.slice(to)}`)
}

const measured = (seed: number, ran: readonly Ran[]): string => {
  const faults = ran.reduce((sum, one) => sum + one.faults.length, 0)
  const cases = ran.reduce((sum, one) => sum + one.cases, 0)
  const seconds = ran.reduce((sum, one) => sum + one.seconds, 0)
  const redis = spawnSync('redis-server', ['--version']).stdout?.toString() ?? ''
  return `
${counted(cases)} cases in ${counted(Math.round(seconds))} s, ${faults === 0 ? 'no fault' : `${faults} faults`}.

- ${new Date().toISOString().slice(0, 10)}, seed ${seed}
- Node ${process.version}, Redis ${/v=(\S+)/.exec(redis)?.[1] ?? 'not found'}, Linux (${process.arch}), ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB
- ${memoryLimitText}

${tableOf(ran)}
`
}
