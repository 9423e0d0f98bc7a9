// Gateway processes on one Redis and many callers of one cold cell: undisturbed, and with the loading process killed while
// everybody waits. Returns figures; tests assert on them.

import type { Running } from '../support/process.ts'
import { type ProviderProcess, startProvider } from '../support/provider-process.ts'
import { startRedis } from '../support/redis-server.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { type Caller, openCallers, type TimedResponse } from './callers.ts'
import { createKey, type Env, metric, processEnv, startProcess } from './set-up.ts'

export type FleetSize = { readonly processes: number; readonly callersEach: number }

type Fleet = {
  provider: ProviderProcess
  redis: Awaited<ReturnType<typeof startRedis>>
  gateways: readonly { process: Running; callers: readonly Caller[] }[]
}

export const startFleet = async (
  scope: Teardown,
  { processes, callersEach }: FleetSize,
  more: Env = {},
): Promise<Fleet> => {
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const redis = await startRedis()
  scope.teardown(redis.stop)
  const env = processEnv(provider.url, { ABOHAWA_REDIS__URL: redis.url, ...more })
  const key = await createKey(env)
  const started = Array.from({ length: processes }, async () => {
    const process = await startProcess(scope, env)
    const callers = await openCallers(scope, process.urls.api ?? '', key, callersEach)
    return { process, callers }
  })
  return { provider, redis, gateways: await Promise.all(started) }
}

// Interleaves the processes, so that none of them gets all of the first requests.
const sendAll = (gateways: Fleet['gateways'], path: string): Promise<TimedResponse[]> => {
  const most = Math.max(...gateways.map(({ callers }) => callers.length))
  const order = Array.from({ length: most }, (_, i) => gateways.flatMap(({ callers }) => callers[i] ?? []))
  return Promise.all(order.flat().map(caller => caller.send(path)))
}

const admitted = ({ process }: Fleet['gateways'][number]): Promise<number> =>
  metric(process.urls.ops ?? '', 'abohawa_admissions_total{decision="allowed"}')

// Resolves when all requests wait; wrapped in an object, because an async function would await the responses too.
const allAdmitted = async (
  gateways: Fleet['gateways'],
  path: string,
): Promise<{ answers: Promise<TimedResponse[]> }> => {
  const counted = await Promise.all(gateways.map(admitted))
  const answers = sendAll(gateways, path)
  await until('all are admitted', async () => {
    const now = await Promise.all(gateways.map(admitted))
    return gateways.every(({ callers }, i) => (now[i] ?? 0) - (counted[i] ?? 0) === callers.length)
  })
  return { answers }
}

/** All callers request one cell while the provider delays its response. */
export const measureStampede = async ({ provider, gateways }: Fleet, path: string) => {
  const before = (await provider.state()).calls
  await provider.steer({ hold: true })
  const waiting = await allAdmitted(gateways, path)
  await until('the provider has a request', async () => (await provider.state()).inFlight >= 1)
  await provider.steer({ hold: false })
  const answers = await waiting.answers
  return { calls: (await provider.state()).calls - before, answers }
}

/** All callers wait for one cell, the process that loads it is killed, and the provider responds to the next request. */
export const killLeaseHolder = async (fleet: Fleet, path: string) => {
  const { provider, gateways } = fleet
  const [holder, ...others] = gateways
  if (!holder) throw new Error('a fleet has processes')
  const before = (await provider.state()).calls
  await provider.steer({ hold: true })
  const [first, ...rest] = holder.callers
  const lost = [first?.send(path)]
  await until('the provider has a request', async () => (await provider.state()).inFlight === 1)
  lost.push(...rest.map(caller => caller.send(path)))
  const waiting = await allAdmitted(others, path)
  const killedAt = performance.now()
  holder.process.child.kill('SIGKILL')
  await until('another takes over', async () => (await provider.state()).calls - before >= 2)
  const takenOverMs = performance.now() - killedAt
  await provider.steer({ hold: false })
  const answers = await waiting.answers
  const allMs = performance.now() - killedAt
  await Promise.all(lost)
  return { calls: (await provider.state()).calls - before, answers, takenOverMs, allMs }
}
