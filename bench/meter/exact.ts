// Exactness over a fleet: many more requests than quota, over several processes at once, for one key and for many.

import {
  type Exactness,
  measureExactness,
  mixedTiers,
  oneRedis,
  type QuotaLoad,
  redisCluster,
} from '../../test/scenarios/exact-quota.ts'
import type { Answer } from '../../test/scenarios/quota-load.ts'
import { count, type Finding, median, ms, type Row, sorted } from '../row.ts'

const statusCount = (answers: readonly Answer[], status: number): number =>
  answers.filter(answer => answer.status === status).length

const summaryOf = ({ answers, seconds, faults }: Exactness): string => {
  const times = sorted(answers.map(answer => answer.ms))
  return (
    `${count(statusCount(answers, 200))} × 200 and ${count(statusCount(answers, 429))} × 429 in ${seconds.toFixed(1)} s ` +
    `(median ${ms(median(times))}, p99 ${ms(times[Math.floor(times.length * 0.99)] ?? Number.NaN)}); ` +
    (faults.length === 0 ? 'every remaining count returned once' : faults.slice(0, 3).join('; '))
  )
}

/** A line of the table for exact counts: met when nothing differs. */
const exactness = (found: Exactness, what: string, bar: string): Finding => ({
  what,
  bar,
  measured: summaryOf(found),
  met: found.faults.length === 0,
  figures: { faults: found.faults.length, seconds: found.seconds },
})

const full: QuotaLoad = { processes: 4, connections: 256, requests: 30_000 }

export const exactOne: Row = {
  id: 'exact-one',
  method:
    '4 processes on one Redis, 256 kept connections in turn over them, one key of 10,000 a day, 30,000 requests as fast as they go.',
  run: async scope => {
    const found = await measureExactness(scope, await oneRedis(scope), full, ['business'])
    return {
      findings: [
        exactness(
          found,
          'one key of 10,000 a day over 4 processes, 30,000 requests',
          '10,000 × 200 with 0…9,999 left, each once; 20,000 × 429',
        ),
        {
          what: 'the same: Redis commands per request',
          bar: '≤ 0.1',
          measured: found.commandsEach.toFixed(4),
          met: found.commandsEach <= 0.1,
          figures: { commandsEach: found.commandsEach },
        },
      ],
    }
  },
}

export const exactMany: Row = {
  id: 'exact-many',
  method: 'The same with 50 keys of 100, 1,000 and 10,000 a day in turn, 30,000 requests.',
  run: async scope => {
    const found = await measureExactness(scope, await oneRedis(scope), full, mixedTiers)
    return {
      findings: [
        exactness(found, '50 keys of mixed tiers over 4 processes, 30,000 requests', 'the same for each key'),
      ],
    }
  },
}

export const commands: Row = {
  id: 'commands',
  method: '1 process, 64 kept connections, one key, 20,000 requests; commands by the statistics of Redis.',
  run: async scope => {
    const size = { processes: 1, connections: 64, requests: 20_000 }
    const found = await measureExactness(scope, await oneRedis(scope), size, ['enterprise'])
    return {
      findings: [
        {
          what: '64 connections on one key of one process: Redis commands per request',
          bar: '≤ 0.1',
          measured: `${found.commandsEach.toFixed(4)}; ${summaryOf(found)}`,
          met: found.commandsEach <= 0.1 && found.faults.length === 0,
          figures: { commandsEach: found.commandsEach },
        },
      ],
    }
  },
}

export const exactCluster: Row = {
  id: 'exact-cluster',
  method: 'The 50 keys on a Redis Cluster of three masters.',
  run: async scope => {
    const found = await measureExactness(scope, await redisCluster(scope), full, mixedTiers)
    return {
      findings: [
        exactness(
          found,
          '50 keys of mixed tiers over 4 processes on a cluster, 30,000 requests',
          'the same for each key',
        ),
      ],
    }
  },
}
