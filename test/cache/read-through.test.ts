// Without it a read could load twice, wait for a refresh, or serve purged or expired weather.

import t, { type Test } from 'tap'
import { factsOf } from '../../src/cache/freshness.ts'
import { createPurges, type Purge } from '../../src/cache/purges.ts'
import { ReadThrough } from '../../src/cache/read-through.ts'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/tiers.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { CellId } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { type Parts, partsOn, policyOf, textEntry } from './cache-set-up.ts'
import { workPerTurn } from './work-per-turn.ts'

const [a, b] = [{ id: 'a' }, { id: 'b' }]

/** A cache over a real store; its loader counts loads, and fails or waits as the test says. */
const setUp = (t: Test, given: Partial<Parts> = {}) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const loads: string[] = []
  const loader = { failure: undefined as Error | undefined, gate: Promise.resolve() as Promise<unknown> }
  const set = partsOn(
    t,
    { store, clock },
    {
      load: async ({ id }) => {
        loads.push(id)
        const value = `${id} ${loads.length}`
        const { generation } = set.parts.purges
        await loader.gate
        if (loader.failure) throw loader.failure
        return textEntry({ value, fetchedAt: clock.now(), bytes: 100, generation })
      },
      ...given,
    },
  )
  const { parts, ofProcess } = set
  const cache = new ReadThrough(parts)
  /** The same store as another process sees it. */
  const elsewhere = (more: Partial<Parts> = {}) => new ReadThrough({ ...parts, ...ofProcess(), ...more })
  /** Puts a purge in force. */
  const purge = (generation: number, kind: Purge['kind'], id: string): Promise<void> => {
    const order = { generation, kind, scope: { cell: id as CellId } }
    parts.purges.add(order)
    return cache.purged([order], true)
  }
  /** Makes loads wait until the returned function is called. */
  const holdLoads = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    loader.gate = promise
    return resolve
  }
  return { ...set, clock, store, loads, loader, cache, elsewhere, purge, holdLoads }
}

// Background work has run once the event loop has completed a turn.
const settled = () => new Promise(resolve => setImmediate(resolve))

t.test('a first read is a miss, the next a hit of memory, of another process one of the store', async t => {
  const { cache, elsewhere, loads } = setUp(t)
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'miss', source: 'provider', collapsed: false })
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'hit', source: 'memory' })
  const other = elsewhere()
  t.hasStrict(await other.read(a), { value: 'a 1', outcome: 'hit', source: 'embedded' })
  t.hasStrict(await other.read(a), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.strictSame(loads, ['a'])
})

t.test('a failed load fails all waiters, and backs off before the next read tries again', async t => {
  const { cache, loads, loader, clock, parts, purge } = setUp(t)
  loader.failure = new Error('down')
  const results = await Promise.allSettled([cache.read(a), cache.read(a), cache.read(a)])
  t.match(results, Array(3).fill({ status: 'rejected' }))
  await t.rejects(async () => cache.read(a), { message: 'down', retryAt: clock.now() + 500 })
  t.equal(loads.length, 1)
  t.ok(parts.uncached.has('a'))
  clock.advance(500)
  await t.rejects(async () => cache.read(a), { message: 'down' })
  loader.failure = undefined
  await purge(1, 'soft', 'a')
  t.hasStrict(await cache.read(a), { value: 'a 3', outcome: 'miss' }, 'a purge ends the backoff')
  t.equal(parts.failures.last('a'), undefined)
  t.notOk(parts.uncached.has('a'))
})

t.test('a stale entry is served at once while one refresh runs behind it', async t => {
  const { cache, loads, clock, holdLoads } = setUp(t)
  await cache.read(a)
  clock.advance(1_000)
  const release = holdLoads()
  const stale = { value: 'a 1', outcome: 'stale', source: 'memory', forwarded: true }
  t.hasStrict(await cache.read(a), { ...stale, collapsed: false })
  t.hasStrict(cache.read(a), { ...stale, collapsed: true }, 'without a wait while it runs')
  await settled()
  t.equal(loads.length, 2, 'one refresh for both')
  release()
  await settled()
  t.hasStrict(await cache.read(a), { value: 'a 2', outcome: 'hit' })
})

t.test('a failed refresh keeps the old entry and backs off, until it is expired', async t => {
  const { cache, loads, clock, loader, failed, parts } = setUp(t)
  await cache.read(a)
  clock.advance(1_000)
  loader.failure = new Error('down')
  for (let i = 0; i < 5; i++) {
    t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'stale' })
    await settled()
  }
  t.equal(loads.length, 2, 'one try within the backoff')
  t.equal(failed.length, 1)
  clock.advance(500)
  await cache.read(a)
  await settled()
  t.equal(loads.length, 3)
  clock.advance(999)
  t.hasStrict(await cache.read(a), { outcome: 'stale', forwarded: false }, 'twice as long after the second')
  loader.failure = undefined
  clock.advance(1)
  t.hasStrict(await cache.read(a), { outcome: 'stale', forwarded: true })
  await settled()
  t.hasStrict(await cache.read(a), { value: 'a 4', outcome: 'hit' })
  t.equal(parts.failures.last('a'), undefined)
  loader.failure = new Error('down again')
  clock.advance(10_999)
  t.hasStrict(await cache.read(a), { outcome: 'stale' })
  await settled()
  clock.advance(1)
  await t.rejects(async () => cache.read(a), { message: 'down again' })
})

t.test('a refresh uses the entry that another process has already refreshed', async t => {
  const { cache, elsewhere, clock, loads, decoded } = setUp(t)
  const other = elsewhere()
  await cache.read(a)
  await other.read(a)
  clock.advance(1_000)
  await other.read(a)
  await settled()
  t.equal(loads.length, 2)
  t.strictSame(decoded, ['a 1'], 'what was read and is too old is seen to be so without being decoded')
  await cache.refresh(a, 'refresh_ahead')
  t.hasStrict(cache.read(a), { value: 'a 2', outcome: 'hit', source: 'memory' })
  t.equal(loads.length, 2, 'no load of its own')
})

t.test('a stale entry is refreshed although an older one is fresh for longer elsewhere', async t => {
  const { cache, parts, clock } = setUp(t, {
    policy: policyOf({ freshForAtMostMs: 2_000, freshSpread: 1 }),
  })
  await cache.read(a)
  const older = textEntry({ value: 'older', fetchedAt: clock.now() - 100, jitter: 1 })
  await parts.shared.set('a', older)
  clock.advance(1_500)
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'stale' })
  await settled()
  t.hasStrict(cache.read(a), { value: 'a 2', outcome: 'hit' })
})

t.test('a refresh ahead loads an entry that is due, although it is fresh', async t => {
  const { cache, clock, loads } = setUp(t, { policy: policyOf({ refreshAheadForMs: 50 }) })
  await cache.read(a)
  for (const ms of [999, 1]) {
    clock.advance(ms)
    await cache.refresh(a, 'refresh_ahead')
  }
  t.equal(loads.length, 2)
})

t.test('a reader waits only so long, and the load goes on for the next', async t => {
  const { cache, loads, holdLoads } = setUp(t, { waitForMs: 5 })
  const release = holdLoads()
  for (let i = 0; i < 2; i++) await t.rejects(async () => cache.read(a), { code: 'waited_too_long' })
  release()
  await settled()
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'hit' })
  t.equal(loads.length, 1)
})

t.test('the shared tier keeps an entry until it is expired, and without it loads go on', async t => {
  const { cache, clock, store, failed } = setUp(t)
  await cache.read(a)
  clock.advance(10_999)
  t.ok(await store.readBytes('a'))
  clock.advance(1)
  t.equal(await store.readBytes('a'), undefined)
  await store.close()
  t.hasStrict(await cache.read(b), { value: 'b 2', outcome: 'miss' })
  t.hasStrict(await cache.read(b), { value: 'b 2', outcome: 'hit', source: 'memory' })
  t.equal(failed.length, 3, 'the read, the second read and the write were reported')
})

t.test('data beside a value counts in memory, from whichever tier the value was read', async t => {
  const { cache, elsewhere, clock, parts } = setUp(t)
  const { memory } = parts
  const loaded = await cache.read(a)
  loaded.derived.setBytes(500)
  t.equal(memory.calculatedSize, 600, 'from the provider')
  const hit = await cache.read(a)
  hit.derived.setBytes(700)
  t.equal(memory.calculatedSize, 800, 'from memory: the same entry')
  const other = createMemoryTier<string>(10_000)
  const found = await elsewhere({ memory: other }).read(a)
  found.derived.setBytes(40)
  t.strictSame([other.calculatedSize, memory.calculatedSize], [140, 800], 'from the shared tier')
  clock.advance(1_500)
  const stale = await cache.read(a)
  await settled()
  for (const old of [loaded, hit, stale]) old.derived.setBytes(900)
  t.equal(memory.calculatedSize, 100, 'what is kept beside the older one is not the renewed one’s')
})

t.test('a soft purge makes older entries stale, a hard one removes them', async t => {
  const { cache, loads, elsewhere, purge } = setUp(t)
  await cache.read(a)
  await cache.read(b)
  await purge(1, 'soft', 'a')
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'stale', forwarded: true })
  await settled()
  t.hasStrict(await cache.read(a), { value: 'a 3', outcome: 'hit' }, 'loaded after the purge')
  t.hasStrict(await cache.read(b), { value: 'b 2', outcome: 'hit' }, 'not covered')
  await purge(2, 'hard', 'b')
  t.hasStrict(await elsewhere().read(b), { value: 'b 4', outcome: 'miss' }, 'nor from the shared tier')
  t.hasStrict(await cache.read(b), { outcome: 'hit', source: 'embedded' })
  t.strictSame(loads, ['a', 'b', 'a', 'b'])
})

t.test('a hard purge of what memory has evicted is known for the cells in demand', async t => {
  const { parts, purge } = setUp(t)
  for (const id of ['a', 'b']) parts.demand.record(id, { id }, 0)
  await purge(1, 'soft', 'b')
  t.notOk(parts.uncached.has('b'), 'a soft one leaves the shared entry')
  await purge(2, 'hard', 'a')
  t.strictSame([parts.uncached.has('a'), parts.uncached.has('b')], [true, false])
  keepEntry(parts.memory, 'c', textEntry())
  await purge(3, 'hard', 'c')
  t.ok(parts.uncached.has('c'), 'nor is one that was warmed without a request')
})

t.test('a purge of very many cells gives way to reads, which lose nothing by it', async t => {
  const { cache, parts } = setUp(t)
  const ids = Array.from({ length: 5_000 }, (_, i) => `23.5,${i / 100}`)
  for (const id of ids) {
    keepEntry(parts.memory, id, textEntry())
    parts.demand.record(id, { id }, 0)
    parts.failures.record(id, new Error('down'), true)
  }
  const box = { south: 23, west: 0, north: 24, east: 40 }
  const order: Purge = { generation: 1, kind: 'hard', scope: { box } }
  const covered = parts.purges.of
  parts.purges.add(order)
  const newer = textEntry({ value: 'loaded meanwhile', generation: 1 })
  const { most, all } = await workPerTurn(async worked => {
    let isFirst = true
    parts.purges.of = (...given) => {
      worked()
      // The walk over memory has begun, and this is its last key.
      if (isFirst) keepEntry(parts.memory, '23.5,0', newer)
      isFirst = false
      return covered(...given)
    }
    await cache.purged([order], true)
  })
  t.strictSame([most, all], [1_000, 4_001])
  t.equal(parts.memory.peek('23.5,0')?.value, 'loaded meanwhile')
  t.equal(parts.memory.size, 1_000, 'with those beyond the box')
  const [inside = '', outside = ''] = [ids[17], ids[4_999]]
  t.strictSame([parts.uncached.has(inside), parts.uncached.has(outside)], [true, false])
  t.strictSame([parts.failures.last(inside), parts.failures.last(outside)?.attempts], [undefined, 1])
})

t.test('the more purges of many cells there are, the smaller are the parts they are applied in', async t => {
  const { cache, parts } = setUp(t)
  for (let i = 0; i < 2_000; i++) keepEntry(parts.memory, `${i}`, textEntry())
  const covered = parts.purges.of
  for (const [purges, perTurn] of [
    [10, 100],
    [2_000, 1],
    [0, 1_000],
  ] as const) {
    const order = (_: unknown, i: number): Purge => ({
      generation: i + 1,
      kind: 'soft',
      scope: { all: true },
    })
    const { most, all } = await workPerTurn(async worked => {
      parts.purges.of = (...given) => {
        worked()
        return covered(...given)
      }
      // Without a purge: some were missed.
      await cache.purged(Array.from({ length: purges }, order), purges > 0)
    })
    t.strictSame([most, all], [perTurn, 2_000], `${purges} purges`)
  }
  parts.memory.keys = () => t.fail('nothing is walked over where no purge is new') as never
  await cache.purged([], true)
})

t.test('a hard purge that is read late keeps what was loaded after it', async t => {
  const { cache, loads, parts, purge } = setUp(t)
  parts.purges.advanceTo(2)
  await cache.read(a)
  const late = createPurges()
  const other = new ReadThrough({ ...parts, purges: late })
  await purge(3, 'hard', 'b')
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.hasStrict(await other.read(a), { value: 'a 1', outcome: 'hit' })
  const order = { generation: 2, kind: 'hard', scope: { cell: 'a' as CellId } } as const
  late.add(order)
  await other.purged([order], true)
  t.hasStrict(await other.read(a), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.equal(loads.length, 1)
})

t.test('a soft purge during a load makes what it brings stale, for those that wait for it too', async t => {
  const { cache, loads, clock, purge, holdLoads } = setUp(t)
  const release = holdLoads()
  const reading = cache.read(a)
  await settled()
  await purge(1, 'soft', 'a')
  const later = cache.read(a)
  await settled()
  t.equal(loads.length, 1, 'what the load brings is usable')
  release()
  const stale = { value: 'a 1', outcome: 'stale', source: 'memory', forwarded: true, freshUntil: clock.now() }
  for (const result of [await reading, await later]) t.hasStrict(result, stale)
  await until('it is reloaded', () => loads.length === 2)
  t.hasStrict(await cache.read(a), { value: 'a 2', outcome: 'hit' })
})

for (const where of ['the same process', 'another instance'])
  t.test(`in ${where} no read after a hard purge gets a load from before it`, async t => {
    const { cache, loads, elsewhere, purge, holdLoads } = setUp(t)
    const releaseFirst = holdLoads()
    const before = cache.read(a)
    await settled()
    const other = where === 'the same process' ? cache : elsewhere()
    // There it waits for the load of the first instance.
    const waiting = where === 'the same process' ? [] : [other.read(a)]
    await settled()
    await purge(1, 'hard', 'a')
    const releaseSecond = holdLoads()
    const after = [...waiting, other.read(a), other.read(a)]
    await settled()
    releaseFirst()
    t.hasStrict(await before, { value: 'a 1', outcome: 'stale' })
    await until('the second load', () => loads.length === 2)
    releaseSecond()
    for (const reading of after) t.hasStrict(await reading, { value: 'a 2', outcome: 'miss' })
    t.hasStrict(await cache.read(a), { value: 'a 2', outcome: 'hit' })
    t.equal(loads.length, 2)
  })

t.test('what a hard purge covered during its load stays so after the log of purges is lost', async t => {
  const { cache, parts, purge, holdLoads } = setUp(t)
  const release = holdLoads()
  const reading = cache.read(a)
  await settled()
  await purge(1, 'hard', 'a')
  release()
  t.hasStrict(await reading, { value: 'a 1', outcome: 'stale' })
  t.equal(cache.peek(a), undefined)
  parts.purges.restart()
  await cache.purged([], false)
  t.equal(cache.peek(a), undefined)
})

t.test('where purges were missed everything is stale, and no load from before counts as newer', async t => {
  const { cache, loads, parts, holdLoads } = setUp(t)
  await cache.read(a)
  const release = holdLoads()
  const reading = cache.read(b)
  await settled()
  parts.purges.advanceTo(5)
  parts.purges.miss(5)
  await cache.purged([], false)
  t.hasStrict(await cache.read(a), { value: 'a 1', outcome: 'stale', forwarded: true })
  release()
  t.hasStrict(await reading, { value: 'b 2', outcome: 'stale', forwarded: true })
  await until('both are reloaded', () => loads.length === 4)
})

t.test('who joins a load from after a purge has it expedited for itself', async t => {
  const { cache, loads, expedited, purge, holdLoads } = setUp(t)
  const releaseFirst = holdLoads()
  const before = cache.read(a, 'before')
  await until('the first load', () => loads.length === 1)
  await purge(1, 'hard', 'a')
  const releaseSecond = holdLoads()
  const after = [cache.read(a, 'many'), cache.read(a, 'few')]
  releaseFirst()
  t.hasStrict(await before, { value: 'a 1' })
  await until('the second load', () => loads.length === 2)
  t.strictSame(expedited, ['few'])
  releaseSecond()
  for (const reading of after) t.hasStrict(await reading, { value: 'a 2', outcome: 'miss' })
})

t.test('a reload loads although a read is about to find a fresh entry, and reports a failure', async t => {
  const { cache, clock, loads, loader, failed, elsewhere } = setUp(t)
  await cache.read(a)
  clock.advance(500)
  const other = elsewhere()
  const [reading] = await Promise.all([other.read(a), other.reload(a)])
  t.hasStrict(reading, { outcome: 'hit' })
  t.strictSame(loads, ['a', 'a'])
  t.hasStrict(await other.read(a), { value: 'a 2', outcome: 'hit' })
  loader.failure = new Error('down')
  await other.reload(a)
  t.equal(failed.join(), 'Error: down')
  t.hasStrict(await other.read(a), { value: 'a 2', outcome: 'hit' }, 'what there is stays')
  t.equal(loads.length, 3)
})

t.test('a read that waits for a less urgent load expedites it', async t => {
  const { cache, expedited, clock, holdLoads } = setUp(t)
  await cache.read(a)
  clock.advance(1_000)
  const release = holdLoads()
  await cache.read(a)
  await settled()
  t.strictSame(expedited, [])
  clock.advance(10_000)
  const waiting = cache.read(a)
  await settled()
  t.strictSame(expedited, ['a'])
  release()
  t.hasStrict(await waiting, { value: 'a 2', outcome: 'miss' })
})

t.test(
  'a cold read does not wait for a less urgent load where the shared tier has a stale entry',
  async t => {
    const { cache, elsewhere, clock, loads, holdLoads } = setUp(t)
    await cache.read(a)
    clock.advance(2_000)
    const release = holdLoads()
    const other = elsewhere()
    const warming = other.ensure(a)
    await until('it is loaded', () => loads.length === 2)
    t.hasStrict(await other.read(a), { value: 'a 1', outcome: 'stale', collapsed: true })
    release()
    t.equal(await warming, true)
    t.hasStrict(await other.read(a), { value: 'a 2', outcome: 'hit' })
    t.equal(loads.length, 2)
  },
)

t.test('what was loaded after a purge is newer than what was purged, however the clocks differ', async t => {
  const policy = policyOf({ freshForMs: 3_600_000, freshForAtMostMs: 3_600_000 })
  const { cache, parts, elsewhere, clock, loads, purge } = setUp(t, { policy })
  clock.advance(90_000)
  await cache.read(a)
  clock.advance(-89_500)
  await purge(1, 'soft', 'a')
  await elsewhere().reload(a)
  t.hasStrict(await parts.shared.get('a'), { value: 'a 2' })
  clock.advance(89_600)
  t.hasStrict(await cache.read(a), { value: 'a 2' })
  t.equal(loads.length, 2)
})

t.test('an older entry that was being read does not replace one that was loaded meanwhile', async t => {
  const gate = Promise.withResolvers<void>()
  const { cache, parts, elsewhere, clock } = setUp(t)
  await cache.read(a)
  let reads = 0
  const slow = elsewhere({
    shared: {
      ...parts.shared,
      get: async (key, enough) => {
        reads += 1
        const isSlow = reads <= 2
        const found = await parts.shared.get(key, enough)
        if (isSlow) await gate.promise
        return found
      },
    },
  })
  const [reading, warming] = [slow.read(a), slow.warm(a)]
  clock.advance(2_000)
  await slow.reload(a)
  gate.resolve()
  t.hasStrict(await reading, { value: 'a 2', outcome: 'hit', source: 'memory' }, 'the newer one answers')
  await warming
  t.hasStrict(await slow.read(a), { value: 'a 2', outcome: 'hit' })
})

t.test('an entry is loaded without a read unless a tier has a fresh one, or a failure backs off', async t => {
  const { cache, elsewhere, loads, loader, clock } = setUp(t)
  t.equal(await cache.ensure(a), true)
  t.equal(await cache.ensure(a), false)
  const other = elsewhere()
  t.equal(await other.ensure(a), false, 'the shared tier has it')
  t.hasStrict(other.read(a), { outcome: 'hit', source: 'memory' })
  t.strictSame(loads, ['a'])
  clock.advance(1_000)
  loader.failure = new Error('down')
  await t.rejects(cache.ensure(a), { message: 'down' })
  await t.rejects(cache.ensure(a), { message: 'down', retryAt: clock.now() + 500 })
  t.strictSame(loads, ['a', 'a'])
})

t.test('what is looked for in vain is not unpacked', async t => {
  const { cache, elsewhere, loads, decoded, clock } = setUp(t)
  await cache.read(a)
  clock.advance(1_000)
  t.equal(await elsewhere().ensure(a), true, 'the shared tier has a stale one')
  t.strictSame(loads, ['a', 'a'])
  clock.advance(20_000)
  t.equal(await elsewhere().warm(a), false, 'it has an expired one')
  t.strictSame(decoded, [])
})

t.test('reads of one entry move it in memory once a second, not each time', async t => {
  const { cache, parts, clock } = setUp(t, {
    policy: policyOf({ freshForMs: 60_000, freshForAtMostMs: 60_000 }),
  })
  await cache.read(a)
  const { memory } = parts
  let moves = 0
  const get = memory.get.bind(memory)
  memory.get = (...of: Parameters<typeof get>) => {
    moves += 1
    return get(...of)
  }
  for (const [ms, expected] of [
    [0, 1],
    [999, 1],
    [1, 2],
    [500, 2],
    [500, 3],
  ] as const) {
    clock.advance(ms)
    await cache.read(a)
    t.equal(moves, expected)
  }
})

t.test('each read is counted with its outcome, tier and age', async t => {
  const reads: unknown[] = []
  const observer = { ...silentObserver, onRead: (...read: unknown[]) => void reads.push(read) }
  const { cache, clock } = setUp(t, { observer })
  for (const moveMs of [0, 999, 1]) {
    clock.advance(moveMs)
    await cache.read(a)
  }
  t.strictSame(reads, [
    ['miss', 'provider', 0],
    ['hit', 'memory', 999],
    ['stale', 'memory', 1_000],
  ])
})

t.test('reads that share a load and reads that fall short are counted, with the failure', async t => {
  const counted: unknown[] = []
  const observer = {
    ...silentObserver,
    onCollapsed: () => void counted.push('collapsed'),
    onShortfall: (met: string, error: unknown) => void counted.push([met, (error as Error).message]),
  }
  const { cache, clock, loader } = setUp(t, { observer })
  await Promise.all([cache.read(a), cache.read(a)])
  t.strictSame(counted.splice(0), ['collapsed'])
  loader.failure = new Error('down')
  clock.advance(1_000)
  await cache.reload(a)
  t.hasStrict(cache.read(a), { outcome: 'stale', forwarded: false, collapsed: false })
  await t.rejects(async () => cache.read(b))
  t.strictSame(counted, [
    ['stale', 'down'],
    ['failed', 'down'],
  ])
})

t.test('what says something of one process alone does not fail the reads of another', async t => {
  for (const [code, isOfAll] of [
    ['provider_failing', true],
    ['provider_circuit_open', false],
    ['provider_not_sent', false],
  ] as const) {
    const { cache, elsewhere, loader, loads, holdLoads } = setUp(t)
    const finish = holdLoads()
    loader.failure = new AbohawaError(code, 'down')
    const failing = cache.read(a)
    await until('the load has begun', () => loads.length === 1)
    const other = elsewhere({ load: async () => textEntry({ value: 'for itself' }) }).read(a)
    finish()
    await t.rejects(Promise.resolve(failing), { code })
    if (isOfAll) await t.rejects(Promise.resolve(other), { code })
    else t.hasStrict(await other, { value: 'for itself', outcome: 'miss' }, code)
  }
})

t.test('a refresh is over when it came about, or the provider refuses this subject', async t => {
  const { cache, loader } = setUp(t)
  for (const [code, isOver] of [
    ['provider_failing', false],
    ['provider_refused', true],
    ['provider_too_much', true],
  ] as const) {
    loader.failure = new AbohawaError(code, 'down')
    t.equal(await cache.refresh(a, 'refresh_ahead'), isOver, code)
  }
  loader.failure = undefined
  t.equal(await cache.refresh(a, 'refresh_ahead'), true)
})

t.test('a peek finds what a read would, and leaves no trace', async t => {
  const reads: unknown[] = []
  const observer = { ...silentObserver, onRead: (...read: unknown[]) => void reads.push(read) }
  const { cache, clock, loads, parts } = setUp(t, { observer })
  t.equal(cache.peek(a), undefined)
  await cache.read(a)
  const freshUntil = clock.now() + 1_000
  const found = { value: 'a 1', source: 'memory', forwarded: false, collapsed: false, freshUntil }
  t.hasStrict(cache.peek(a), { ...found, outcome: 'hit' })
  for (const [ms, outcome] of [
    [1_000, 'stale'],
    [9_999, 'stale'],
  ] as const) {
    clock.advance(ms)
    t.hasStrict(cache.peek(a), { ...found, outcome, forwarded: true }, 'as by a read that refreshes it')
  }
  clock.advance(1)
  t.equal(cache.peek(a), undefined)
  t.strictSame([loads, reads.length, parts.demand.of('a')?.score], [['a'], 1, 1])
})

t.test(
  'a failure ends where a refresh finds what another instance has loaded, not where a read finds older',
  async t => {
    const { cache, elsewhere, loads, loader, clock, parts, holdLoads } = setUp(t)
    await cache.read(a)
    const fail = async () => {
      clock.advance(1_000)
      loader.failure = new Error('down')
      await cache.reload(a)
      loader.failure = undefined
    }
    await fail()
    parts.memory.delete('a')
    t.hasStrict(await cache.read(a), { source: 'embedded', outcome: 'stale', forwarded: false })
    t.match(parts.failures.last('a'), { attempts: 1 })
    const other = elsewhere()
    await other.reload(a)
    await cache.refresh(a, 'refresh_ahead')
    t.equal(parts.failures.last('a'), undefined)

    await fail()
    const release = holdLoads()
    const before = loads.length
    const loading = other.reload(a)
    await until('the other one loads', () => loads.length > before)
    const waiting = cache.refresh(a, 'refresh_ahead')
    await settled()
    release()
    await Promise.all([loading, waiting])
    t.hasStrict(cache.peek(a), { outcome: 'hit' })
    t.equal(parts.failures.last('a'), undefined, 'nor while it waits for its load')
  },
)

t.test('warming copies the shared entry and loads nothing', async t => {
  const { cache, elsewhere, loads, clock, parts } = setUp(t)
  await cache.read(a)
  const other = elsewhere()
  t.equal(await other.warm(a), true)
  t.equal(await other.warm(b), false)
  t.ok(parts.uncached.has('b'), 'no tier holds it')
  t.hasStrict(await other.read(a), { outcome: 'hit', source: 'memory' })
  await cache.read(b)
  const small = elsewhere({ memory: createMemoryTier(150) })
  t.equal(await small.warm(a), true)
  t.equal(await small.warm(b, false), false, 'there is no room beside the first')
  t.hasStrict([small.peek(a), small.peek(b)], [{ value: 'a 1' }, undefined])
  t.equal(await small.warm(b), true)
  t.hasStrict([small.peek(a), small.peek(b)], [undefined, { value: 'b 2' }])
  clock.advance(11_000)
  t.equal(await elsewhere().warm(a), false, 'past its last use')
  t.strictSame(loads, ['a', 'b'])
})

t.test('what is known of a key has both tiers, the last failure and the load under way', async t => {
  const { cache, parts, clock, loader } = setUp(t)
  const facts = async () =>
    [parts.memory.peek('a'), await parts.shared.get('a')].map(entry =>
      factsOf(entry, parts.policy, clock.now(), undefined),
    )
  t.strictSame(await facts(), [null, null])
  await cache.read(a)
  const at = clock.now()
  const known = { fetchedAt: at, freshUntil: at + 1_000, usableUntil: at + 11_000, state: 'fresh' }
  t.hasStrict(await facts(), [known, known])
  t.equal(cache.isLoading(a), false)
  clock.advance(1_000)
  loader.failure = new Error('down')
  const reading = cache.read(a)
  t.equal(cache.isLoading(a), true)
  await reading
  await settled()
  t.hasStrict(await facts(), [{ state: 'stale' }])
  t.match(parts.failures.last('a'), { attempts: 1, backoffUntil: clock.now() + 500 })
})

t.test('a cold read that joins a refresh is loaded for itself when only the refresh is refused', async t => {
  for (const where of ['in this process', 'in another']) {
    const gate = Promise.withResolvers<void>()
    const purposes: string[] = []
    const { clock, cache, elsewhere, store } = setUp(t, {
      load: async ({ id }, purpose) => {
        purposes.push(purpose)
        if (purpose === 'cold') return textEntry({ value: id, fetchedAt: clock.now() })
        await gate.promise
        // As of a budget whose reserve is for cold reads.
        const retryAt = clock.now() + 1_000
        throw Object.assign(new AbohawaError('provider_limited', 'used up'), { retryAt })
      },
    })
    const other = where === 'in another' ? elsewhere() : cache
    await cache.read(a)
    clock.advance(2_000)
    t.hasStrict(await cache.read(a), { outcome: 'stale' })
    await until('the refresh has begun', () => purposes.includes('refresh'))
    clock.advance(20_000)
    const cold = Promise.resolve(other.read(a))
    await until('the cold read waits', async () => {
      await settled()
      return (await store.acquireLease('a', 'test', 1_000)) === 'held'
    })
    gate.resolve()
    t.hasStrict(await cold, { outcome: 'miss', value: 'a' }, where)
    t.strictSame(purposes, ['cold', 'refresh', 'cold'], where)
  }
})

t.test('what another instance has refreshed is not answered stale from memory', async t => {
  const { clock, cache, elsewhere, loads, store } = setUp(t)
  const other = elsewhere()
  await cache.read(a)
  t.hasStrict(await other.read(a), { outcome: 'hit', source: 'embedded' })
  clock.advance(2_000)
  t.hasStrict(await cache.read(a), { outcome: 'stale', forwarded: true, collapsed: false })
  await until('it is refreshed', () => Object(cache.read(a)).outcome === 'hit')
  t.hasStrict(await Promise.all([other.read(a), other.read(a)]), [
    { outcome: 'hit', source: 'embedded', value: 'a 2', forwarded: false },
    { outcome: 'hit', value: 'a 2' },
  ])
  t.hasStrict(other.read(a), { outcome: 'hit', source: 'memory' }, 'at once from then on')
  t.equal(loads.length, 2)
  // Without the shared tier the older entry is served, and refreshed.
  clock.advance(2_000)
  await store.deleteBytes(['a'])
  t.hasStrict(await other.read(a), { outcome: 'stale', value: 'a 2', forwarded: true })
})
