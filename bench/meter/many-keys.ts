// Very many keys, each used in one day: a million by three gateways on Redis, and a tenth of them by one on the embedded store.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { hourMs, utcDayMs } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openStore } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/stores/store.ts'
import type { Env, Scope } from '../../test/scenarios/set-up.ts'
import { masterName, startSentinel } from '../../test/support/redis-sentinel.ts'
import { until } from '../../test/support/until.ts'
import { count, type Finding, ms, type Result, type Row } from '../row.ts'
import { writeKeys } from '../write-keys.ts'
import { type Day, type Part, startDay } from './day-of-keys.ts'
import type { WatchedReport } from './watched.ts'

const tier = 'starter'
const longestTurnMs = 50

const openFor = async (scope: Scope, env: Env): Promise<Store> => {
  const store = await openStore(loadConfig({ files: [], env }), systemClock, {
    redisAway: () => {},
    redisBack: () => {},
  })
  scope.teardown(() => store.close())
  return store
}

type Taken = { readonly stopMs: number; readonly startMs: number }

/** The memory of the gateway that met all keys, and bytes of the store: before any was used, and after. */
type Memory = {
  readonly before: WatchedReport
  readonly after: WatchedReport
  readonly store: readonly [empty: number, withKeys: number, used: number]
}

const resultOf = (
  what: string,
  keys: number,
  parts: readonly Part[],
  { before, after, store: [empty, withKeys, used] }: Memory,
  { off, admitted }: { off: number; admitted: number },
  { stopMs, startMs }: Taken,
): Result => {
  const longest = parts.reduce((one, other) => (other.turn > one.turn ? other : one))
  const perKey = (from: number, to: number): string => `${count((to - from) / keys)} bytes`
  const heap = perKey(before.heapUsed, after.heapUsed)
  const resident = perKey(before.resident, after.resident)
  const findings: Finding[] = [
    {
      what: `${what}: longest turn of an event loop in the whole day`,
      bar: `≤ ${longestTurnMs} ms`,
      measured: `${ms(longest.turn)} of processor time (${longest.name}); the longest collection of garbage ${ms(Math.max(...parts.map(({ collection }) => collection)))}, with the time in which other processes had the processor`,
      met: longest.turn <= longestTurnMs,
      figures: { turn: longest.turn, turns: parts.map(({ turn }) => turn) },
    },
    {
      what: 'the same: counts afterwards, compared with the admitted requests',
      bar: 'exact for every key',
      measured: `${count(admitted)} admitted; ${off === 0 ? 'exact for every key' : `${count(off)} keys off`}`,
      met: off === 0,
      figures: { admitted, off },
    },
    {
      what: 'the same: memory per key of the gateway that met all of them',
      bar: '—',
      measured: `${heap} of heap after a collection, ${resident} resident (${count(after.resident / 2 ** 20)} MiB in all); those of the caches of keys among them`,
      met: null,
      figures: { heap: (after.heapUsed - before.heapUsed) / keys, resident: after.resident },
    },
    {
      what: 'the same: the store, per key',
      bar: '—',
      measured: `${perKey(empty, withKeys)} of its records, ${perKey(withKeys, used)} of a day of its counts`,
      met: null,
      figures: { records: (withKeys - empty) / keys, counts: (used - withKeys) / keys },
    },
    {
      what: 'the same: the gateway that met all of them is replaced',
      bar: '—',
      measured: `ended in ${ms(stopMs)}, the next one ready in ${ms(startMs)}`,
      met: null,
      figures: { stopMs, startMs },
    },
  ]
  return {
    findings,
    table: {
      head: [
        'part of the day',
        's',
        'responses',
        'not 200',
        'p99',
        'longest turn',
        'longest delay',
        'longest collection',
      ],
      lines: parts.map(part => [
        `${what}: ${part.name}`,
        part.seconds.toFixed(0),
        count(part.responses),
        count(part.failed),
        ms(part.p99),
        ms(part.turn),
        ms(part.delay),
        ms(part.collection),
      ]),
    },
  }
}

/** The day up to the troubles of the store. */
const beginDay = async (day: Day, storeBytes: () => Promise<number>) => {
  // First requests and first scrapes compile code.
  await day.part('warm-up', () => day.steadyFor(6_000))
  const [before] = await day.memory()
  const quiet = await day.part('few keys', () => day.steadyFor(6_000))
  const comeIn = await day.part('all keys come in, as fast as it goes', day.useAll)
  // The last responses by endpoint are written within a second.
  await pause(2_000)
  const used = await storeBytes()
  const [after] = await day.memory()
  if (!before || !after) throw new Error('there is a gateway')
  return { parts: [quiet, comeIn], before, after, used }
}

const endDay = async (day: Day): Promise<{ parts: Part[]; taken: Taken }> => {
  await day.moveTo(day.midnight - 3_000)
  const midnight = await day.part('midnight', () => day.steadyFor(8_000))
  await day.moveTo(day.midnight + hourMs - 2_000)
  const anHourLater = await day.part('an hour later, when counts are dropped', () => day.steadyFor(12_000))
  await day.moveTo(day.midnight + 2 * utcDayMs - 2_000)
  const daysLater = await day.part('two days later', () => day.steadyFor(8_000))
  let taken: Taken = { stopMs: Number.NaN, startMs: Number.NaN }
  const replaced = await day.part('a gateway is replaced', () =>
    day.steadyDuring(async () => {
      await pause(1_000)
      taken = await day.replaceFirst()
    }),
  )
  return { parts: [midnight, anHourLater, daysLater, replaced], taken }
}

const methodOfDay =
  'Each key is used once, as fast as it goes; all other parts of the day have a steady load of keys in a mixed order, and their ' +
  'clocks are moved there. Every gateway is scraped (/metrics, /status) every 5 s. A turn is the processor time of the main thread between two ' +
  'ticks of a timer of 2 ms, a delay the time between them; the start of a process and its first scrape are left out. '

export const millionKeys: Row = {
  id: 'million-keys',
  method:
    'Three gateways, Redis with a replica and a sentinel. The first gateway gets all keys, each of the others every twentieth. ' +
    methodOfDay +
    'The connections of all subscribers of Redis are killed, then the master (kill -9). Requests that are not answered with 200 are those with keys ' +
    'whose count a gateway does not know while Redis is away.',
  run: async (scope, progress, { settings: { keys: size = 1_000_000 } }) => {
    const sentinel = await startSentinel(undefined, { replicas: 1, sentinels: 1 })
    scope.teardown(sentinel.stop)
    const env: Env = {
      ABOHAWA_REDIS__URL: sentinel.url,
      ABOHAWA_REDIS__MODE: 'sentinel',
      ABOHAWA_REDIS__SENTINEL_MASTER: masterName,
    }
    const store = await openFor(scope, env)
    const master = await sentinel.master()
    const bytes = async (): Promise<number> =>
      Number(/^used_memory:(\d+)/m.exec(await master.admin.info('memory'))?.[1])
    const empty = await bytes()
    progress('writes the keys')
    const keys = await writeKeys(store, size, tier, master.port)
    const withKeys = await bytes()
    const day = await startDay(scope, { env, gateways: 3, keys }, progress)
    const { parts, before, after, used } = await beginDay(day, bytes)
    const lost = await day.part('the link to the counts of others is lost', () =>
      day.steadyDuring(async () => {
        await pause(1_000)
        await master.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
        await pause(15_000)
      }),
    )
    const failover = await day.part('the master of Redis is killed', () =>
      day.steadyDuring(async () => {
        await pause(1_000)
        await master.kill()
        await until('it is noticed', async () => !(await day.isCounting()), 60_000, 50)
        await day.untilCounting()
        await pause(20_000)
      }),
    )
    const end = await endDay(day)
    progress('compares the counts')
    return resultOf(
      `${count(size)} keys over 3 gateways on Redis`,
      size,
      [...parts, lost, failover, ...end.parts],
      { before, after, store: [empty, withKeys, used] },
      await day.compare(store),
      end.taken,
    )
  },
}

export const manyKeysEmbedded: Row = {
  id: 'many-keys-embedded',
  method: `One gateway on the embedded store. ${methodOfDay}`,
  run: async (scope, progress, { settings: { keys: all = 1_000_000 } }) => {
    const size = Math.ceil(all / 10)
    const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
    scope.teardown(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'store.db')
    const env: Env = { ABOHAWA_STORE__PATH: file }
    const store = await openFor(scope, env)
    const bytes = async (): Promise<number> => (await store.size()).usedBytes
    const empty = await bytes()
    progress('writes the keys')
    const keys = await writeKeys(store, size, tier)
    const withKeys = await bytes()
    const day = await startDay(scope, { env, gateways: 1, keys }, progress)
    const { parts, before, after, used } = await beginDay(day, bytes)
    const end = await endDay(day)
    progress('compares the counts')
    return resultOf(
      `${count(size)} keys on the embedded store`,
      size,
      [...parts, ...end.parts],
      { before, after, store: [empty, withKeys, used] },
      await day.compare(store),
      end.taken,
    )
  },
}
