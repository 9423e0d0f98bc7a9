// Every place of the catalogue is requested at the same moment and none of their cells is cached: how long hits on other cells
// take meanwhile, and whether each place is answered as soon as the provider's limits allow.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { minuteMs } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { type Caller, openCallers } from '../../test/scenarios/callers.ts'
import {
  catalogueFile,
  createKey,
  type Env,
  metric,
  placesByCell,
  processEnv,
  type Scope,
  startProcess,
} from '../../test/scenarios/set-up.ts'
import { runCommand } from '../../test/support/process.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { until } from '../../test/support/until.ts'
import { count, median, ms, type Row, sorted } from '../row.ts'
import { writeKeys } from '../write-keys.ts'
import type { SteadyHits } from './steady-hits.ts'

const latencyMs = 300
const subscribers = 4_000
const warmCells = 20
const rounds = 5
const quietMs = 4_000
const openedAtOnce = 200
const atMostMs = 600_000
// All cells fit into three windows. A cell that is loaded weighs 3.
const perMinute = 1_500
const cellWeight = 3
// For the work of the gateway and the provider between two of its responses.
const spareMs = 2_000
const reader = new URL('steady-hits.ts', import.meta.url).pathname

const p99Of = (times: readonly number[]): number =>
  sorted(times)[Math.floor(times.length * 0.99)] ?? Number.NaN

const setUp = async (scope: Scope, limits: Env = {}) => {
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const redis = await startRedis()
  scope.teardown(redis.stop)
  const env = processEnv(provider.url, {
    ABOHAWA_REDIS__URL: redis.url,
    ABOHAWA_CATALOGUE__PATH: catalogueFile,
    ...limits,
  })
  const readersKey = await createKey(env)
  const config = loadConfig({ files: [], env })
  const store = await openStore(config, systemClock, { redisAway: () => {}, redisBack: () => {} })
  scope.teardown(() => store.close())
  const { presented: keys } = await writeKeys(store, subscribers, 'starter', redis.port, 1)
  const { urls } = await startProcess(scope, env)
  const [api, ops] = [urls.api ?? '', urls.ops ?? '']
  await provider.steer({ latencyMs })
  const cells = placesByCell()
  const warm = cells.slice(0, warmCells).map(({ paths }) => paths[0] ?? '')
  const cold = cells.slice(warmCells)
  const places = cold.flatMap(({ paths }) => paths)
  // The gateway keeps a connection open, and a key known, once a good key came on it.
  const callers: Caller[] = []
  while (callers.length < places.length) {
    const some = await openCallers(scope, api, '', Math.min(openedAtOnce, places.length - callers.length))
    const first = callers.length
    await Promise.all(
      some.map((caller, i) =>
        caller.send('/api/v1/locations?type=division', keys[(first + i) % keys.length]),
      ),
    )
    callers.push(...some)
  }
  return {
    env,
    api,
    ops,
    provider,
    config: config.provider,
    cells: cold.length,
    places,
    warm,
    readersKey,
    callers,
    keys,
  }
}
type World = Awaited<ReturnType<typeof setUp>>

const startReader = async (
  scope: Scope,
  { api, readersKey, warm }: World,
): Promise<() => Promise<SteadyHits>> => {
  const child: ChildProcess = fork(reader, [api, readersKey, ...warm], { execArgv: [] })
  scope.teardown(() => child.kill('SIGKILL'))
  const report = async (): Promise<SteadyHits> => {
    const reported = once(child, 'message')
    child.send('report')
    const [hits] = await reported
    return hits
  }
  await report()
  return report
}

/** Requests all places in one turn; one that gets no weather yet is requested again when its response says. */
const requestAll = async ({ callers, places, keys }: World) => {
  const startedAt = performance.now()
  const waits: number[] = []
  let askedToWait = 0
  const request = async (caller: Caller, i: number): Promise<void> => {
    for (;;) {
      const { status, head } = await caller.send(places[i] ?? '', keys[i % keys.length])
      if (status === 200) break
      if (performance.now() - startedAt > atMostMs) throw new Error(`${places[i]} has no weather`)
      const seconds = /^retry-after: (\d+)/im.exec(head)?.[1]
      if (status !== 500 || seconds === undefined) throw new Error(`${places[i]} answered ${head}`)
      askedToWait += 1
      await pause(1_000 * Number(seconds))
    }
    waits.push(performance.now() - startedAt)
  }
  await Promise.all(callers.map(request))
  return { lastMs: Math.max(...waits), askedToWait }
}

/** Empties the cache of the gateway, but for the cells of the steady hits. */
const makeCold = async ({ env, ops }: World): Promise<void> => {
  const { code, stderr } = await runCommand(['cache', 'purge', 'all', '--hard'], env)
  if (code !== 0) throw new Error(stderr)
  const entries = () => metric(ops, 'abohawa_cache_memory_entries')
  await until('only the requested cells are cached', async () => (await entries()) === warmCells, 20_000, 100)
}

/** With a limit in each minute: one round, from the first window of the provider that has all of its budget. */
const measureLimited = async (scope: Scope) => {
  const world = await setUp(scope, { ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: String(perMinute) })
  const { outageShare } = world.config.budget
  const perWindow = Math.floor((perMinute * (1 - outageShare)) / cellWeight)
  const windows = Math.ceil(world.cells / perWindow)
  await pause(minuteMs - (Date.now() % minuteMs) + 1_000)
  const startedAt = Date.now()
  const { lastMs, askedToWait } = await requestAll(world)
  const lastWindowMs = minuteMs * Math.floor(startedAt / minuteMs + windows - 1) - startedAt
  const rest = Math.ceil((world.cells - (windows - 1) * perWindow) / world.config.maxPointsPerRequest)
  return { windows, perWindow, lastMs, askedToWait, allowedMs: lastWindowMs + rest * latencyMs + spareMs }
}

export const allCold: Row = {
  id: 'all-cold',
  method:
    `One gateway, Redis, a provider that takes ${latencyMs} ms and has no limits, as on a paid plan. Everything cached is purged but for ` +
    `${warmCells} cells, which a process of its own requests every 4 ms, whether the last response has come or not. Then all places of the other cells are ` +
    `requested in one turn of the event loop on a kept connection each, as ${count(subscribers)} subscribers in turn; one that gets no weather within cache.waitFor is requested again ` +
    'when its response says. Beside it the same requests once all is cached. Then once more ' +
    `with provider.budget.perMinute ${count(perMinute)}, from the first second of a minute.`,
  run: async (scope, progress) => {
    const world = await setUp(scope)
    const report = await startReader(scope, world)
    const found: { ratio: number; hotRatio: number; lastMs: number; askedToWait: number; calls: number }[] =
      []
    for (let round = 0; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`)
      await makeCold(world)
      await report()
      await pause(quietMs)
      const quiet = await report()
      const { calls: callsBefore } = await world.provider.state()
      const { lastMs, askedToWait } = await requestAll(world)
      const beside = await report()
      const { calls } = await world.provider.state()
      await requestAll(world)
      const warm = await report()
      // The first round is a warm-up.
      if (round === 0) continue
      const normal = p99Of(quiet.times)
      found.push({
        ratio: p99Of(beside.times) / normal,
        hotRatio: p99Of(warm.times) / normal,
        lastMs,
        askedToWait,
        calls: calls - callsBefore,
      })
    }
    progress(`with ${count(perMinute)} a minute`)
    const limited = await measureLimited(scope)
    const batches = Math.ceil(world.cells / world.config.maxPointsPerRequest)
    const allowedMs = batches * latencyMs + spareMs
    const ratio = median(found.map(each => each.ratio))
    const lastMs = median(found.map(each => each.lastMs))
    return {
      findings: [
        {
          what: `${count(world.places.length)} places of ${count(world.cells)} cells cold at the same moment: p99 of hits meanwhile`,
          bar: '≤ 2 × quiet',
          measured: `${ratio.toFixed(1)} × median of ${rounds} rounds; ${median(found.map(each => each.hotRatio)).toFixed(1)} × while the same is requested from the cache`,
          met: ratio <= 2,
          figures: {
            ratio,
            ratios: found.map(each => each.ratio),
            hotRatios: found.map(each => each.hotRatio),
          },
        },
        {
          what: 'the same: the last place has its weather',
          bar: `≤ ${ms(allowedMs)}: ${batches} batches of ${ms(latencyMs)}, and ${ms(spareMs)}`,
          measured: `${ms(lastMs)} median, ${ms(Math.min(...found.map(each => each.lastMs)))} best; ${Math.max(...found.map(each => each.calls))} requests to the provider; ${count(Math.max(...found.map(each => each.askedToWait)))} asked to wait at most`,
          met: lastMs <= allowedMs,
          figures: { lastMs, allowedMs, found: JSON.stringify(found) },
        },
        {
          what: `the same with a budget of ${count(perMinute)} a minute: the last place has its weather`,
          bar: `≤ ${ms(limited.allowedMs)}: ${count(limited.perWindow)} cells in each of ${limited.windows} minutes, and ${ms(spareMs)}`,
          measured: `${ms(limited.lastMs)}; ${count(limited.askedToWait)} times asked to wait`,
          met: limited.lastMs <= limited.allowedMs,
          figures: limited,
        },
      ],
    }
  },
}
