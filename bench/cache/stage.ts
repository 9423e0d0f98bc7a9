// What the rows of the benchmark stand on: real processes of gateways, provider and Redis, a supply of weather on a
// clock that is moved by hand, and a way to ask many things at once. Everything ends with its scope.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Pool } from 'undici'
import { createAnswers } from '../../src/answer.ts'
import { createCalendar } from '../../src/calendar.ts'
import { type Catalogue, createCatalogue } from '../../src/catalogue/catalogue.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { openSupply, type Supply } from '../../src/gateway/supply.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import { type Running, runCommand, startCommand } from '../../test/support/process.ts'
import type { ProviderProcess } from '../../test/support/provider-process.ts'

/** One line of the table. `met` is null where there is no bar. */
export type Row = {
  readonly name: string
  readonly what: string
  readonly bar: string
  run(scope: Scope): Promise<Measured>
}

export type Measured = {
  readonly measured: string
  readonly met: boolean | null
  /** Sentences below the table. */
  readonly notes?: readonly string[]
  /** Files to write beside the page. */
  readonly plots?: Readonly<Record<string, string>>
}

/** What ends with a row, and how it tells where it is. */
export type Scope = { teardown(fn: () => unknown): void; progress(text: string): void }

export const noBudget = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
}

export const folderOf = async (scope: Scope): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
  scope.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** A key that no benchmark uses up. */
const tier = { ABOHAWA_QUOTA__TIERS__BENCH: '1000000000' }

export type Fleet = {
  readonly gateways: readonly Running[]
  readonly env: Record<string, string>
  readonly key: string
}

/** Gateway processes with the same environment, and a key for them. */
export const startFleet = async (
  scope: Scope,
  count: number,
  providerUrl: string,
  more: Record<string, string>,
): Promise<Fleet> => {
  const env = {
    ABOHAWA_PROVIDER__BASE_URL: providerUrl,
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_LOG__ACCESS: 'false',
    ...noBudget,
    ...tier,
    ...more,
  }
  const { stdout } = await runCommand(
    ['keys', 'create', '--subscriber', 'Bench', '--tier', 'bench', '--json'],
    env,
  )
  const gateways: Running[] = []
  for (let i = 0; i < count; i++) gateways.push(await startCommand(scope, ['serve'], ['api', 'ops'], env))
  return { gateways, env, key: JSON.parse(stdout).key }
}

export type Asked = { readonly status: number; readonly ms: number; readonly text: string }

/** Callers of one gateway, each on a connection of its own that is open already. */
export const callersOf = async (scope: Scope, apiUrl: string, key: string, count: number) => {
  const pool = new Pool(apiUrl, { connections: count, pipelining: 1, keepAliveTimeout: 120_000 })
  scope.teardown(() => pool.destroy())
  const ask = async (path: string): Promise<Asked> => {
    const started = performance.now()
    const { statusCode, body } = await pool.request({
      method: 'GET',
      path: `/api/v1${path}`,
      headers: { 'x-api-key': key },
    })
    const text = await body.text()
    return { status: statusCode, ms: performance.now() - started, text }
  }
  const askAll = (path: string) => Promise.all(Array.from({ length: count }, () => ask(path)))
  await askAll('/locations?type=division')
  return { ask, askAll }
}

export const metricOf = async (opsUrl: string | undefined, name: string): Promise<number> => {
  const text = await (await fetch(`${opsUrl}/metrics`)).text()
  const line = text.split('\n').find(found => found.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1))
}

/** Looks until something is so; for what happens behind answers. */
export const until = async (
  holds: () => Promise<boolean>,
  what: string,
  patienceMs = 30_000,
): Promise<void> => {
  const end = performance.now() + patienceMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`it never came to this: ${what}`)
    // A look that needs no answer from outside must not keep what it looks for from happening.
    await nextTurn()
  }
}

export const placesOf = async (config: Config): Promise<Catalogue> =>
  createCatalogue(
    await readSnapshot(new URL('../../locations.json', import.meta.url).pathname, config.catalogue.bounds),
  )

export type Desk = {
  readonly supply: Supply
  readonly answers: ReturnType<typeof createAnswers>
  readonly clock: ManualClock
  readonly config: Config
  readonly catalogue: Catalogue
  /** How many cells the fleet wanted at the last pulse. */
  wanted(): number
  /** Moves both clocks, and waits until nothing is under way at the provider. */
  moveTo(instant: number): Promise<void>
  settle(): Promise<void>
}

/** The gateway's weather without its HTTP: the real cache and store before a real provider process, on one clock. */
export const openDesk = async (
  scope: Scope,
  provider: ProviderProcess,
  start: number,
  more: Record<string, string> = {},
): Promise<Desk> => {
  const clock = manualClock(start)
  const config = loadConfig({
    files: [],
    env: {
      ABOHAWA_PROVIDER__BASE_URL: provider.url,
      ABOHAWA_STORE__PATH: join(await folderOf(scope), 'store.db'),
      ABOHAWA_CACHE__MEMORY: '256MiB',
      ...noBudget,
      ...more,
    },
  })
  const store = await openStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  const catalogue = await placesOf(config)
  const silent = () => {}
  let wanted = 0
  const supply = openSupply(config, {
    store,
    catalogue: () => catalogue,
    clock,
    observer: {
      read: silent,
      refreshFailed: silent,
      sharedTierFailed: silent,
      pulsed: seen => {
        wanted = seen.wanted
      },
      purged: silent,
      request: silent,
      newRun: silent,
      runsUnknown: silent,
      storeAway: silent,
      storeBack: silent,
      breaker: silent,
    },
  })
  scope.teardown(async () => {
    await supply.close()
    await store.close()
  })
  await provider.steer({ now: new Date(start).toISOString() })
  await supply.start()
  const settle = () =>
    until(
      async () => supply.provider.waiting() === 0 && (await provider.state()).inFlight === 0,
      'all is quiet',
    )
  return {
    supply,
    clock,
    config,
    catalogue,
    answers: createAnswers({
      grid: supply.grid,
      timelines: supply.timelines,
      clock,
      calendar: createCalendar(config.quota.timeZone),
      hourlyHours: config.weather.hourlyHours,
    }),
    settle,
    wanted: () => wanted,
    moveTo: async instant => {
      clock.set(instant)
      await provider.steer({ now: new Date(instant).toISOString() })
    },
  }
}
