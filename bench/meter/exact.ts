// Exactness over a fleet: many more requests than quota, over several processes at once, for one key and for many.

import { Redis } from 'ioredis'
import { startCluster } from '../../test/support/redis-cluster.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { issueKeys, usedToday } from '../keys.ts'
import { count, median, ms, type Row, type Scope, sorted } from '../row.ts'
import type { Env } from '../set-up.ts'
import {
  type Asked,
  askOn,
  commandsSent,
  faultsOf,
  inTurn,
  meterEnv,
  patient,
  startGateways,
} from './fleet.ts'

export type Size = { readonly processes: number; readonly connections: number; readonly requests: number }

export type Exactness = {
  readonly answers: readonly Asked[]
  readonly faults: readonly string[]
  readonly seconds: number
  /** Commands that the gateways sent to Redis for each request. */
  readonly commandsEach: number
}

/** @param tiers a key for each */
export const measureExactness = async (
  scope: Scope,
  place: Env,
  { processes, connections, requests }: Size,
  tiers: readonly string[],
): Promise<Exactness> => {
  const env = meterEnv({ ...patient, ...place })
  const keys = await issueKeys(env, tiers)
  const { callers } = await startGateways(scope, env, { processes, connections })
  const redis = new Redis(place.ABOHAWA_REDIS__URL ?? '')
  scope.teardown(() => redis.quit())
  const before = await commandsSent(redis)
  const started = performance.now()
  const answers = await askOn(
    callers,
    inTurn(
      keys.map(({ key }) => key),
      requests,
    ),
  )
  const seconds = (performance.now() - started) / 1000
  const commands = (await commandsSent(redis)) - before
  const counted = await usedToday(
    env,
    keys.map(({ id }) => id),
  )
  const faults = keys.flatMap(({ id, key, limit }, i) => {
    const own = answers.filter(answer => answer.key === key)
    const expected = Math.min(limit, own.length)
    return [
      ...faultsOf(own, limit).map(fault => `${id}: ${fault}`),
      ...(counted[i] === expected ? [] : [`${id}: ${counted[i]} counted of ${expected}`]),
    ]
  })
  return { answers, faults, seconds, commandsEach: commands / requests }
}

const statusCount = (answers: readonly Asked[], status: number): number =>
  answers.filter(answer => answer.status === status).length

const told = ({ answers, seconds, faults }: Exactness): string => {
  const times = sorted(answers.map(answer => answer.ms))
  return (
    `${count(statusCount(answers, 200))} × 200 and ${count(statusCount(answers, 429))} × 429 in ${seconds.toFixed(1)} s ` +
    `(median ${ms(median(times))}, p99 ${ms(times[Math.floor(times.length * 0.99)] ?? Number.NaN)}); ` +
    (faults.length === 0 ? 'every count told once' : faults.slice(0, 3).join('; '))
  )
}

const full: Size = { processes: 4, connections: 256, requests: 30_000 }

export const exactOne: Row = {
  id: 'exact-one',
  method:
    '4 processes on one Redis, 256 kept connections in turn over them, one key of 10,000 a day, 30,000 requests as fast as they go.',
  run: async scope => {
    const redis = await startRedis()
    scope.teardown(redis.stop)
    const found = await measureExactness(scope, { ABOHAWA_REDIS__URL: redis.url }, full, ['business'])
    return {
      findings: [
        {
          what: 'one key of 10,000 a day over 4 processes, 30,000 requests',
          bar: '10,000 × 200 with 0…9,999 left, each once; 20,000 × 429',
          measured: told(found),
          met: found.faults.length === 0,
          figures: { faults: found.faults.length, seconds: found.seconds },
        },
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

/** 50 keys of all sizes. */
export const mixedTiers = Array.from(
  { length: 50 },
  (_, i) => ['free', 'starter', 'free', 'business', 'free'][i % 5] ?? 'free',
)

export const exactMany: Row = {
  id: 'exact-many',
  method: 'The same with 50 keys of 100, 1,000 and 10,000 a day in turn, 30,000 requests.',
  run: async scope => {
    const redis = await startRedis()
    scope.teardown(redis.stop)
    const found = await measureExactness(scope, { ABOHAWA_REDIS__URL: redis.url }, full, mixedTiers)
    return {
      findings: [
        {
          what: '50 keys of mixed tiers over 4 processes, 30,000 requests',
          bar: 'the same for each key',
          measured: told(found),
          met: found.faults.length === 0,
          figures: { faults: found.faults.length, seconds: found.seconds },
        },
      ],
    }
  },
}

export const commands: Row = {
  id: 'commands',
  method: '1 process, 64 kept connections, one key, 20,000 requests; commands by the statistics of Redis.',
  run: async scope => {
    const redis = await startRedis()
    scope.teardown(redis.stop)
    const size = { processes: 1, connections: 64, requests: 20_000 }
    const found = await measureExactness(scope, { ABOHAWA_REDIS__URL: redis.url }, size, ['enterprise'])
    return {
      findings: [
        {
          what: '64 connections on one key of one process: Redis commands per request',
          bar: '≤ 0.1',
          measured: `${found.commandsEach.toFixed(4)}; ${told(found)}`,
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
    const cluster = await startCluster(0)
    scope.teardown(cluster.stop)
    const place = { ABOHAWA_REDIS__URL: cluster.url, ABOHAWA_REDIS__MODE: 'cluster' }
    const found = await measureExactness(scope, place, full, mixedTiers)
    return {
      findings: [
        {
          what: '50 keys of mixed tiers over 4 processes on a cluster, 30,000 requests',
          bar: 'the same for each key',
          measured: told(found),
          met: found.faults.length === 0,
          figures: { faults: found.faults.length, seconds: found.seconds },
        },
      ],
    }
  },
}
