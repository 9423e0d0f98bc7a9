// Without it weather in demand could turn stale, or loads could go to cells that nobody wants.

import t from 'tap'
import type { Subject } from '../../src/cache/cache-parts.ts'
import { createDemand } from '../../src/cache/demand.ts'
import { createProbe, createRefreshAhead } from '../../src/cache/refresh-ahead.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/tiers.ts'
import type { CellId } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { policyOf, textEntry } from './cache-set-up.ts'

const minute = 60_000
const hour = 60 * minute
const policy = policyOf({
  freshForMs: hour,
  freshForAtMostMs: hour,
  refreshAheadForMs: 2 * minute,
  staleForMs: hour,
})
const settled = () => new Promise(resolve => setImmediate(resolve))

/** Refresh-ahead over real parts; `refreshed` lists its loads in order. */
const setUp = ({ batch = 3, pinned = [] as string[] } = {}) => {
  const clock = manualClock()
  const demand = createDemand<Subject>()
  const memory = createMemoryTier<string>(1_000_000)
  const refreshed: string[] = []
  const backingOff = new Set<string>()
  const gates: PromiseWithResolvers<boolean>[] = []
  const keep = (...keys: string[]) => {
    for (const key of keys) keepEntry(memory, key, textEntry({ value: key, fetchedAt: clock.now() }))
  }
  const {
    start: refreshAhead,
    nextAt,
    purged,
  } = createRefreshAhead<Subject>({
    demand,
    pinned: () => pinned.map(id => ({ id })),
    memory,
    policy,
    isThrottled: key => backingOff.has(key),
    refresh: ({ id }) => {
      refreshed.push(id)
      const gate = Promise.withResolvers<boolean>()
      gates.push(gate)
      return gate.promise
    },
    batch: () => batch,
    demandForMs: 2 * hour,
    clock,
  })
  const request = (key: string, times = 1) => {
    for (let i = 0; i < times; i++) demand.record(key, { id: key }, clock.now())
  }
  const finishAll = async (isLoaded = true) => {
    for (const { resolve } of gates.splice(0)) resolve(isLoaded)
    await settled()
  }
  const setBatch = (cells: number) => {
    batch = cells
  }
  return {
    clock,
    memory,
    refreshAhead,
    nextAt,
    purged,
    request,
    keep,
    refreshed,
    backingOff,
    finishAll,
    setBatch,
  }
}

t.test('entries in demand are refreshed when due, highest demand first', async t => {
  const { clock, refreshAhead, request, keep, refreshed } = setUp()
  keep('a', 'b', 'c')
  clock.advance(minute)
  request('a')
  request('b', 5)
  request('c', 3)
  clock.advance(59 * minute - 1)
  t.equal(refreshAhead(), 0, 'a moment too soon')
  clock.advance(1)
  t.equal(refreshAhead(), 3)
  t.strictSame(refreshed, ['b', 'c', 'a'])
  t.equal(refreshAhead(), 0, 'they are under way')
})

t.test('a batch that is not full waits for at most half of the lead, and a backoff for longer', async t => {
  const { clock, refreshAhead, request, keep, refreshed, backingOff } = setUp()
  keep('a')
  clock.advance(minute)
  request('a')
  clock.advance(59 * minute)
  t.equal(refreshAhead(), 0, 'others may fall due')
  clock.advance(minute)
  backingOff.add('a')
  t.equal(refreshAhead(), 0)
  backingOff.clear()
  t.equal(refreshAhead(), 1)
  t.strictSame(refreshed, ['a'])
})

t.test('an entry without demand since its last load is not refreshed', async t => {
  const { clock, refreshAhead, request, keep } = setUp()
  request('a')
  keep('a')
  clock.advance(61 * minute)
  t.equal(refreshAhead(), 0)
})

t.test('only a few batches are under way, and the others keep their order', async t => {
  const { clock, refreshAhead, request, keep, refreshed, finishAll, setBatch } = setUp({ batch: 2 })
  const keys = Array.from({ length: 10 }, (_, i) => `k${i}`)
  keep(...keys)
  clock.advance(minute)
  for (const [i, key] of keys.entries()) request(key, i + 1)
  clock.advance(hour)
  t.equal(refreshAhead(), 6)
  t.strictSame(refreshed, ['k9', 'k8', 'k7', 'k6', 'k5', 'k4'])
  t.equal(refreshAhead(), 0)
  setBatch(1)
  t.equal(refreshAhead(), 0, 'nor when batches have become smaller')
  setBatch(2)
  keep(...refreshed)
  await finishAll()
  t.equal(refreshAhead(), 4)
  t.strictSame(refreshed.slice(6), ['k3', 'k2', 'k1', 'k0'])
})

t.test('pinned entries are loaded without demand, after those in demand', async t => {
  const set = setUp({ batch: 10, pinned: ['big', 'small'] })
  const { clock, refreshAhead, request, keep, refreshed, finishAll } = set
  keep('a')
  clock.advance(minute)
  request('a')
  clock.advance(hour)
  t.equal(refreshAhead(), 3)
  t.strictSame(refreshed, ['a', 'big', 'small'])
  await finishAll()
  t.equal(refreshAhead(), 1, 'a is still due; the others found no room in memory, and wait for a period')
  await finishAll()
  keep('big', 'small', 'a')
  clock.advance(62 * minute)
  t.equal(refreshAhead(), 2, 'and they stay fresh without demand')
  t.strictSame(refreshed.slice(4), ['big', 'small'])
})

t.test('a pinned entry that could not be loaded, or was removed, does not wait for a period', async t => {
  const { refreshAhead, purged, refreshed, backingOff, finishAll } = setUp({ pinned: ['big', 'small'] })
  t.equal(refreshAhead(), 2)
  backingOff.add('big')
  await finishAll(false)
  t.equal(refreshAhead(), 1, 'that of the one that does not back off')
  backingOff.clear()
  await finishAll()
  t.equal(refreshAhead(), 1)
  await finishAll()
  t.equal(refreshAhead(), 0)
  const scope = { cell: 'small' as CellId }
  purged([{ generation: 1, kind: 'soft', scope }])
  t.equal(refreshAhead(), 0, 'a soft purge removes nothing')
  purged([{ generation: 2, kind: 'hard', scope }])
  t.equal(refreshAhead(), 1)
  t.strictSame(refreshed, ['big', 'small', 'small', 'big', 'small'])
})

t.test('a pinned entry that a hard purge covered while it was loaded is loaded again', async t => {
  const { clock, memory, refreshAhead, nextAt, keep, finishAll } = setUp({ pinned: ['a'] })
  t.equal(refreshAhead(), 1)
  keepEntry(memory, 'a', textEntry({ value: 'a', fetchedAt: clock.now() }), 'hard')
  await finishAll()
  clock.advance(hour)
  t.equal(nextAt(), clock.now())
  t.equal(refreshAhead(), 1)
  keep('a')
  await finishAll()
  t.equal(refreshAhead(), 0)
})

t.test('the next load is that of the first entry in demand, or of a pinned one', async t => {
  const { clock, nextAt, request, keep } = setUp()
  const begun = clock.now()
  t.equal(nextAt(), Number.POSITIVE_INFINITY)
  keep('a')
  clock.advance(minute)
  keep('b')
  clock.advance(minute)
  t.equal(nextAt(), Number.POSITIVE_INFINITY, 'nobody wants them')
  request('b')
  t.equal(nextAt(), begun + 61 * minute)
  request('a')
  t.equal(nextAt(), begun + 60 * minute)

  const pinned = setUp({ pinned: ['a'] })
  t.equal(pinned.nextAt(), pinned.clock.now(), 'memory lacks it')
  pinned.keep('a')
  t.equal(pinned.nextAt(), pinned.clock.now() + 60 * minute)
})

t.test('a clock that is set back makes nothing due but pinned cells', async t => {
  const demand = createDemand<Subject>()
  const record = (key: string, at: number, consumer: string) => demand.record(key, { id: key }, at, consumer)
  record('a', 400 * minute, 'one')
  record('b', 401 * minute, 'two')
  record('c', 40 * minute, 'one')
  t.match(
    demand.since(40 * minute),
    ['c', 'b', 'a'].map(key => ({ key, lastRequestedAt: 40 * minute })),
  )
  t.strictSame(demand.since(41 * minute), [])
  t.strictSame(demand.recentConsumers(40 * minute).sort(), ['one', 'two'])
  t.strictSame(demand.recentConsumers(41 * minute), [])

  const { clock, refreshAhead, finishAll } = setUp({ pinned: ['a'] })
  t.equal(refreshAhead(), 1)
  await finishAll()
  t.equal(refreshAhead(), 0)
  for (const [ms, started] of [
    [hour - 1, 0],
    [1, 1],
  ] as const) {
    clock.advance(ms)
    t.equal(refreshAhead(), started)
    await finishAll()
  }
  clock.advance(-6 * hour)
  t.equal(refreshAhead(), 1, 'one that memory does not hold is loaded again')
})

t.test('a probe is sent when it is due and there is a cell, and none while another is under way', async t => {
  const out: PromiseWithResolvers<void>[] = []
  let elapsedMs = 5_000
  t.intercept(performance, 'now', { value: () => elapsedMs })
  let isDue = false
  let cell: Subject | undefined
  const probe = createProbe<Subject>({
    isDue: () => isDue,
    cells: () => (cell ? [cell] : []),
    load: () => {
      const load = Promise.withResolvers<void>()
      out.push(load)
      return load.promise
    },
  })
  probe()
  isDue = true
  probe()
  t.equal(out.length, 0)
  cell = { id: 'a' }
  probe()
  probe()
  t.equal(out.length, 1)
  for (const [i, ms] of [700, 0].entries()) {
    elapsedMs += ms
    out[i]?.resolve()
    await settled()
    for (const [laterMs, sent] of [
      [999, 1],
      [1, 2],
    ] as const) {
      elapsedMs += laterMs
      probe()
      t.equal(out.length, i + sent, 'a probe that changed nothing is repeated a second after its end')
    }
  }
})
