// Quotas over a fleet: exact for one key and for many, and through a Redis that freezes, dies or fails over. The load and the faults
// are those of the tests, at full size.

import { measureExactness, mixedTiers, oneRedis } from '../../test/scenarios/exact-quota.ts'
import { measureRedisOutage, type RedisFault } from '../../test/scenarios/redis-outage.ts'
import { inScope, type Teardown } from '../../test/support/teardown.ts'
import { count, type Finding, found, judged, median, ms, quantile, type Row } from '../row.ts'

const fleet = { processes: 4, connections: 256, requests: 30_000 }

const exactness = async (
  scope: Teardown,
  what: string,
  bar: string,
  tiers: readonly string[],
): Promise<Finding[]> => {
  const place = await oneRedis(scope)
  const { answers, seconds, faults, commandsEach } = await measureExactness(scope, place, fleet, tiers)
  const of = (status: number): string => count(answers.filter(answer => answer.status === status).length)
  const times = answers.map(answer => answer.ms)
  return [
    judged(
      what,
      bar,
      faults.length === 0,
      `${of(200)} × 200 and ${of(429)} × 429 in ${seconds.toFixed(1)} s (median ${ms(median(times))}, p99 ${ms(quantile(times, 0.99))}); ` +
        (faults.length === 0 ? 'every remaining count returned once' : faults.slice(0, 3).join('; ')),
    ),
    judged('Redis commands per request', '≤ 0.1', commandsEach <= 0.1, commandsEach.toFixed(4)),
  ]
}

export const exact: Row = {
  id: 'exact',
  what: 'quotas of a fleet that gets more requests than they allow',
  run: async (scope, _, progress) => {
    progress('one key')
    const load = 'over 4 processes, 30,000 requests'
    const bar = '10,000 × 200, each count once; 20,000 × 429'
    const one = await exactness(scope, `one key of 10,000 a day ${load}`, bar, ['business'])
    progress('many keys')
    const many = await exactness(scope, `50 keys of mixed tiers ${load}`, 'the same for each key', mixedTiers)
    return { findings: [...one, ...many] }
  },
}

const outageLoad = { processes: 4, connections: 64, pauseMs: 10, beforeMs: 3_000, limit: 30_000 }
const faults: readonly (readonly [RedisFault, what: string, outageMs: number])[] = [
  ['frozen', 'Redis stopped with SIGSTOP for 20 s', 20_000],
  ['killed', 'Redis killed, and back after 8 s', 8_000],
  ['sentinel', 'The master behind Sentinel killed', 0],
  ['cluster', 'A master of a cluster killed', 0],
]

const outageOf = async (
  scope: Teardown,
  [kind, what, outageMs]: (typeof faults)[number],
): Promise<Finding[]> => {
  const { normalP99, outageP99, recoveryMs, admitted, failed, miscounted, offAtFirst } =
    await measureRedisOutage(scope, kind, { ...outageLoad, outageMs })
  const isFailover = outageMs === 0
  const again = 'all gateways count normally again'
  const counts =
    (miscounted === 0 ? 'equal' : `${miscounted} off`) +
    (offAtFirst > miscounted ? `, ${count(offAtFirst)} off at first` : '')
  return [
    judged(
      `${what}: p99 from one second on`,
      '≤ normal + 20 ms',
      outageP99 <= normalP99 + 20 && failed === 0,
      `${ms(outageP99)}, ${ms(normalP99)} before; ${failed} failed`,
    ),
    judged(
      'admitted for a key that runs out',
      `≤ ${count(outageLoad.limit)}${isFailover ? ' + loss of the link' : ''}`,
      admitted <= outageLoad.limit,
      count(admitted),
    ),
    judged('counts afterwards, vs admitted requests', 'equal', miscounted === 0, counts),
    isFailover
      ? found(`${again} after the loss`, ms(recoveryMs))
      : judged(`${again} after its return`, '≤ 5 s', recoveryMs <= 5_000, ms(recoveryMs)),
  ]
}

export const outage: Row = {
  id: 'outage',
  what: 'quotas of a fleet while its Redis freezes, dies or fails over',
  run: async (_, __, progress) => {
    const findings: Finding[] = []
    for (const fault of faults) {
      progress(fault[1])
      findings.push(...(await inScope(scope => outageOf(scope, fault))))
    }
    return { findings }
  },
}
