// Freezes or kills Redis under load. Measures latency and admitted requests during the outage, and the counts after it;
// the load is test/scenarios/redis-outage.ts.

import type { RedisFault } from '../../test/scenarios/redis-faults.ts'
import { measureRedisOutage } from '../../test/scenarios/redis-outage.ts'
import { chart } from '../chart.ts'
import { count, ms, type Row } from '../row.ts'

const full = { processes: 4, connections: 64, pauseMs: 10, beforeMs: 3_000, limit: 30_000 }

const rowOf = (kind: RedisFault, what: string, outageMs: number, method: string): Row => ({
  id: `redis-${kind}`,
  method,
  run: async scope => {
    const found = await measureRedisOutage(scope, kind, { ...full, outageMs })
    const { bySecond, beganAtSecond, backAtSecond } = found
    const drawing = {
      caption: `${what}: from second ${beganAtSecond.toFixed(0)} to ${backAtSecond.toFixed(0)}`,
      svg: chart({
        title: `${what}: seconds ${beganAtSecond.toFixed(0)} to ${backAtSecond.toFixed(0)}`,
        x: { label: 'seconds since the load began', max: bySecond.length, step: 5 },
        panels: [
          {
            label: 'p99 of all requests in ms',
            lines: [{ name: 'p99', points: bySecond.map((one, second) => [second, one.p99] as const) }],
          },
          {
            label: 'requests a second, of the key that runs out',
            lines: [
              { name: 'admitted', points: bySecond.map((one, second) => [second, one.admitted] as const) },
            ],
          },
        ],
      }),
    }
    const isFailover = kind === 'sentinel' || kind === 'cluster'
    return {
      ...(kind === 'frozen' && { drawings: { 'metering-outage.svg': drawing } }),
      findings: [
        {
          what: `${what}: p99 from one second on`,
          bar: '≤ normal + 20 ms',
          measured: `${ms(found.outageP99)}, and ${ms(found.normalP99)} before; ${found.failed} failed of a key with enough left`,
          met: found.outageP99 <= found.normalP99 + 20 && found.failed === 0,
          figures: { normalP99: found.normalP99, outageP99: found.outageP99, failed: found.failed },
        },
        {
          what: 'the same: requests admitted for a key that runs out',
          bar: `≤ ${count(full.limit)}${isFailover ? ', plus what the lost link can lose' : ''}`,
          measured: count(found.admitted),
          met: found.admitted <= full.limit,
          figures: { admitted: found.admitted },
        },
        {
          what: 'the same: counts afterwards, compared with the admitted requests',
          bar: 'equal',
          measured:
            (found.miscounted === 0 ? 'equal' : `${found.miscounted} off`) +
            (found.offAtFirst > found.miscounted ? `, ${count(found.offAtFirst)} off at first` : ''),
          met: found.miscounted === 0,
          figures: { miscounted: found.miscounted },
        },
        {
          what: `the same: all processes count quotas normally again${isFailover ? ' after the loss' : ' after its return'}`,
          bar: isFailover ? '—' : '≤ 5 s',
          measured: ms(found.recoveryMs),
          met: isFailover ? null : found.recoveryMs <= 5_000,
          figures: { recoveryMs: found.recoveryMs },
        },
      ],
    }
  },
})

export const redisFrozen: Row = rowOf(
  'frozen',
  'Redis stopped with SIGSTOP for 20 s',
  20_000,
  '4 processes, 64 callers that pause 10 ms between two requests, two keys in turn: one with enough left and one that runs ' +
    'out during the outage. Redis writes an append-only file, keeps its connections and answers nothing for 20 s.',
)
export const redisKilled: Row = rowOf(
  'killed',
  'Redis killed, and back after 8 s',
  8_000,
  'The same with Redis killed (kill -9) and started again on its file 8 s later.',
)
export const sentinelFailover: Row = rowOf(
  'sentinel',
  'The master behind Sentinel killed',
  0,
  'The same with a master, two replicas and three sentinels (down-after 1 s): the master is killed, a replica takes over. ' +
    'The p99 covers requests from one second on until then.',
)
export const clusterFailover: Row = rowOf(
  'cluster',
  'A master of a cluster killed',
  0,
  'The same with a cluster of three masters and three replicas (node timeout 1 s): the master of the key that runs out is killed.',
)
