// Rounds of all contenders in turn: load on each for some seconds, its answers looked at and its own counts compared
// with those of the load before and after. Finds figures and faults, judges nothing.

import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { median } from '../row.ts'
import type { Contender, Counters, World } from './contender.ts'
import { connections, load } from './load.ts'
import { busySecondsOf, cpuSecondsOf, serverCores } from './pinned.ts'
import { awayFromTurn } from './world.ts'

export type Sample = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Microseconds of the server's processor time for an answer. */
  readonly cpuMicros: number
  /** Share of its core that the server was busy. */
  readonly busy: number
  /** Share of that core that went to anything else. */
  readonly others: number
}

export type Measured = {
  readonly contender: Contender
  readonly samples: readonly Sample[]
  readonly answers: number
  /** What was wrong, as sentences. */
  readonly faults: readonly string[]
}

export const best = ({ samples }: Measured): number => Math.max(...samples.map(one => one.perSecond))
export const medianOf = ({ samples }: Measured, name: keyof Sample): number =>
  median(samples.map(one => one[name]))
export const leastOf = ({ samples }: Measured, name: keyof Sample): number =>
  Math.min(...samples.map(one => one[name]))

export const measureInRounds = async (
  world: World,
  contenders: readonly Contender[],
  { rounds, seconds }: { rounds: number; seconds: number },
  progress: (text: string) => void,
): Promise<Measured[]> => {
  const measured = contenders.map(contender => ({
    contender,
    samples: [] as Sample[],
    answers: 0,
    faults: [] as string[],
  }))
  // The first round is for warming up; its answers are checked like the others.
  for (let round = 0; round <= rounds; round++)
    for (const one of measured) {
      progress(`round ${round} of ${rounds}, ${one.contender.id}`)
      await awayFromTurn(seconds)
      const { sample, answers, faults } = await measureOnce(world, one.contender, seconds)
      one.faults.push(...faults)
      one.answers += answers
      if (round > 0 && sample) one.samples.push(sample)
    }
  return measured
}

type Once = { readonly sample?: Sample; readonly answers: number; readonly faults: readonly string[] }

const measureOnce = async ({ folder }: World, contender: Contender, seconds: number): Promise<Once> => {
  const faults: string[] = []
  const check = (): Promise<void> => contender.check().catch(error => void faults.push(String(error.message)))
  await check()
  await contender.tidy?.()
  const workload = await contender.workload()
  const before = await settled(contender)
  const [cpuBefore, coreBefore] = [await cpuSecondsOf(contender.pid), await busySecondsOf(serverCores[0])]
  const { answers, seconds: took, p50, p99, wrong } = await load(folder, workload, seconds)
  const cpu = (await cpuSecondsOf(contender.pid)) - cpuBefore
  const core = (await busySecondsOf(serverCores[0])) - coreBefore
  const after = await settled(contender)
  await check()
  if (wrong > 0) faults.push(`${wrong} answers of ${answers} were of 400 and above, or none came`)
  faults.push(...faultsOf(before, after, answers))
  if (answers === 0) return { answers, faults }
  const sample = {
    perSecond: answers / took,
    p50,
    p99,
    cpuMicros: (cpu * 1e6) / answers,
    busy: cpu / took,
    others: Math.max(0, core - cpu) / took,
  }
  return { sample, answers, faults }
}

/** What a server counted when nothing is under way any more: requests in flight at the end of a load still arrive. */
const settled = async (contender: Contender): Promise<Counters> => {
  if (contender.settlesForMs) await pause(contender.settlesForMs)
  let last = await contender.counters?.()
  await until(
    `${contender.id} has counted all`,
    async () => {
      const now = await contender.counters?.()
      const still = JSON.stringify(now) === JSON.stringify(last)
      last = now
      return still
    },
    10_000,
    10,
  )
  return last ?? {}
}

/**
 * Every answer that the load saw must have been right and counted, and no more was counted but what was in flight when
 * the load hung up; and what a server counts in several places must agree.
 */
const faultsOf = (before: Counters, after: Counters, answers: number): string[] => {
  const grown = (name: keyof Counters): number | undefined => {
    const value = after[name]
    return value === undefined ? undefined : value - (before[name] ?? 0)
  }
  const [counted, right, others = 0, logged] = [
    grown('counted'),
    grown('right'),
    grown('others'),
    grown('logged'),
  ]
  const faults: string[] = []
  if (counted !== undefined && (counted < answers || counted > answers + connections))
    faults.push(`${counted} counted of ${answers} answers`)
  if (right !== undefined && right < answers)
    faults.push(`${right} of ${answers} answers had the right status`)
  if (right !== undefined && right + others !== counted)
    faults.push(`${counted} counted of ${right + others} in the metrics`)
  if (logged !== undefined && logged !== counted)
    faults.push(`${logged} lines in the log of ${counted} counted`)
  return faults
}
