// Rounds of all contenders in turn: starts each anew, puts load on it for some seconds, checks its responses, and compares its own
// counters with those of the load, before and after. Processes of one build differ, so that a round is a process. A run that other work disturbed is repeated. Returns figures and faults;
// judge.ts holds them against bars.

import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../test/support/until.ts'
import { median } from '../row.ts'
import type { Contender, Counters, World } from './contender.ts'
import { connections, type Loaded, load, type Workload } from './load.ts'
import { busySecondsOf, cpuSecondsOf, serverCores } from './pinned.ts'
import { awayFromTurn } from './world.ts'

export type Sample = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Microseconds of the server's processor time per response. */
  readonly cpuMicros: number
  /** The fraction of time that the server kept its core busy. */
  readonly busy: number
  /** The fraction of time that other processes kept that core busy. */
  readonly others: number
  /** Microseconds of Redis' processor time per response, and its commands. */
  readonly redisMicros: number
  readonly redisCommands: number
}

export type Measured = {
  readonly contender: Contender
  /** Of each round the run that others disturbed least. */
  readonly samples: readonly Sample[]
  /** How many runs were repeated. */
  readonly repeated: number
  readonly answers: number
  /** Of those, on a connection that resumed a TLS session. */
  readonly resumed: number
  /** Faults, as sentences. */
  readonly faults: readonly string[]
}

export const medianOf = ({ samples }: Measured, name: keyof Sample): number =>
  median(samples.map(one => one[name]))
/** The median of the processes, then the smallest and the largest. */
export const rangeOf = ({ samples }: Measured, name: keyof Sample, digits: number): string => {
  const values = samples.map(one => one[name])
  const [least, most] = [Math.min(...values), Math.max(...values)]
  return `${median(values).toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`
}

/** The fraction of the server's core that others may use in a run; what the kernel does for its sockets is a part of it. */
export const maxOthers = 0.05
export const isDisturbed = ({ others }: Sample): boolean => others > maxOthers
/** Of load on a process before it is measured. */
const warmUpSeconds = 2
// Of all runs of a row, so that it ends in time on a machine that is never quiet.
const maxRepeatedShare = 0.25

/** Who sends the load, and how many requests of it are under way at once. */
type Sending = {
  readonly load: (folder: string, workload: Workload, seconds: number) => Promise<Loaded>
  readonly inFlight: number
}

export const measureInRounds = async (
  world: World,
  contenders: readonly Contender[],
  { rounds, seconds }: { rounds: number; seconds: number },
  progress: (text: string) => void,
  sending: Sending = { load, inFlight: connections },
): Promise<Measured[]> => {
  const measured = contenders.map(contender => ({
    contender,
    samples: [] as Sample[],
    repeated: 0,
    answers: 0,
    resumed: 0,
    faults: [] as string[],
  }))
  const run = async (one: (typeof measured)[number], what: string): Promise<Sample | undefined> => {
    progress(`${what}, ${one.contender.id}`)
    await awayFromTurn(warmUpSeconds + seconds)
    await one.contender.renew()
    await sending.load(world.folder, await one.contender.workload(), warmUpSeconds)
    const { sample, answers, resumed, faults } = await measureOnce(world, one.contender, seconds, sending)
    one.faults.push(...faults)
    one.answers += answers
    one.resumed += resumed
    return sample
  }
  let repeats = Math.ceil(rounds * contenders.length * maxRepeatedShare)
  for (let round = 1; round <= rounds; round++)
    for (const one of measured) {
      const name = `round ${round} of ${rounds}`
      let sample = await run(one, name)
      if (!sample) continue
      if (isDisturbed(sample) && repeats > 0) {
        repeats -= 1
        one.repeated += 1
        const again = await run(
          one,
          `${name} again, because others used ${(sample.others * 100).toFixed(0)} %`,
        )
        if (again && again.others < sample.others) sample = again
      }
      one.samples.push(sample)
    }
  return measured
}

type Once = Pick<Measured, 'answers' | 'resumed' | 'faults'> & { readonly sample?: Sample }

const nothing = { cpuSeconds: 0, commands: 0 }

const measureOnce = async (
  { folder, readRedis }: World,
  contender: Contender,
  seconds: number,
  sending: Sending,
): Promise<Once> => {
  const redis = async () => (await readRedis?.()) ?? nothing
  const faults: string[] = []
  const check = (): Promise<void> => contender.check().catch(error => void faults.push(String(error.message)))
  await check()
  await contender.tidy?.()
  const workload = await contender.workload()
  const before = await settled(contender)
  const [cpuBefore, coreBefore] = [await cpuSecondsOf(contender.pid()), await busySecondsOf(serverCores[0])]
  const redisBefore = await redis()
  const {
    answers,
    seconds: took,
    p50,
    p99,
    wrong,
    resumed = 0,
  } = await sending.load(folder, workload, seconds)
  const redisAfter = await redis()
  const cpu = (await cpuSecondsOf(contender.pid())) - cpuBefore
  const core = (await busySecondsOf(serverCores[0])) - coreBefore
  const after = await settled(contender)
  await check()
  if (wrong > 0) faults.push(`${wrong} answers of ${answers} were of 400 and above, or none came`)
  if (answers + sending.inFlight > (contender.maxAnswers ?? Number.POSITIVE_INFINITY))
    faults.push(`${answers} answers, so that requests were repeated`)
  faults.push(...faultsOf(before, after, answers, sending.inFlight))
  const wanted = workload.handshakes?.kind === 'resumed' ? answers : 0
  if (resumed !== wanted) faults.push(`${resumed} of ${answers} connections were resumed, not ${wanted}`)
  if (answers === 0) return { answers, resumed, faults }
  const sample = {
    perSecond: answers / took,
    p50,
    p99,
    cpuMicros: (cpu * 1e6) / answers,
    busy: cpu / took,
    others: Math.max(0, core - cpu) / took,
    redisMicros: ((redisAfter.cpuSeconds - redisBefore.cpuSeconds) * 1e6) / answers,
    redisCommands: (redisAfter.commands - redisBefore.commands) / answers,
  }
  return { sample, answers, resumed, faults }
}

/** The counters of a server once nothing is in flight: the last requests of a load arrive after it ends. */
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
 * Every response that the load received must be correct and counted. The server may count only the requests in flight at
 * the end of the load beyond these. Its own counters must agree with each other.
 */
const faultsOf = (before: Counters, after: Counters, answers: number, inFlight: number): string[] => {
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
  if (counted !== undefined && (counted < answers || counted > answers + inFlight))
    faults.push(`${counted} counted of ${answers} answers`)
  if (right !== undefined && right < answers)
    faults.push(`${right} of ${answers} answers had the right status`)
  if (right !== undefined && right + others !== counted)
    faults.push(`${counted} counted of ${right + others} in the metrics`)
  if (logged !== undefined && logged !== counted)
    faults.push(`${logged} lines in the log of ${counted} counted`)
  return faults
}
