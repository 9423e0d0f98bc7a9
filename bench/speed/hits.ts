// Cached responses: every variant of the gateway beside a plain server, nginx and the usual compositions.

import { count, type Finding, notMeasured, type Row } from '../row.ts'
import type { Absent, Contender } from './contender.ts'
import { hitVariantIds, startHitVariants } from './hit-variants.ts'
import { checked, type Judge, judgeOf, quietness } from './judge.ts'
import { connections, loader } from './load.ts'
import { startNginx } from './nginx.ts'
import { startBareFastify, startProxy, startRaw, startUsual } from './others.ts'
import { measureInRounds } from './rounds.ts'
import { columnsOfRounds, cpuBars, p99Bars, shareBars, tableOfRounds } from './rounds-form.ts'
import { versionsOf } from './versions.ts'
import { openWorld } from './world.ts'

const nginxIds = ['nginx', 'nginx-open']
const parts = ['raw', 'fastify', ...hitVariantIds, 'proxy', 'usual', ...nginxIds]

export const hits: Row = {
  id: 'hits',
  parts,
  method:
    `Rounds of all rows in turn, each on a process that was just started and is warm, with ${connections} kept ` +
    'connections that send the next request on the response to the last. Servers run on one core; load, Redis, origin and provider on the ' +
    'others. Before and after each round, answers are checked (status, every byte of the body, ETag, headers, a refused key), ' +
    'and the counts of the key in the store, of the answers by status in the metrics and of lines in the log must agree and ' +
    `be those of the load and at most ${connections} more, which were in flight when it ended.`,
  run: async (scope, progress, { settings, parts: wanted }) => {
    const { rounds = 5, seconds = 4 } = settings
    progress('starts everything')
    const world = await openWorld(scope)
    const isWanted = (id: string): boolean => id === 'raw' || wanted.includes(id)
    const all: (Contender | Absent)[] = [
      await startRaw(scope, world),
      ...(isWanted('fastify') ? [await startBareFastify(scope, world)] : []),
      ...(await startHitVariants(scope, world, wanted)),
      ...(isWanted('proxy') ? [await startProxy(scope, world)] : []),
      ...(isWanted('usual') ? [await startUsual(scope, world)] : []),
      ...(nginxIds.some(isWanted) ? await startNginx(scope, world) : []),
    ].filter(({ id }) => isWanted(id))
    const contenders = all.filter((one): one is Contender => !('absent' in one))
    const absent = all.filter((one): one is Absent => 'absent' in one)
    const measured = await measureInRounds(world, contenders, { rounds, seconds }, progress)
    const judge = judgeOf(measured)
    const raw = judge.of('raw')
    const findings = [
      ...findingsOf(judge),
      ...absent.map(({ name, absent: why }) => notMeasured(name, why)),
      checked(measured),
    ]
    return {
      findings,
      table: tableOfRounds(measured, raw),
      versions: versionsOf(['fastify', '@fastify/reply-from', '@fastify/rate-limit', 'lru-cache', 'ioredis']),
      notes: [
        `Load from ${loader}. Rounds: ${rounds} of ${seconds} s for each row, each of a process of its own that is warm. Body: ${count(world.body.length)} bytes, the same for all.`,
        quietness(measured),
        ...columnsOfRounds,
      ],
      drawings: {
        ...shareBars('performance-share.svg', 'each row', measured, raw),
        ...p99Bars('performance-p99.svg', 'each row', measured),
        ...cpuBars('performance-cpu.svg', 'each row', measured),
      },
    }
  },
}

/** A smaller difference means nothing on a machine with other users. */
const noise = 0.1

const findingsOf = ({ byCpu, inCost, byCostWithRedis, byRate, byP99 }: Judge): Finding[] => [
  ...inCost('redis', 'raw', 'one URL on Redis, of raw node:http by CPU'),
  ...byCpu('embedded', 'fastify', 0.92, 'embedded store, of bare Fastify by CPU'),
  ...byCpu('redis', 'fastify', 0.77, 'Redis, 1 key, of bare Fastify by CPU'),
  ...byP99('redis', 'raw', 3, 'the same: p99, of raw'),
  ...byP99('redis-1000', 'raw', 3, 'Redis, 1,000 keys: p99, of raw'),
  ...byRate('redis-304', 'redis', 1, '304, of the 200', noise),
  ...byRate('redis-br', 'redis', 1, 'br, of the 200', noise),
  ...byCostWithRedis('redis', 'nginx', 0.87, 'Redis, 1 key, server and Redis, of nginx + Lua + Redis'),
  ...byP99('redis', 'nginx', 1, 'the same: p99, of nginx’s', noise),
]
