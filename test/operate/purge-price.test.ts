// Without it, the price of a purge could promise loads that the budget has no room for.

import t from 'tap'
import { keyFor } from '../../src/cache/entry-codec.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createBudgetAdmin } from '../../src/operate/budget-admin.ts'
import { loadedAt, priceOf } from '../../src/operate/purge-price.ts'
import { budgetSettingsIn } from '../../src/provider/account.ts'
import { milliSpent, windowsAround } from '../../src/provider/spending-windows.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'

const minute = 60_000
const hour = 60 * minute
const at = Date.parse('2026-11-21T06:30:30Z')
const window = (span: 'minute' | 'hour' | 'day', cells: number, wholeCells: number) => {
  const ends = { minute: '06:31', hour: '07:00', day: '24:00' }
  return { span, cells, wholeCells, endsAt: Date.parse(`2026-11-21T${ends[span]}:00Z`) }
}

t.test('all is loaded when the narrowest of the windows has had room for it', async t => {
  t.equal(loadedAt([], 5_000, at), at, 'without limits')
  t.equal(loadedAt([window('minute', 0, 0)], 0, at), at, 'nothing to load')
  t.equal(loadedAt([window('minute', 10, 100)], 10, at), at)
  t.equal(loadedAt([window('minute', 10, 100)], 11, at), at + 30_000)
  t.equal(loadedAt([window('minute', 10, 100)], 111, at), at + 90_000)
  // 40 at once, 160 in the next hour: 100 at its begin, 60 a minute later.
  const both = [window('minute', 90, 100), window('hour', 40, 500)]
  t.equal(loadedAt(both, 200, at), Date.parse('2026-11-21T07:01:00Z'))
  const days = [window('hour', 500, 500), window('day', 700, 1_000)]
  t.equal(loadedAt(days, 2_000, at), Date.parse('2026-11-23T00:00:00Z'))
  t.equal(loadedAt(days, 2_300, at), Date.parse('2026-11-23T01:00:00Z'))
})

t.test('a budget that is closed begins when it opens, and a limit below a cell never ends', async t => {
  const opensAt = at + 3 * hour
  t.equal(loadedAt([window('minute', 0, 100)], 100, opensAt), opensAt)
  t.equal(loadedAt([window('minute', 0, 100)], 101, opensAt), opensAt + 30_000)
  t.equal(loadedAt([window('day', 0, 0)], 1, at), null)
  t.equal(loadedAt([window('minute', 3, 3), window('day', 1, 0)], 2, at), null)
})

t.test('refreshes leave the reserve, cold loads do not, and one key has its share of either', async t => {
  const clock = manualClock('2026-11-21T06:30:30Z')
  const config = loadConfig({
    files: [],
    env: {
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '300',
      ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.1',
      ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '0.2',
    },
  })
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const { provider, limits } = budgetSettingsIn(config)
  const spent = milliSpent(240)
  const windows = windowsAround(limits, clock.now(), 0).map(({ name, keepUntil, limit }) => ({
    name,
    keepUntil,
    limit,
    known: { charged: 0, refunded: 0 },
    added: { charged: 0, refunded: 0 },
  }))
  const step = { provider, returns: [], unit: spent, now: clock.now(), closure: null, reopenedAt: null }
  await store.spend({ ...step, windows, wanted: spent, claims: [] })

  const cells = [...createGrid(0.1).cellsIn({ south: 23, west: 90, north: 23.2, east: 90.9 })]
  const keys = cells.map(({ id }) => keyFor('first', id))
  for (const key of keys.slice(0, 25)) await store.writeBytes(key, Buffer.from('weather'), clock.now() + hour)
  const priced = (kind: 'soft' | 'hard') =>
    priceOf(config, { store, clock }, { kind, cells, namespaces: ['first'] })
  // Of 300 less a reserve of 30, 240 are used: ten cells of weight 3.
  t.hasStrict(await priced('soft'), {
    cells: 30,
    cached: 25,
    weight: 75,
    windows: [{ name: 'day', limit: 270, left: 30, resetsAt: '2026-11-22T00:00:00.000Z' }],
    closedUntil: null,
    fitsNow: 10,
    refusedNow: 15,
    oneKeyNow: 5,
    reloadedAt: '2026-11-22T00:00:00.000Z',
  })
  t.match(await priced('hard'), {
    weight: 75,
    windows: [{ limit: 300, left: 60 }],
    fitsNow: 20,
    refusedNow: 5,
  })
  await store.deleteBytes(keys.slice(3))
  t.match(await priced('soft'), { cached: 3, weight: 9, refusedNow: 0, oneKeyNow: 3, reloadedAt: /06:30:30/ })

  const until = clock.now() + 2 * hour
  const closure = { until, at: clock.now(), reason: 'the provider answered 429' }
  await store.spend({ ...step, windows: [], wanted: 0, claims: [], closure })
  const FALLBACKS = '[{ baseUrl: "https://weather.example" }]'
  const more = loadConfig({ files: [], env: { ABOHAWA_PROVIDER__FALLBACKS: FALLBACKS } })
  // Two of the three have an entry of the fallback too, and a fourth cell has one alone.
  for (const { id } of cells.slice(1, 4))
    await store.writeBytes(keyFor('second', id), Buffer.from('weather'), clock.now() + hour)
  const ofBoth = { kind: 'soft', cells, namespaces: ['first', 'second'] } as const
  t.match(await priceOf(more, { store, clock }, ofBoth), { fallbacks: 1, cells: 30, cached: 4 })

  const closed = { fitsNow: 0, refusedNow: 3, oneKeyNow: 0, closedUntil: /08:30:30/, reloadedAt: /08:30:30/ }
  t.match(await priced('soft'), closed)
  t.match((await createBudgetAdmin(config, { store, clock }).show()).windows, [{ left: 60, used: 240 }])
})

t.test('a country on a fine grid is counted in parts, with a turn of the event loop after each', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const parts: number[] = []
  let turns = 0
  const counted = {
    ...store,
    hasBytes: async (keys: readonly string[]) => {
      parts.push(keys.length)
      setImmediate(() => {
        turns += 1
      })
      return store.hasBytes(keys)
    },
  }
  const cells = createGrid(0.01).cellsIn({ south: 23, west: 90, north: 23.2, east: 90.4 })
  const config = loadConfig({ files: [], env: {} })
  await priceOf(config, { store: counted, clock }, { kind: 'soft', cells, namespaces: ['first'] })
  t.equal(
    parts.reduce((sum, part) => sum + part, 0),
    cells.length,
  )
  t.ok(parts.every(part => part <= 200))
  t.ok(turns >= parts.length - 1, `${turns} turns`)
})
