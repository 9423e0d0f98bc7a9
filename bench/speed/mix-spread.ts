// How much fresh processes of one build differ on the mix. All are started, and each is loaded for some seconds in turn, again and
// again: what the machine does in a minute meets all of them, and what is left is their own.

import type { Scope } from '../../test/scenarios/set-up.ts'
import { type Finding, median } from '../row.ts'
import type { World } from './contender.ts'
import { load } from './load.ts'
import { startGatewayForMix } from './mix-servers.ts'
import type { Mix } from './mix-traffic.ts'
import { cpuSecondsOf } from './pinned.ts'
import { awayFromTurn } from './world.ts'

const processes = 8
const turns = 5
const warmUpSeconds = 3
const largestOfSmallest = 1.15

export const measureSpread = async (
  scope: Scope,
  world: World,
  mix: Mix,
  seconds: number,
  progress: (text: string) => void,
): Promise<Finding> => {
  const started = []
  for (let at = 1; at <= processes; at++) {
    progress(`spread, process ${at} of ${processes}`)
    const { contender } = await startGatewayForMix(scope, world, mix, `mix-spread-${at}:`)
    await contender.tidy?.()
    await contender.check()
    await load(world.folder, await contender.workload(), warmUpSeconds)
    started.push({ contender, micros: [] as number[] })
  }
  let wrong = 0
  for (let turn = 1; turn <= turns; turn++)
    for (const [at, { contender, micros }] of started.entries()) {
      progress(`spread, turn ${turn} of ${turns}, process ${at + 1} of ${processes}`)
      await awayFromTurn(seconds)
      await contender.tidy?.()
      const workload = await contender.workload()
      const before = await cpuSecondsOf(contender.pid())
      const loaded = await load(world.folder, workload, seconds)
      micros.push((((await cpuSecondsOf(contender.pid())) - before) * 1e6) / loaded.answers)
      wrong += loaded.wrong
    }
  const values = started.map(({ micros }) => median(micros))
  const [least, most] = [Math.min(...values), Math.max(...values)]
  return {
    what: `the mix in ${processes} fresh processes: the largest CPU of an answer, of the smallest`,
    bar: `≤ ${largestOfSmallest} ×`,
    measured: `${(most / least).toFixed(2)} × (${most.toFixed(1)} of ${least.toFixed(1)} µs, medians of ${turns} turns; ${wrong} wrong)`,
    met: most / least <= largestOfSmallest && wrong === 0,
    figures: { spread: most / least, values, wrong },
  }
}
