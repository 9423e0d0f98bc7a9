// Rewrites the part of a page that the fuzzer measured: one for all targets, and one for a target alone, which has its kinds of cases.

import { measuredWith, readMarkedPart, writeMarkedPart } from './marked-part.ts'
import type { Ran } from './run-target.ts'
import { counted, kindsOf, tableOf } from './summary.ts'
import { memoryLimitText } from './system/memory-limit.ts'

const partOf = (targets: readonly string[]): string => (targets.length === 1 ? `fuzz-${targets[0]}` : 'fuzz')

/** @throws UsageError when the page lacks the markers */
export const checkReport = async (file: string, targets: readonly string[]): Promise<void> =>
  void (await readMarkedPart(file, partOf(targets)))

/** @throws UsageError as `checkReport` does */
export const writeReport = (file: string, seed: number, ran: readonly Ran[]): Promise<void> =>
  writeMarkedPart(file, partOf(ran.map(({ target }) => target.name)), measured(seed, ran))

const measured = (seed: number, ran: readonly Ran[]): string => {
  const faults = ran.reduce((sum, one) => sum + one.faults.length, 0)
  const cases = ran.reduce((sum, one) => sum + one.cases, 0)
  const seconds = ran.reduce((sum, one) => sum + one.seconds, 0)
  return `
${counted(cases)} cases in ${counted(Math.round(seconds))} s, ${faults === 0 ? 'no fault' : `${faults} faults`}.

${measuredWith(`seed ${seed}`)}
- ${memoryLimitText}

${tableOf(ran)}
${ran.length === 1 ? `\n${kindsOf(ran)}\n` : ''}`
}
