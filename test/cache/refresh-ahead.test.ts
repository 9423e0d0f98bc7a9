// Refresh-ahead: which entries it refreshes before they turn stale, in which order, and in which batches.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createFreshness } from '../../src/cache/freshness.ts'
import type { Subject } from '../../src/cache/read-through.ts'
import { createRefreshAhead } from '../../src/cache/refresh-ahead.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/tiers.ts'
import { manualClock } from '../support/manual-clock.ts'

const minute = 60_000
const policy = createFreshness(
  {
    freshForMs: 60 * minute,
    freshSpread: 0,
    freshForAtMostMs: 60 * minute,
    refreshAheadForMs: 2 * minute,
    staleForMs: 60 * minute,
    settleForMs: 0,
    spreadOverMs: 0,
  },
  () => 1,
)

/** Refresh-ahead over real parts; `refreshed` lists its loads in order. */
const setUp = ({ batch = 3, pinned = [] as string[] } = {}) => {
  const clock = manualClock()
  const demand = createDemand<Subject>()
  const memory = createMemoryTier<string>(1_000_000)
  const refreshed: string[] = []
  const backingOff = new Set<string>()
  const gates: PromiseWithResolvers<void>[] = []
  const keep = (key: string, jitter = 0) =>
    keepEntry(memory, key, { value: key, fetchedAt: clock.now(), bytes: 1, jitter, generation: 0, run: null })
  const refreshAhead = createRefreshAhead<Subject>({
    demand,
    pinned: () => pinned.map(id => ({ id })),
    memory,
    policy,
    isHeldBack: key => backingOff.has(key),
    refresh: ({ id }) => {
      refreshed.push(id)
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      return gate.promise
    },
    batch,
    demandForMs: 120 * minute,
    clock,
  })
  const request = (key: string, times = 1) => {
    for (let i = 0; i < times; i++) demand.record(key, { id: key }, clock.now())
  }
  const finishAll = async () => {
    for (const { resolve } of gates.splice(0)) resolve()
    await new Promise(resolve => setImmediate(resolve))
  }
  return { clock, refreshAhead, request, keep, refreshed, backingOff, finishAll }
}

t.test('entries in demand are refreshed when due, highest demand first, and before they are stale', t => {
  const { clock, refreshAhead, request, keep, refreshed } = setUp()
  for (const key of ['a', 'b', 'c']) keep(key)
  clock.advance(minute)
  request('a')
  request('b', 5)
  request('c', 3)
  clock.set(clock.now() + 59 * minute - 1)
  t.equal(refreshAhead(), 0, 'a moment too soon')
  clock.advance(1)
  t.equal(refreshAhead(), 3)
  t.strictSame(refreshed, ['b', 'c', 'a'])
  t.equal(refreshAhead(), 0, 'they are under way')
  t.end()
})

t.test('a batch that is not full waits for at most half of the lead', t => {
  const { clock, refreshAhead, request, keep, refreshed } = setUp({ batch: 3 })
  keep('a')
  clock.advance(minute)
  request('a')
  clock.advance(59 * minute)
  t.equal(refreshAhead(), 0, 'others may fall due')
  clock.advance(minute)
  t.equal(refreshAhead(), 1)
  t.strictSame(refreshed, ['a'])
  t.end()
})

t.test('an entry without demand since its last load is not refreshed', t => {
  const { clock, refreshAhead, request, keep } = setUp()
  request('a')
  clock.advance(1)
  keep('a')
  clock.advance(61 * minute)
  t.equal(refreshAhead(), 0)
  t.end()
})

t.test('an entry in backoff is not refreshed', t => {
  const { clock, refreshAhead, request, keep, backingOff } = setUp({ batch: 1 })
  keep('a')
  clock.advance(minute)
  request('a')
  clock.advance(60 * minute)
  backingOff.add('a')
  t.equal(refreshAhead(), 0)
  backingOff.clear()
  t.equal(refreshAhead(), 1)
  t.end()
})

t.test('only a few batches are under way, and the others keep their order', async t => {
  const { clock, refreshAhead, request, keep, refreshed, finishAll } = setUp({ batch: 2 })
  const keys = Array.from({ length: 10 }, (_, i) => `k${i}`)
  for (const key of keys) keep(key)
  clock.advance(minute)
  keys.forEach((key, i) => {
    request(key, i + 1)
  })
  clock.advance(60 * minute)
  t.equal(refreshAhead(), 6)
  t.strictSame(refreshed, ['k9', 'k8', 'k7', 'k6', 'k5', 'k4'])
  t.equal(refreshAhead(), 0)
  for (const key of refreshed) keep(key)
  await finishAll()
  t.equal(refreshAhead(), 4)
  t.strictSame(refreshed.slice(6), ['k3', 'k2', 'k1', 'k0'])
})

t.test('pinned entries are loaded without demand, after those in demand', async t => {
  const { clock, refreshAhead, request, keep, refreshed, finishAll } = setUp({
    batch: 10,
    pinned: ['big', 'small'],
  })
  keep('a')
  clock.advance(minute)
  request('a')
  clock.advance(60 * minute)
  t.equal(refreshAhead(), 3)
  t.strictSame(refreshed, ['a', 'big', 'small'])
  await finishAll()
  t.equal(
    refreshAhead(),
    1,
    'a is still due; the others found no room in memory and are not tried again at once',
  )
  await finishAll()
  keep('big')
  keep('small')
  keep('a')
  clock.advance(62 * minute)
  t.equal(refreshAhead(), 2, 'and they stay fresh without demand')
  t.strictSame(refreshed.slice(4), ['big', 'small'])
})

t.test('a clock that is set back makes no cell due that nobody requested since', t => {
  const demand = createDemand<Subject>()
  const record = (key: string, at: number, consumer: string) => demand.record(key, { id: key }, at, consumer)
  record('a', 400 * minute, 'one')
  record('b', 401 * minute, 'two')
  record('c', 40 * minute, 'one')
  const since = (at: number) =>
    demand.since(at * minute).map(({ key, lastRequestedAt }) => [key, lastRequestedAt])
  t.strictSame(
    since(40),
    ['c', 'b', 'a'].map(key => [key, 40 * minute]),
  )
  t.strictSame(since(41), [])
  t.strictSame(demand.recentConsumers(40 * minute).sort(), ['one', 'two'])
  t.strictSame(demand.recentConsumers(41 * minute), [])
  t.end()
})

t.test('a pinned cell that memory does not hold is loaded again after the clock was set back', async t => {
  const { clock, refreshAhead, finishAll } = setUp({ pinned: ['a'] })
  t.equal(refreshAhead(), 1)
  await finishAll()
  t.equal(refreshAhead(), 0)
  clock.advance(-6 * 60 * minute)
  t.equal(refreshAhead(), 1)
})
