// Fresh processes, rounds and pairs. Processes of one build differ, so that every figure comes from a process that was just started:
// it is warmed, loaded for some seconds, checked and ended. The subjects take turns, so that each round gives pairs, and what disturbs
// the machine for a while counts for all of them.

import { setTimeout as pause } from 'node:timers/promises'
import { residentMiB } from '../test/support/proc.ts'
import { inScope, type Teardown } from '../test/support/teardown.ts'
import { until } from '../test/support/until.ts'
import {
  count,
  type Finding,
  found,
  judged,
  median,
  type Options,
  type Progress,
  type Result,
  rangeOf,
  type Table,
} from './row.ts'
import { busySecondsOf, cpuSecondsOf, type RedisCost, serverCore } from './tools/processes.ts'
import { type Loaded, load, type Workload } from './tools/wrk.ts'

/** A server that runs and has answered everything once. */
export type Running = {
  readonly pid: number
  workload(): Promise<Workload>
  /** @throws Error with a sentence when a response is not as expected */
  check(): Promise<void>
  /** The units counted so far, of a server that counts. */
  counted?(): Promise<number>
}

/** A server that can be started again and again. */
export type Subject = {
  readonly id: string
  readonly name: string
  readonly usesRedis?: boolean
  start(scope: Teardown): Promise<Running>
}

export type Sample = {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Microseconds of processor time of the server and of Redis for a response. */
  readonly cpuMicros: number
  readonly redisMicros: number
  /** The fraction of time that other processes kept the server's core busy. */
  readonly others: number
  /** Resident at the end. */
  readonly mebibytes: number
}

export type Measured = {
  readonly subject: Subject
  readonly samples: readonly Sample[]
  readonly answers: number
  /** As sentences. */
  readonly faults: readonly string[]
}

export type Place = { readonly folder: string; readRedis(): Promise<RedisCost> }

/** Sends the load. */
export type Send = (folder: string, workload: Workload, seconds: number) => Promise<Loaded>

/** Requests of any load that are under way at its end: counted, and not received. */
const inFlightAtMost = 200
/** Of load on a process at once before it is measured. */
export const warmSeconds = 2
// Before these V8 still compiles, and ours has more to compile than a server with one ready body: with TLS an answer took 53, 32 and
// 34 µs in the first seconds, and 26 after 110,000 answers.
const warmAnswers = 100_000
// A server of slow answers is measured as warm as it is then.
const warmingsAtMost = 4

/** Loads a server until it is as fast as it gets. */
export const warmUp = async (
  folder: string,
  running: Pick<Running, 'workload'>,
  seconds = warmSeconds,
  send: Send = load,
): Promise<void> => {
  for (let i = 0, given = 0; i < warmingsAtMost && given < warmAnswers; i++)
    given += (await send(folder, await running.workload(), seconds)).answers
}

/** One process, from its start to its end. */
const measureFresh = (
  { folder, readRedis }: Place,
  subject: Subject,
  { seconds, warm }: { readonly seconds: number; readonly warm: number },
  send: Send,
  warmWith: readonly Send[],
): Promise<{ sample: Sample; answers: number; faults: string[] }> =>
  inScope(async scope => {
    await awayFromTurn(warm * warmingsAtMost * warmWith.length + seconds)
    const running = await subject.start(scope)
    const faults: string[] = []
    const check = (): Promise<unknown> =>
      running.check().catch(error => faults.push(`${subject.id}: ${error.message}`))
    for (const one of warmWith) await warmUp(folder, running, warm, one)
    await check()
    const workload = await running.workload()
    const countedBefore = await settled(running)
    const [redisBefore, cpuBefore] = [await readRedis(), await cpuSecondsOf(running.pid)]
    const coreBefore = await busySecondsOf(serverCore)
    const { answers, seconds: took, p50, p99, wrong } = await send(folder, workload, seconds)
    const [redisAfter, cpuAfter] = [await readRedis(), await cpuSecondsOf(running.pid)]
    const [cpu, core] = [cpuAfter - cpuBefore, (await busySecondsOf(serverCore)) - coreBefore]
    const counted = (await settled(running)) - countedBefore
    await check()
    if (wrong > 0 || answers === 0) faults.push(`${subject.id}: ${wrong} of ${answers} answers were wrong`)
    if (counted < answers || counted > answers + inFlightAtMost)
      faults.push(`${subject.id}: ${counted} counted of ${answers} answers`)
    const redis = redisAfter.cpuSeconds - redisBefore.cpuSeconds
    const sample: Sample = {
      perSecond: answers / took,
      p50,
      p99,
      cpuMicros: (cpu * 1e6) / answers,
      redisMicros: subject.usesRedis ? (redis * 1e6) / answers : 0,
      others: Math.max(0, core - cpu) / took,
      mebibytes: residentMiB(running.pid),
    }
    return { sample, answers, faults }
  })

/** What a server has counted once nothing is in flight; NaN, which passes every comparison, where it counts nothing. */
const settled = async ({ counted }: Running): Promise<number> => {
  if (!counted) return Number.NaN
  let last = await counted()
  const isStill = async (): Promise<boolean> => {
    const before = last
    last = await counted()
    return before === last
  }
  await until('all is counted', isStill, { everyMs: 50 })
  return last
}

/**
 * So many fresh processes of each, in turn; who goes first changes with each round.
 * @param warmWith what warms a process, one after the other
 */
export const measureInRounds = async (
  place: Place,
  subjects: readonly Subject[],
  { rounds, seconds, warm = warmSeconds }: Pick<Options, 'rounds' | 'seconds'> & { readonly warm?: number },
  progress: Progress,
  send: Send = load,
  warmWith: readonly Send[] = [send],
): Promise<Measured[]> => {
  const measured = subjects.map(subject => ({
    subject,
    samples: [] as Sample[],
    answers: 0,
    faults: [] as string[],
  }))
  for (let round = 1; round <= rounds; round++)
    for (const one of round % 2 === 1 ? measured : measured.toReversed()) {
      progress(`round ${round} of ${rounds}, ${one.subject.id}`)
      const { sample, answers, faults } = await measureFresh(
        place,
        one.subject,
        { seconds, warm },
        send,
        warmWith,
      )
      one.samples.push(sample)
      one.answers += answers
      one.faults.push(...faults)
    }
  return measured
}

/** What two subjects are compared by: smaller is better. */
const measures = {
  cpu: { of: ({ cpuMicros }: Sample) => cpuMicros, unit: 'µs' },
  // Of two servers that keep their keys in Redis.
  both: { of: ({ cpuMicros, redisMicros }: Sample) => cpuMicros + redisMicros, unit: 'µs' },
  p99: { of: ({ p99 }: Sample) => p99, unit: 'ms' },
} as const

/** At most so many times the other's, at least so many times the answers that the other gives for as much, or at most so much more. */
type Bar = readonly [sign: '≤' | '≥' | '+ ≤', limit: number]
type Comparison = readonly [id: string, otherId: string, by: keyof typeof measures, ...bar: Bar | []]

/** One subject in terms of another: the median of the ratios, or differences, of each round, held against a bar where there is one. */
export const compare = (
  measured: readonly Measured[],
  what: string,
  [id, otherId, by, sign, limit = 1]: Comparison,
): Finding => {
  const { of, unit } = measures[by]
  const valuesOf = (wanted: string): number[] =>
    measured.find(({ subject }) => subject.id === wanted)?.samples.map(of) ?? []
  const [one, other] = [valuesOf(id), valuesOf(otherId)]
  const each = one.map((value, i) => {
    const its = other[i] ?? Number.NaN
    return sign === '+ ≤' ? value - its : sign === '≥' ? its / value : value / its
  })
  const [middle, sized] = [median(each), sign === '+ ≤' ? `${unit} more` : '×']
  const text = `${middle.toFixed(2)} ${sized} (${Math.min(...each).toFixed(2)}–${Math.max(...each).toFixed(2)}; ${median(one).toFixed(1)} of ${median(other).toFixed(1)} ${unit})`
  if (sign === undefined) return found(what, text, { each })
  const isMet = sign === '≥' ? middle >= limit : middle <= limit
  return judged(what, `${sign.slice(-1)} ${limit.toFixed(2)} ${sized}`, isMet, text, { each })
}

/** Whether all answers of all subjects were right and counted, and all samples. */
export const checked = (measured: readonly Measured[]): Finding => {
  const faults = measured.flatMap(one => one.faults)
  const answers = measured.reduce((total, one) => total + one.answers, 0)
  return judged(
    'all answers right and counted',
    'all',
    faults.length === 0,
    faults.length === 0
      ? count(answers)
      : `${faults.length} faults, such as ${[...new Set(faults)].slice(0, 3).join('; ')}`,
    Object.fromEntries(measured.map(({ subject, samples }) => [subject.name, samples])),
  )
}

/** The comparisons, whether all was right, and the table. */
export const resultOf = (
  measured: readonly Measured[],
  comparisons: Readonly<Record<string, Comparison>>,
): Result => ({
  findings: [
    ...Object.entries(comparisons).map(([what, comparison]) => compare(measured, what, comparison)),
    checked(measured),
  ],
  table: tableOf(measured),
})

/** Medians of the processes; those of p99 and CPU with the smallest and the largest. */
export const tableOf = (measured: readonly Measured[]): Table => ({
  head: ['server', 'answers/s', 'p50 ms', 'p99 ms', 'CPU µs', 'Redis µs'],
  lines: measured.map(({ subject, samples }) => {
    const valuesOf = (name: keyof Sample): number[] => samples.map(one => one[name])
    return [
      subject.name,
      count(median(valuesOf('perSecond'))),
      median(valuesOf('p50')).toFixed(1),
      rangeOf(valuesOf('p99'), 1),
      rangeOf(valuesOf('cpuMicros'), 1),
      subject.usesRedis ? median(valuesOf('redisMicros')).toFixed(1) : '—',
    ]
  }),
})

const quarterMs = 900_000
/** To start a process and request everything once. */
const preparesForMs = 30_000

/** Bodies change with the quarter-hour: waits until after its end if that falls into the coming seconds of a load. */
const awayFromTurn = async (seconds: number): Promise<void> => {
  const left = quarterMs - (Date.now() % quarterMs)
  if (left < seconds * 1000 + preparesForMs) await pause(left + 500)
}
