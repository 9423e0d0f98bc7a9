// Freezes or kills Redis under load on quotas: a server, or a master behind Sentinel or in a cluster. Measures latency and admitted
// requests during the outage, and the counts after it. The benchmark and the tests have the bars.

import { setTimeout as pause } from 'node:timers/promises'
import { usageTag } from '../../src/stores/redis/key-names.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { durable, patientRedisEnv, startRedis } from '../support/redis-server.ts'
import type { Teardown } from '../support/teardown.ts'
import { foundWithin, patienceMs, until } from '../support/until.ts'
import { issueKeys, usedToday } from './keys.ts'
import { type Answer, inTurn, meterEnv, sendOn, startGateways } from './quota-load.ts'
import { type Env, metric } from './set-up.ts'

type FaultyRedis = {
  readonly env: Env
  /** Injects the fault. @param keyId key whose count it must hit */
  strike(keyId: string): Promise<void>
  /** Ends the fault; absent where the servers recover by themselves. */
  recover?(): Promise<void>
}

export type RedisFault = 'frozen' | 'killed' | 'sentinel' | 'cluster'

/** Part of how long a failover takes. */
const downAfterMs = 1_000

const redisFaults: Record<RedisFault, (scope: Teardown) => Promise<FaultyRedis>> = {
  frozen: async scope => {
    const { url, signal } = await startRedis(scope, { args: durable })
    return {
      env: { ABOHAWA_REDIS__URL: url },
      strike: async () => signal('SIGSTOP'),
      recover: async () => signal('SIGCONT'),
    }
  },
  killed: async scope => {
    const redis = await startRedis(scope, { args: durable })
    return { env: { ABOHAWA_REDIS__URL: redis.url }, strike: redis.kill, recover: redis.start }
  },
  sentinel: async scope => {
    const sentinel = await startSentinel(scope, undefined, downAfterMs)
    return { env: sentinel.env, strike: async () => (await sentinel.master()).kill() }
  },
  cluster: async scope => {
    const cluster = await startCluster(scope, 1, downAfterMs)
    return {
      env: {
        ABOHAWA_REDIS__URL: cluster.url,
        ABOHAWA_REDIS__MODE: 'cluster',
        // Another node than the first, which may be the killed one when commands start.
        ABOHAWA_REDIS__NODES: cluster.nodes
          .slice(1)
          .map(({ address }) => address)
          .join(','),
      },
      strike: async keyId => (await cluster.masterOf(`abohawa:quota:${usageTag(keyId)}`)).kill(),
    }
  },
}

type RedisOutage = {
  readonly processes: number
  readonly connections: number
  /** Between a response and the caller's next request. */
  readonly pauseMs: number
  /** How long the load goes on before the outage. */
  readonly beforeMs: number
  readonly outageMs: number
  /** Between two looks at the metrics; 50 where absent. */
  readonly lookEveryMs?: number
  /** The daily limit of the key that runs out during the outage. */
  readonly limit: number
  /** `redis.commandTimeout`; the default where absent. */
  readonly commandTimeout?: string
}

type RedisOutageFound = {
  readonly normalP99: number
  /** From one second after the fault until the end. */
  readonly outageP99: number
  /** From the return of Redis until quota counting is normal in every process. */
  readonly recoveryMs: number
  /** Units of the key that ran out. */
  readonly admitted: number
  readonly limit: number
  /** Responses to the other key that were not 200, from one second after the fault on. */
  readonly failed: number
  /** The difference between counts and admitted requests, for both keys: at the end of the load, and within 20 s. */
  readonly offAtFirst: number
  readonly miscounted: number
  /** Units of the key that ran out whose requests were sent from the fault on. */
  readonly admittedSince: number
}

const p99 = (answers: readonly Answer[]): number => {
  const times = answers.map(answer => answer.ms).sort((a, b) => a - b)
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN
}

export const measureRedisOutage = async (
  scope: Teardown,
  kind: RedisFault,
  // Each look renders the metrics of every process.
  {
    processes,
    connections,
    pauseMs,
    beforeMs,
    outageMs,
    lookEveryMs = 50,
    limit,
    commandTimeout,
  }: RedisOutage,
): Promise<RedisOutageFound> => {
  const redis = await redisFaults[kind](scope)
  const env = meterEnv({
    ...redis.env,
    ...(commandTimeout !== undefined && {
      ...patientRedisEnv,
      ABOHAWA_REDIS__COMMAND_TIMEOUT: commandTimeout,
    }),
    ABOHAWA_QUOTA__TIERS__SCARCE: String(limit),
  })
  const [plenty, scarce] = await issueKeys(env, ['enterprise', 'scarce'])
  if (!plenty || !scarce) throw new Error('no keys')
  const gateways = await startGateways(scope, env, { processes, connections })
  const everywhere = async (name: string, value: number): Promise<boolean> => {
    const values = await Promise.all(gateways.processes.map(({ urls }) => metric(urls.ops ?? '', name)))
    return values.every(one => one === value)
  }
  const allNormal = () => everywhere('abohawa_quota_counting{state="counting"}', 1)
  const divides = () => everywhere('abohawa_quota_allowance_instances', processes)
  await until('every process knows by how many it divides', divides, { everyMs: 250 })

  const keys = [plenty.key, scarce.key]
  // While Redis is away a process admits only keys that it has met.
  const met: Answer[] = []
  for (const key of keys)
    met.push(...(await sendOn(gateways.callers, inTurn([key], gateways.callers.length))))
  let sent = 0
  let isOver = false
  // A short pause between two requests, so that the figures show the wait for Redis and not for the processor.
  const load = sendOn(gateways.callers, () => (isOver ? undefined : keys[sent++ % 2]), pauseMs)
  // To compare with.
  await pause(beforeMs)

  const beganAt = performance.now()
  await redis.strike(scarce.id)
  if (redis.recover) await pause(outageMs)
  await until('one process noticed', async () => !(await allNormal()), { everyMs: lookEveryMs })
  const backAt = performance.now()
  await redis.recover?.()
  await until('quota counting is normal', allNormal, { everyMs: lookEveryMs })
  const countsAgainAt = performance.now()
  const recoveryMs = countsAgainAt - backAt
  await pause(1_000)
  isOver = true
  const answers = [...met, ...(await load)]

  const admitted = (key: string, from = 0): number =>
    answers.filter(answer => answer.key === key && answer.status === 200 && answer.at >= from).length
  const off = async (): Promise<number> => {
    const [usedPlenty = 0, usedScarce = 0] = await usedToday(env, [plenty.id, scarce.id])
    return Math.abs(usedPlenty - admitted(plenty.key)) + Math.abs(usedScarce - admitted(scarce.key))
  }
  // Sentinels may fail over twice, and reconfigure the first master only after eight seconds. Only then do gateways that
  // counted with it report to the other one.
  const offAtFirst = await off()
  let miscounted = offAtFirst
  // Each look opens its own store.
  const isRight = async () => {
    miscounted = await off()
    return miscounted === 0
  }
  await foundWithin(patienceMs, isRight, 250)
  const afterFault = answers.filter(({ at, key }) => at >= beganAt + 1_000 && key === plenty.key)
  const failed = afterFault.filter(({ status }) => status !== 200).length
  const during = answers.filter(({ at }) => at >= beganAt + 1_000 && at < countsAgainAt)
  return {
    normalP99: p99(answers.filter(({ at }) => at < beganAt - 100)),
    outageP99: p99(during),
    recoveryMs,
    admitted: admitted(scarce.key),
    limit,
    failed,
    admittedSince: admitted(scarce.key, beganAt),
    offAtFirst,
    miscounted,
  }
}
