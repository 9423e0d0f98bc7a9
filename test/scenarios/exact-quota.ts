// Sends many more requests than quota, over several processes at once, for one key or many, and lists every difference
// between the limit, the responses and the counts.

import { Redis } from 'ioredis'
import { startCluster } from '../support/redis-cluster.ts'
import { patientRedisEnv, startRedis } from '../support/redis-server.ts'
import type { Teardown } from '../support/teardown.ts'
import type { Caller } from './callers.ts'
import { issueKeys, usedToday } from './keys.ts'
import { type Answer, commandsSent, faultsOf, inTurn, meterEnv, sendOn, startGateways } from './quota-load.ts'
import type { Env } from './set-up.ts'

export type QuotaLoad = {
  readonly processes: number
  readonly connections: number
  readonly requests: number
}

export type Exactness = {
  readonly answers: readonly Answer[]
  readonly faults: readonly string[]
  readonly seconds: number
  /** Commands that the gateways sent to Redis for each request. */
  readonly commandsEach: number
}

/** Starts gateways and sends to them. @param place settings of their Redis @param tiers a key for each */
export const measureExactness = async (
  scope: Teardown,
  place: Env,
  { requests, ...size }: QuotaLoad,
  tiers: readonly string[],
): Promise<Exactness> => {
  const env = meterEnv({ ...patientRedisEnv, ...place })
  const { callers } = await startGateways(scope, env, size)
  const redis = new Redis(place.ABOHAWA_REDIS__URL ?? '')
  scope.teardown(() => redis.quit())
  return measureOn({ env, callers, redis }, requests, tiers)
}

/** The same on gateways that run. @param redis a client of their Redis */
export const measureOn = async (
  { env, callers, redis }: { env: Env; callers: readonly Caller[]; redis: Redis },
  requests: number,
  tiers: readonly string[],
): Promise<Exactness> => {
  const keys = await issueKeys(env, tiers)
  const before = await commandsSent(redis)
  const started = performance.now()
  const presented = keys.map(({ key }) => key)
  const answers = await sendOn(callers, inTurn(presented, requests))
  const seconds = (performance.now() - started) / 1000
  const commands = (await commandsSent(redis)) - before
  const ids = keys.map(({ id }) => id)
  const counted = await usedToday(env, ids)
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

/** 50 keys of all sizes. */
export const mixedTiers = Array<string[]>(10).fill(['free', 'starter', 'free', 'business', 'free']).flat()

/** The settings for its own Redis. */
export const oneRedis = async (scope: Teardown): Promise<Env> => ({
  ABOHAWA_REDIS__URL: (await startRedis(scope)).url,
})

/** The settings for a Redis Cluster of three masters. */
export const redisCluster = async (scope: Teardown): Promise<Env> => ({
  ABOHAWA_REDIS__URL: (await startCluster(scope, 0)).url,
  ABOHAWA_REDIS__MODE: 'cluster',
})
