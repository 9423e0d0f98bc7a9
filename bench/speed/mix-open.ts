// The mix in an open loop: requests at a fixed rate, from `abohawa replay`. Latency counts from the instant at which a request was
// due, so that it includes the wait behind a slow answer. Short runs in turn, of which the medians count: a disturbance of the
// machine moves one run and not the figure.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { product } from '../../test/support/process.ts'
import { bars } from '../bars.ts'
import { count, type Finding, median, type Result, sorted, sum } from '../row.ts'
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

/** How long a run of a pair lasts. */
export const pairSeconds = 4
// The others are no part of a pair, and fewer runs are enough for a figure without a bar.
const othersEvery = 5

/** The runs of one loop. */
export type OpenRuns = { readonly name: string; readonly rate: number; readonly runs: readonly OpenFigures[] }

/** Runs of two loops in turn, so many of each, and of the other loops now and then. */
export const measureOpenPairs = async (
  world: World,
  mix: Mix,
  keys: readonly string[],
  { pair, others }: { readonly pair: readonly OpenLoop[]; readonly others: readonly OpenLoop[] },
  pairs: number,
  progress: (text: string) => void,
): Promise<OpenRuns[]> => {
  const all = [...pair, ...others].map(loop => ({ ...loop, runs: [] as OpenFigures[] }))
  for (let i = 0; i < pairs; i++)
    for (const [at, loop] of all.entries()) {
      if (at >= pair.length && i % othersEvery !== 0) continue
      progress(`open loop ${i + 1} of ${pairs}, ${loop.name}`)
      loop.runs.push(await sendInOpenLoop(world, mix, keys, loop, pairSeconds))
    }
  return all.map(({ name, rate, runs }) => ({ name, rate, runs }))
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

const warmUpSeconds = 2

const medianIn = ({ runs }: OpenRuns, name: 'p50' | 'p99' | 'p999'): number =>
  median(runs.map(one => one[name]))
const totalOf = ({ runs }: OpenRuns, name: 'sent' | 'late' | 'dropped' | 'failed' | 'wrong'): number =>
  sum(runs.map(one => one[name]))

const faultsOf = (one: OpenRuns): string => {
  const [failed, wrong] = [totalOf(one, 'failed'), totalOf(one, 'wrong')]
  return failed + wrong === 0 ? '' : `; ${count(failed)} failed, ${count(wrong)} of another status`
}

export const openFindings = (all: readonly OpenRuns[]): Finding[] =>
  all.map(one => {
    const { name, rate, runs } = one
    const p99s = sorted(runs.map(({ p99 }) => p99))
    const reasons = runs.flatMap(({ senderReason }) => senderReason ?? [])
    return {
      what: `open loop, ${name}`,
      bar: '—',
      measured:
        `p50 ${medianIn(one, 'p50').toFixed(2)}, p99 ${medianIn(one, 'p99').toFixed(2)} (${p99s[0]?.toFixed(2)} to ${p99s.at(-1)?.toFixed(2)}), ` +
        `p99.9 ${medianIn(one, 'p999').toFixed(2)} ms at ${count(rate)} a second, ${runs.length === 1 ? 'one run' : `medians of ${runs.length} runs`}; ` +
        `${count(totalOf(one, 'late'))} of ${count(totalOf(one, 'sent'))} late, ${count(totalOf(one, 'dropped'))} dropped${faultsOf(one)}; ` +
        (reasons.length === 0
          ? 'the sender was in time'
          : `the sender, ${reasons.length} times: ${reasons[0]}`),
      met: null,
      figures: {
        rate,
        p50: runs.map(({ p50 }) => p50),
        p99: runs.map(({ p99 }) => p99),
        p999: runs.map(({ p999 }) => p999),
      },
    }
  })

/** @param ours at half of its capacity, and the plain server at the same rate, run by run */
export const openBars = (ours: OpenRuns, raw: OpenRuns): Finding[] => {
  const isWhole = totalOf(ours, 'failed') + totalOf(ours, 'wrong') + totalOf(ours, 'dropped') === 0
  const ratiosOf = (name: 'p99' | 'p999'): number[] =>
    ours.runs.flatMap((one, i) => {
      const base = raw.runs[i]
      return base ? [one[name] / base[name]] : []
    })
  const [p99, p999] = [ratiosOf('p99'), ratiosOf('p999')]
  const pair = (name: 'p99' | 'p999'): string =>
    `${medianIn(ours, name).toFixed(2)} of ${medianIn(raw, name).toFixed(2)} ms, ${ours.runs.length} pairs`
  return [
    {
      what: 'the mix at half of its capacity, open loop: p99, of raw at the same rate',
      bar: '≤ 3 ×',
      measured: `${median(p99).toFixed(2)} × (${pair('p99')})`,
      met: isWhole && median(p99) <= 3,
      figures: { ratios: p99 },
    },
    {
      what: 'the same: p99.9',
      bar: '—',
      measured: `${median(p999).toFixed(2)} × (${pair('p999')})`,
      met: null,
      figures: { ratios: p999 },
    },
  ]
}

export const openDrawing = (all: readonly OpenRuns[]): NonNullable<Result['drawings']> => ({
  'performance-mix-open.svg': {
    caption:
      'p50, p99 and p99.9 in ms in an open loop at half of the capacity of each, and of raw at the same rate as Abohawa; medians of short runs',
    svg: bars({
      title: 'Latency in ms from the due instant, at a fixed rate',
      kinds: ['p50', 'p99', 'p99.9'],
      bars: all.map(one => ({
        name: one.name,
        values: [medianIn(one, 'p50'), medianIn(one, 'p99'), medianIn(one, 'p999')],
      })),
      digits: 2,
    }),
  },
})
