// The resident memory of a gateway that serves the mix for minutes: how much at most, and whether it still grows at the end.

import { truncate } from 'node:fs/promises'
import { setInterval } from 'node:timers'
import type { Scope } from '../../test/scenarios/set-up.ts'
import { chart } from '../chart.ts'
import { count, type Finding, type Result, sum } from '../row.ts'
import type { World } from './contender.ts'
import { load } from './load.ts'
import { startGatewayForMix } from './mix-servers.ts'
import type { Mix } from './mix-traffic.ts'
import { residentOf } from './pinned.ts'

const boundMiB = 320
const levelShare = 1.05
const halfMinute = 30
const readEveryMs = 5_000
/** Half minutes of the minute that the last one is compared with. */
const third = [4, 5]

export const measureMemory = async (
  scope: Scope,
  world: World,
  mix: Mix,
  minutes: number,
  progress: (text: string) => void,
): Promise<Pick<Result, 'drawings'> & { findings: Finding[] }> => {
  const { contender, log } = await startGatewayForMix(scope, world, mix, 'mix-memory:')
  const now = async (): Promise<number> => (await residentOf(contender.pid())).now
  const atStart = await now()
  await contender.tidy?.()
  /** MiB, by half minute. */
  const read: number[][] = []
  let [answers, wrong] = [0, 0]
  for (let half = 0; half < minutes * 2; half++) {
    progress(`memory, minute ${(half / 2).toFixed(1)} of ${minutes}`)
    const ofHalf: number[] = []
    const timer = setInterval(() => {
      void now().then(
        value => ofHalf.push(value),
        () => {},
      )
      // The log of five minutes would be gigabytes.
      void truncate(log).catch(() => {})
    }, readEveryMs)
    const loaded = await load(world.folder, await contender.workload(), halfMinute)
    clearInterval(timer)
    ofHalf.push(await now())
    answers += loaded.answers
    wrong += loaded.wrong
    read.push(ofHalf)
  }
  const { most } = await residentOf(contender.pid())
  const mean = (halves: readonly (readonly number[] | undefined)[]): number => {
    const values = halves.flatMap(values => values ?? [])
    return sum(values) / values.length
  }
  const atEnds = read.map(values => values.at(-1) ?? 0)
  const last = mean(read.slice(-2))
  const before = mean(third.map(half => read[half]))
  const isLevel = minutes > 3 ? last <= levelShare * before : undefined
  const level =
    isLevel === undefined
      ? 'too short to say whether it is level'
      : `${isLevel ? 'level' : 'not level'}: the last minute ${(last / before).toFixed(2)} × the third`
  return {
    findings: [
      {
        what: `resident memory over ${minutes} minutes of the mix`,
        bar: `≤ ${boundMiB} MiB and level (≤ ${levelShare} ×)`,
        measured:
          `${count(most)} MiB at the highest, ${count(atEnds.at(-1) ?? 0)} MiB at the end; ${level}; ${count(atStart)} MiB at the start; ` +
          `each half minute ${atEnds.map(value => count(value)).join(', ')}; ${count(answers)} answers, ${wrong} wrong or not within 2 s`,
        met: most <= boundMiB && isLevel !== false,
        figures: { most, last, before, atStart, wrong, answers, halfMinutes: atEnds },
      },
    ],
    drawings: {
      'performance-mix-memory.svg': {
        caption: 'Resident memory of a gateway in MiB over minutes of the mix',
        svg: chart({
          title: 'Resident memory under the mix',
          x: { label: 'minutes', max: minutes, step: 1 },
          panels: [{ label: 'MiB', lines: [{ name: 'resident', points: pointsOf(atStart, read) }] }],
        }),
      },
    },
  }
}

/** Readings of a half minute are evenly apart, the last at its end. */
const pointsOf = (atStart: number, read: readonly (readonly number[])[]): [number, number][] => [
  [0, atStart],
  ...read.flatMap((values, half) =>
    values.map((value, i): [number, number] => [(half + (i + 1) / values.length) / 2, value]),
  ),
]
