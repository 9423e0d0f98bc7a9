// The mix in an open loop: requests at a fixed rate, from `abohawa replay`. Latency counts from the instant at which a request was
// due, so that it includes the wait behind a slow answer.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { product } from '../../test/support/process.ts'
import { bars } from '../bars.ts'
import { count, type Finding, ms, type Result } from '../row.ts'
import { outputOf } from './command-output.ts'
import type { Contender, World } from './contender.ts'
import { connections } from './load.ts'
import type { Mix } from './mix-traffic.ts'
import { loadCores, onCores } from './pinned.ts'
import { awayFromTurn } from './world.ts'

/** A contender, and how many requests a second it receives. */
export type OpenLoop = {
  readonly contender: Contender
  /** A short name, for the drawing. */
  readonly name: string
  readonly rate: number
}

export type OpenFigures = {
  readonly name: string
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly sent: number
  /** Sent more than 10 ms after they were due, and never sent. */
  readonly late: number
  readonly dropped: number
  /** Without an answer, and with another status than 200 and 304. */
  readonly failed: number
  readonly wrong: number
  /** Why the sender itself was the limit; null where it was not. */
  readonly senderReason: string | null
}

type ReplayResult = {
  readonly totals: { sent: number; late: number; dropped: number; failed: Record<string, number> }
  readonly statuses: Record<string, number>
  readonly latency: { p50: number; p99: number; p999: number }
  readonly generator: { reason: string | null }
}

// Other work on the machine only makes a server slower.
const passes = 2

/** All of them in turn, some times; of each the pass with the lowest p99. */
export const measureOpenLoops = async (
  world: World,
  mix: Mix,
  keys: readonly string[],
  loops: readonly OpenLoop[],
  seconds: number,
  progress: (text: string) => void,
): Promise<OpenFigures[]> => {
  const all = loops.map(loop => ({ loop, figures: [] as OpenFigures[] }))
  for (let pass = 1; pass <= passes; pass++)
    for (const { loop, figures } of all) {
      progress(`open loop ${pass} of ${passes}, ${loop.name}`)
      figures.push(await sendInOpenLoop(world, mix, keys, loop, seconds))
    }
  return all.flatMap(({ figures }) => figures.toSorted((a, b) => a.p99 - b.p99).slice(0, 1))
}

export const sendInOpenLoop = async (
  { folder }: World,
  { file }: Mix,
  keys: readonly string[],
  { contender, name, rate }: OpenLoop,
  seconds: number,
): Promise<OpenFigures> => {
  await awayFromTurn(seconds)
  await contender.tidy?.()
  const { url } = await contender.workload()
  const keysFile = join(folder, 'mix-keys.json')
  const ids = keys.map((key, i) => ({ externalId: `key-${String(i + 1).padStart(4, '0')}`, key }))
  await writeFile(keysFile, JSON.stringify(ids))
  const args = [
    ['replay', file, '--target', url, '--keys', keysFile, '--loop', '--json'],
    [
      '--rate',
      String(rate),
      '--duration',
      `${seconds + warmUpSeconds}s`,
      '--connections',
      String(connections),
    ],
    ['--warm-up', `${warmUpSeconds}s`],
  ].flat()
  const { totals, statuses, latency, generator } = JSON.parse(
    await outputOf(...onCores(loadCores, product, args)),
  ) as ReplayResult
  const total = (counts: Record<string, number>, less: readonly string[] = []): number =>
    Object.entries(counts).reduce((sum, [of, many]) => (less.includes(of) ? sum : sum + many), 0)
  return {
    name,
    rate,
    p50: latency.p50,
    p99: latency.p99,
    p999: latency.p999,
    sent: totals.sent,
    late: totals.late,
    dropped: totals.dropped,
    failed: total(totals.failed),
    wrong: total(statuses, ['200', '304']),
    senderReason: generator.reason,
  }
}

const warmUpSeconds = 3

const faultsOf = ({ failed, wrong }: OpenFigures): string =>
  failed + wrong === 0 ? '' : `; ${count(failed)} failed, ${count(wrong)} of another status`

export const openFindings = (all: readonly OpenFigures[]): Finding[] =>
  all.map(one => ({
    what: `open loop, ${one.name}`,
    bar: '—',
    measured:
      `p50 ${one.p50.toFixed(2)}, p99 ${one.p99.toFixed(2)}, p99.9 ${one.p999.toFixed(2)} ms at ${count(one.rate)} a second; ` +
      `${count(one.late)} of ${count(one.sent)} late, ${count(one.dropped)} dropped${faultsOf(one)}; ` +
      (one.senderReason === null ? 'the sender was in time' : `the sender: ${one.senderReason}`),
    met: null,
    figures: { ...one, senderReason: one.senderReason ?? '' },
  }))

/** @param ours at half of its capacity, and the plain server at the same rate */
export const openBars = (ours: OpenFigures, raw: OpenFigures): Finding[] => {
  const isWhole = ours.failed + ours.wrong + ours.dropped === 0
  return [
    {
      what: 'the mix at half of its capacity, open loop: p99, of raw at the same rate',
      bar: '≤ 3 ×',
      measured: `${(ours.p99 / raw.p99).toFixed(2)} × (${ours.p99.toFixed(2)} of ${raw.p99.toFixed(2)} ms)`,
      met: isWhole && ours.p99 <= 3 * raw.p99,
      figures: { ours: ours.p99, raw: raw.p99 },
    },
    {
      what: 'the same: p99.9',
      bar: '≤ 10 ms',
      measured: `${ms(ours.p999)}; raw ${ms(raw.p999)}`,
      met: isWhole && ours.p999 <= 10,
      figures: { ours: ours.p999, raw: raw.p999 },
    },
  ]
}

export const openDrawing = (all: readonly OpenFigures[]): NonNullable<Result['drawings']> => ({
  'performance-mix-open.svg': {
    caption:
      'p50, p99 and p99.9 in ms in an open loop at half of the capacity of each, and of raw at the same rate as Abohawa',
    svg: bars({
      title: 'Latency in ms from the due instant, at a fixed rate',
      kinds: ['p50', 'p99', 'p99.9'],
      bars: all.map(({ name, p50, p99, p999 }) => ({ name, values: [p50, p99, p999] })),
      digits: 2,
    }),
  },
})
