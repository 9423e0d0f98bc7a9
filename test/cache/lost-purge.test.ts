// Without it a gateway could serve purged weather as fresh after the purge log lost records.

import t, { type Test } from 'tap'
import { cacheNamespacesIn } from '../../src/cache/namespaces.ts'
import { orderPurge } from '../../src/cache/purges.ts'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { openUpstream } from '../../src/cache/upstream.ts'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'
import { shipped } from '../../src/catalogue/snapshot-reader.ts'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import type { ChangeTopic } from '../../src/stores/store.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualHorizon } from '../../src/weather/horizon.ts'
import { createSampleWeather } from '../../tools/load/what-if/sample-weather.ts'
import { stubsOf } from '../../tools/load/what-if/simulated-gateway.ts'
import { manualClock } from '../support/manual-clock.ts'
import { testRedis } from '../support/redis-server.ts'
import { redisStores } from '../support/redis-store.ts'
import { until } from '../support/until.ts'

const calendar = createCalendar('Asia/Dhaka')
const grid = createGrid(0.1)
const [dhaka, khulna] = [grid.cellOf(23.71, 90.41), grid.cellOf(22.8, 89.5)]
const loaded = loadConfig({ files: [], env: {} })
const config: Config = {
  ...loaded,
  cache: {
    ...loaded.cache,
    ...{ freshness: 'age', freshForMs: hourMs, freshSpread: 0, freshForAtMostMs: 4 * hourMs },
    ...{ staleForMs: 12 * hourMs, demandForMs: hourMs, warmForMs: 0 },
  },
}
const [{ namespace } = { namespace: '' }] = cacheNamespacesIn(config)
const { hourlyHours } = config.weather

const openStore = redisStores(await testRedis(t))

/** A store, a gateway on it, and how to start others. */
const setUp = async (t: Test) => {
  // The expiries of Redis follow its own clock.
  const clock = manualClock(Date.now())
  const { store, raw, prefix } = await openStore(t)
  const weather = createSampleWeather(usualHorizon, hourlyHours, calendar)
  const start = async () => {
    const counts = { loads: 0, purges: 0, missed: 0 }
    const connection = { isCut: false }
    const upstream = openUpstream(config, {
      store: {
        ...store,
        changeRecordsAfter: async (topic: ChangeTopic, number: number) => {
          if (connection.isCut) throw new Error('the gateway stands still')
          return store.changeRecordsAfter(topic, number)
        },
      },
      catalogue: { current: { bounds: shipped.bounds } as Catalogue },
      ...{ clock, instances: () => 1, settings: () => '', report: () => '' },
      stubs: stubsOf({
        weather,
        clock,
        latencyMs: 0,
        onSpent: cells => {
          counts.loads += cells
        },
      }),
      observer: {
        ...silentObserver,
        onPurge: () => {
          counts.purges += 1
        },
        onPurgesMissed: () => {
          counts.missed += 1
        },
      },
    })
    const { timelines } = upstream
    await upstream.start()
    t.teardown(upstream.close)
    const read = async (cell = dhaka) => {
      const { outcome } = await timelines.read(cell)
      return outcome
    }
    /** Ticks until a purge or a gap is known. */
    const learns = (what: 'purges' | 'missed', count = 1) =>
      until(`it knows ${count} ${what}`, () => {
        clock.advance(500)
        return counts[what] >= count
      })
    return { counts, connection, read, learns }
  }
  const purge = (kind: 'soft' | 'hard', { id }: typeof dhaka) =>
    orderPurge(
      store,
      { namespaces: [namespace], cells: [grid.cellNamed(id) ?? dhaka], now: clock.now() },
      { kind, scope: { cell: id } },
    )
  /** More than the log keeps; that of Dhaka is the first. */
  const purgeMany = async (kind: 'soft' | 'hard') => {
    await purge(kind, dhaka)
    const others = [...grid.cellsIn({ south: 24, west: 87.5, north: 27, east: 93 })].slice(0, 1_000)
    await Promise.all(others.map(cell => purge(kind, cell)))
  }
  return { clock, raw, log: `${prefix}notices:purges`, start, purge, purgeMany }
}

t.test('a log that begins purges nothing, and is begun once', async t => {
  const { start, raw, log } = await setUp(t)
  const first = await start()
  t.equal(await first.read(), 'miss')
  const second = await start()
  t.equal(await second.read(), 'hit')
  t.equal(await raw.zcard(log), 1)
  t.match([first, second], [{ counts: { purges: 0, missed: 0 } }, { counts: { purges: 0, missed: 0 } }])
})

for (const kind of ['soft', 'hard'] as const)
  for (const who of ['stood still', 'starts'])
    t.test(`of more ${kind} purges than the log keeps, none is missed by who ${who}`, async t => {
      const { start, purgeMany } = await setUp(t)
      const gateway = await start()
      for (const cell of [dhaka, khulna]) await gateway.read(cell)
      gateway.connection.isCut = true
      await purgeMany(kind)
      t.equal(await gateway.read(), 'hit')
      gateway.connection.isCut = false
      const reader = who === 'starts' ? await start() : gateway
      if (reader === gateway) await gateway.learns('missed')
      t.equal(await reader.read(khulna), 'stale', 'which ones is forgotten')
      t.equal(await reader.read(), kind === 'hard' && who === 'starts' ? 'miss' : 'stale')
      for (const cell of [dhaka, khulna])
        await until('it is reloaded', async () => (await reader.read(cell)) === 'hit')
      t.equal(reader.counts.missed, who === 'starts' ? 0 : 1)
      t.equal(await (await start()).read(khulna), 'hit', 'what was loaded since is fresh')
    })

t.test('a lost log is noticed, also where Redis’ clock has gone back; later purges count', async t => {
  for (const aheadMs of [0, hourMs]) {
    const { start, purge, raw, log, clock } = await setUp(t)
    const gateway = await start()
    // From before the clock went back.
    const number = Date.now() + aheadMs
    if (aheadMs > 0) await raw.zadd(log, number, `${number} {"kind":"soft","scope":{"cell":"27,93"}}`)
    else await purge('soft', grid.cellOf(27, 93))
    await gateway.learns('purges')
    await gateway.read()
    await gateway.read(khulna)
    t.equal(await gateway.read(), 'hit')

    await raw.del(log)
    await gateway.learns('missed')
    t.equal(await gateway.read(), 'stale')
    await until('it is reloaded', async () => (await gateway.read()) === 'hit')
    const other = await start()
    t.equal(await other.read(), 'hit', 'loaded since')
    t.equal(await other.read(khulna), 'stale', 'from before the loss')

    const before = gateway.counts.purges
    await purge('hard', dhaka)
    await gateway.learns('purges', before + 1)
    const { loads } = gateway.counts
    t.equal(await gateway.read(), 'miss')
    t.equal(gateway.counts.loads, loads + 1)
    clock.advance(3_000)
    t.equal(await gateway.read(), 'hit', 'and stays')
    t.equal(gateway.counts.missed, 1, 'one loss')
  }
})
