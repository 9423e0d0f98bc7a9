// How much fresh processes of one build differ on the mix: the same start, the same traffic, one after the other.

import type { Scope } from '../../test/scenarios/set-up.ts'
import type { Finding } from '../row.ts'
import type { World } from './contender.ts'
import { startGatewayForMix } from './mix-servers.ts'
import type { Mix } from './mix-traffic.ts'
import { measureInRounds, rangeOf } from './rounds.ts'

const processes = 8
const largestOfSmallest = 1.15

export const measureSpread = async (
  scope: Scope,
  world: World,
  mix: Mix,
  seconds: number,
  progress: (text: string) => void,
): Promise<Finding[]> => {
  const { contender } = await startGatewayForMix(scope, world, mix, 'mix-spread:')
  const rounds = { rounds: processes, seconds }
  const measured = await measureInRounds(world, [contender], rounds, text => progress(`spread, ${text}`))
  return measured.map(one => {
    const values = one.samples.map(({ cpuMicros }) => cpuMicros)
    const spread = Math.max(...values) / Math.min(...values)
    return {
      what: `the mix in ${processes} fresh processes: the largest CPU of an answer, of the smallest`,
      bar: `≤ ${largestOfSmallest} ×`,
      measured: `${spread.toFixed(2)} × (${rangeOf(one, 'cpuMicros', 1)} µs)`,
      met: spread <= largestOfSmallest && one.faults.length === 0,
      figures: { spread, values },
    }
  })
}
