// Four gateway processes on one Redis and many callers of one cell that nobody has: in peace, with the process killed
// that fetches it, and with Redis gone while everybody waits.

import type { Running } from '../../test/support/process.ts'
import { type ProviderProcess, startProvider } from '../../test/support/provider-process.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { type Answered, type Caller, openCallers } from '../callers.ts'
import { count, median, ms, type Row, type Scope, sorted } from '../row.ts'
import { createKey, type Env, metric, processEnv, startProcess, until } from '../set-up.ts'

export type FleetSize = { readonly processes: number; readonly callersEach: number }

type Fleet = {
  provider: ProviderProcess
  redis: Awaited<ReturnType<typeof startRedis>>
  gateways: readonly { process: Running; callers: readonly Caller[] }[]
}

const full: FleetSize = { processes: 4, callersEach: 250 }
const latencyMs = 300
const rounds = 7

const pathOfRound = (round: number): string => `/api/v1/weather/coords/${21 + round * 0.1}/${90}`

export const startFleet = async (
  scope: Scope,
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

// Caller by caller over all processes, so that none of them is asked first by all.
const askAll = (gateways: Fleet['gateways'], path: string): Promise<Answered[]> => {
  const most = Math.max(...gateways.map(({ callers }) => callers.length))
  const order = Array.from({ length: most }, (_, i) => gateways.flatMap(({ callers }) => callers[i] ?? []))
  return Promise.all(order.flat().map(caller => caller.ask(path)))
}

const admitted = ({ process }: Fleet['gateways'][number]): Promise<number> =>
  metric(process.urls.ops ?? '', 'abohawa_admissions_total{decision="allowed"}')

// In an object, because what is awaited here is that they wait and not their answers.
const allAdmitted = async (
  gateways: Fleet['gateways'],
  path: string,
): Promise<{ answers: Promise<Answered[]> }> => {
  const counted = await Promise.all(gateways.map(admitted))
  const answers = askAll(gateways, path)
  await until('all are admitted', async () => {
    const now = await Promise.all(gateways.map(admitted))
    return gateways.every(({ callers }, i) => (now[i] ?? 0) - (counted[i] ?? 0) === callers.length)
  })
  return { answers }
}

const bad = (answers: readonly Answered[]): number => answers.filter(({ status }) => status !== 200).length

const warm = async ({ gateways }: Fleet): Promise<void> => {
  for (let i = 0; i < 4; i++) await askAll(gateways, '/api/v1/weather/coords/26/89')
}

export const stampede: Row = {
  id: 'stampede',
  method:
    '1,000 kept connections, opened beforehand and warmed with 4,000 requests for another cell, write the same request ' +
    'in one turn of the event loop; each is timed from its own write to its last byte. The caller, the provider and ' +
    'Redis run on the machine too, so their work is in the times.',
  run: async (scope, progress) => {
    const fleet = await startFleet(scope, full)
    await warm(fleet)
    await fleet.provider.steer({ latencyMs })
    const alone: number[] = []
    const slowest: number[] = []
    const warmMs: number[] = []
    const calls: number[] = []
    let failed = 0
    for (let round = 0; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`)
      const lone = (await fleet.gateways[0]?.callers[0]?.ask(pathOfRound(round).replace('/90', '/91')))?.ms
      const before = (await fleet.provider.state()).calls
      const answers = await askAll(fleet.gateways, pathOfRound(round))
      // The first round is for warming up.
      if (round === 0) continue
      alone.push(lone ?? Number.NaN)
      calls.push((await fleet.provider.state()).calls - before)
      slowest.push(sorted(answers.map(answer => answer.ms)).at(-1) ?? Number.NaN)
      failed += bad(answers)
      // The same callers and the same cell again, now from memory: what the machine takes for them alone.
      const again = await askAll(fleet.gateways, pathOfRound(round))
      warmMs.push(sorted(again.map(answer => answer.ms)).at(-1) ?? Number.NaN)
    }
    const [best, middle, most] = [Math.min(...slowest), median(slowest), Math.max(...calls)]
    return {
      findings: [
        {
          what: '4 processes × 250 simultaneous cold requests for one cell: provider requests',
          bar: '= 1',
          measured: `${most} in each of ${rounds} rounds at most; ${failed} of ${count(rounds * 1_000)} not answered with 200`,
          met: most === 1 && failed === 0,
          figures: { calls, failed },
        },
        {
          what: `the same: slowest caller, provider latency ${latencyMs} ms`,
          bar: `≤ ${latencyMs + 50} ms`,
          measured:
            `${ms(middle)} median of ${rounds} rounds, ${ms(best)} best; a lone cold request ${ms(median(alone))}, ` +
            `the slowest of the same 1,000 on the warm cell ${ms(median(warmMs))}`,
          met: middle <= latencyMs + 50,
          figures: { slowest, alone, warmMs },
        },
      ],
    }
  },
}

/** Everybody asks for one cell while the provider is held, and is answered when it is let go. */
export const measureStampede = async ({ provider, gateways }: Fleet, path: string) => {
  const before = (await provider.state()).calls
  await provider.steer({ hold: true })
  const asked = await allAdmitted(gateways, path)
  await until('the provider is asked', async () => (await provider.state()).inFlight >= 1)
  await provider.steer({ hold: false })
  const answers = await asked.answers
  return { calls: (await provider.state()).calls - before, answers }
}

/** Everybody waits for one cell, the process that fetches it is killed, the provider answers the next that asks. */
export const killHolder = async (fleet: Fleet, path: string) => {
  const { provider, gateways } = fleet
  const [holder, ...others] = gateways
  if (!holder) throw new Error('a fleet has processes')
  const before = (await provider.state()).calls
  await provider.steer({ hold: true })
  const [first, ...rest] = holder.callers
  const lost = [first?.ask(path)]
  await until('the provider is asked', async () => (await provider.state()).inFlight === 1)
  lost.push(...rest.map(caller => caller.ask(path)))
  const asked = await allAdmitted(others, path)
  const killedAt = performance.now()
  holder.process.child.kill('SIGKILL')
  await until('another takes over', async () => (await provider.state()).calls - before >= 2)
  const takenOverMs = performance.now() - killedAt
  await provider.steer({ hold: false })
  const answers = await asked.answers
  const allMs = performance.now() - killedAt
  await Promise.all(lost)
  return { calls: (await provider.state()).calls - before, answers, takenOverMs, allMs }
}

export const holderKilled: Row = {
  id: 'holder-killed',
  method:
    'One process is let ahead until its request waits at the provider; the others are asked; once all of them are ' +
    'admitted the first gets a kill -9. The provider answers when it has been asked again.',
  run: async scope => {
    const fleet = await startFleet(scope, full)
    const { calls, answers, takenOverMs, allMs } = await killHolder(fleet, pathOfRound(0))
    return {
      findings: [
        {
          what: 'the same with the fetching process killed (kill -9) in the middle',
          bar: '≤ 2 provider requests, every caller of the others answered',
          measured:
            `${calls} requests, ${count(answers.length - bad(answers))} of ${count(answers.length)} answered; ` +
            `taken over after ${ms(takenOverMs)} (cache.holdFor 2 s), all answered after ${ms(allMs)}`,
          met: calls <= 2 && bad(answers) === 0,
          figures: { calls, answered: answers.length - bad(answers), takenOverMs, allMs },
        },
      ],
    }
  },
}

/** Everybody waits for one cell, Redis goes, the provider answers. */
export const killRedis = async (fleet: Fleet, path: string) => {
  const { provider, gateways, redis } = fleet
  const before = (await provider.state()).calls
  await provider.steer({ hold: true })
  const asked = await allAdmitted(gateways, path)
  await until('the provider is asked', async () => (await provider.state()).inFlight >= 1)
  const stoppedAt = performance.now()
  await redis.stop()
  await provider.steer({ hold: false })
  const answers = await asked.answers
  const allMs = performance.now() - stoppedAt
  return { calls: (await provider.state()).calls - before, answers, allMs }
}

export const redisKilled: Row = {
  id: 'redis-killed',
  method:
    'All 1,000 requests are admitted and wait for a held provider; then Redis ends; then the provider answers.',
  run: async scope => {
    const fleet = await startFleet(scope, full)
    await warm(fleet)
    const { calls, answers, allMs } = await killRedis(fleet, pathOfRound(0))
    return {
      findings: [
        {
          what: 'the same with Redis stopped in the middle',
          bar: '≤ 1 provider request per process (4), all answered',
          measured: `${calls} requests, ${count(answers.length - bad(answers))} of ${count(answers.length)} answered, the last ${ms(allMs)} after`,
          met: calls <= full.processes && bad(answers) === 0,
          figures: { calls, answered: answers.length - bad(answers), allMs },
        },
      ],
    }
  },
}
