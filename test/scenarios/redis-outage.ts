// Redis that stops answering, and Redis that dies, under load on quotas: how long anyone notices, what is given meanwhile,
// and whether the counts are right when it is back.

import { setTimeout as pause } from 'node:timers/promises'
import { foundWithin, until } from '../support/until.ts'
import { issueKeys, usedToday } from './keys.ts'
import { type Asked, askOn, meterEnv, startGateways } from './quota-load.ts'
import { type RedisFault, redisFaults } from './redis-faults.ts'
import { metric, type Scope } from './set-up.ts'

export type RedisOutage = {
  readonly processes: number
  readonly connections: number
  readonly outageMs: number
  /** The daily limit of the key that is meant to run out during the outage. */
  readonly limit: number
}

export type RedisOutageFound = {
  readonly normalP99: number
  /** From one second after the beginning until the end. */
  readonly outageP99: number
  /** From the return of Redis until every process counts together again. */
  readonly recoveryMs: number
  /** Of the key that ran out. */
  readonly given: number
  readonly limit: number
  /** How many answers of the other key were no 200 from one second after the beginning on. */
  readonly failed: number
  /** By how much the counts differ from what was given, for both keys: at the end of the load, and within 20 s. */
  readonly offAtFirst: number
  readonly miscounted: number
  /** By second since the load began: the slowest of 99 in 100, and what the key that ran out was given. */
  readonly bySecond: readonly { p99: number; given: number }[]
  readonly beganAtSecond: number
  readonly backAtSecond: number
}

const p99 = (answers: readonly Asked[]): number => {
  const times = answers.map(answer => answer.ms).sort((a, b) => a - b)
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN
}

export const measureRedisOutage = async (
  scope: Scope,
  kind: RedisFault,
  { processes, connections, outageMs, limit }: RedisOutage,
): Promise<RedisOutageFound> => {
  const redis = await redisFaults[kind](scope)
  const env = meterEnv({ ...redis.env, ABOHAWA_QUOTA__TIERS__SCARCE: String(limit) })
  const [plenty, scarce] = await issueKeys(env, ['enterprise', 'scarce'])
  if (!plenty || !scarce) throw new Error('no keys')
  const gateways = await startGateways(scope, env, { processes, connections })
  const everywhere = async (name: string, value: number): Promise<boolean> => {
    const values = await Promise.all(gateways.processes.map(({ urls }) => metric(urls.ops ?? '', name)))
    return values.every(one => one === value)
  }
  const allCount = () => everywhere('abohawa_quota_counting{state="counting"}', 1)

  const keys = [plenty.key, scarce.key]
  let asked = 0
  let isOver = false
  // A little rest between two requests: what is to be seen is waiting for Redis, not for the processor.
  const load = askOn(gateways.callers, () => (isOver ? undefined : keys[asked++ % 2]), 10)
  // Nobody deals alone before all know of one another.
  await until('all know of one another', () => everywhere('abohawa_instances', processes), 60_000)
  await pause(6_500)

  const beganAt = performance.now()
  await redis.strike(scarce.id)
  if (redis.mend) await pause(outageMs)
  else await until('someone noticed', async () => !(await allCount()), 60_000)
  const backAt = performance.now()
  await redis.mend?.()
  await until('all count together', allCount, 60_000)
  const countsAgainAt = performance.now()
  const recoveryMs = countsAgainAt - backAt
  await pause(1_000)
  isOver = true
  const answers = await load

  const firstAt = answers[0]?.at ?? 0
  const secondOf = (at: number): number => Math.floor((at - firstAt) / 1_000)
  const bySecond = Array.from({ length: secondOf(performance.now()) }, (_, second) => {
    const then = answers.filter(({ at }) => secondOf(at) === second)
    return {
      p99: then.length === 0 ? 0 : p99(then),
      given: then.filter(({ key, status }) => key === scarce.key && status === 200).length,
    }
  })
  const given = (key: string): number =>
    answers.filter(answer => answer.key === key && answer.status === 200).length
  const off = async (): Promise<number> => {
    const [usedPlenty = 0, usedScarce = 0] = await usedToday(env, [plenty.id, scarce.id])
    return Math.abs(usedPlenty - given(plenty.key)) + Math.abs(usedScarce - given(scarce.key))
  }
  // Sentinels may choose twice; the master between is left alone for eight seconds before it is told to follow. Only then
  // do those who counted with it say to the other what they gave.
  const offAtFirst = await off()
  let miscounted = offAtFirst
  await foundWithin(20_000, async () => {
    miscounted = await off()
    return miscounted === 0
  })
  const during = answers.filter(({ at }) => at >= beganAt + 1_000 && at < countsAgainAt)
  return {
    normalP99: p99(answers.filter(({ at }) => at >= beganAt - 3_000 && at < beganAt - 100)),
    outageP99: p99(during),
    recoveryMs,
    given: given(scarce.key),
    limit,
    failed: answers.filter(
      ({ at, key, status }) => at >= beganAt + 1_000 && key === plenty.key && status !== 200,
    ).length,
    bySecond,
    beganAtSecond: (beganAt - firstAt) / 1_000,
    backAtSecond: (backAt - firstAt) / 1_000,
    offAtFirst,
    miscounted,
  }
}
