import t from 'tap'
import type { Entry } from '../../src/cache/entry.ts'
import { createMemoryTier } from '../../src/cache/memory-tier.ts'
import { createReadThrough, type ReadThroughParts } from '../../src/cache/read-through.ts'
import { createSharedTier } from '../../src/cache/shared-tier.ts'
import { openEmbeddedStore } from '../../src/stores/embedded.ts'
import { manualClock } from '../support/manual-clock.ts'

const policy = { freshForMs: 1_000, freshSpread: 0, staleForMs: 10_000 }

/** A cache over a real store whose loader counts, and fails or waits when told to. */
const setUp = (given: Partial<ReadThroughParts<string, string>> = {}) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  const loads: string[] = []
  const failures: unknown[] = []
  const loader = { failure: undefined as Error | undefined, gate: Promise.resolve() as Promise<unknown> }
  const codec = {
    encode: (entry: Entry<string>) => Buffer.from(JSON.stringify(entry)),
    decode: (bytes: Buffer) => JSON.parse(bytes.toString()) as Entry<string>,
  }
  const observer = { sharedTierFailed: (_step: string, error: unknown) => failures.push(error) }
  const shared = createSharedTier(store, codec, policy, observer)
  const parts: ReadThroughParts<string, string> = {
    keyOf: subject => subject,
    load: async subject => {
      loads.push(subject)
      const value = `${subject} ${loads.length}`
      await loader.gate
      if (loader.failure) throw loader.failure
      return { value, fetchedAt: clock.now(), bytes: 100, lot: 0 }
    },
    memory: createMemoryTier(10_000),
    shared,
    policy,
    retryAfterMs: 500,
    waitForMs: 60_000,
    clock,
    observer: { read: () => {}, refreshFailed: error => failures.push(error) },
    ...given,
  }
  return { clock, loads, failures, loader, store, shared, parts, cache: createReadThrough(parts) }
}

// What runs behind an answer has had its turn once the event loop has come round.
const settled = () => new Promise(resolve => setImmediate(resolve))

t.test(
  'a first read is a miss, the next a hit from memory, another process a hit from the shared tier',
  async t => {
    const { cache, parts, loads, shared } = setUp()
    t.match(await cache.read('a'), { value: 'a 1', outcome: 'miss', source: 'provider', collapsed: false })
    t.match(await cache.read('a'), { value: 'a 1', outcome: 'hit', source: 'memory' })
    const elsewhere = createReadThrough({ ...parts, shared, memory: createMemoryTier(10_000) })
    t.match(await elsewhere.read('a'), { value: 'a 1', outcome: 'hit', source: 'shared' })
    t.match(await elsewhere.read('a'), { value: 'a 1', outcome: 'hit', source: 'memory' })
    t.strictSame(loads, ['a'])
  },
)

t.test('many first readers cost one load and get one value; keys do not wait for each other', async t => {
  const { cache, loads, loader } = setUp()
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  const readers = Array.from({ length: 50 }, () => cache.read('a'))
  const other = cache.read('b')
  await settled()
  t.strictSame(loads, ['a', 'b'])
  gate.resolve(undefined)
  const readings = await Promise.all(readers)
  t.strictSame(new Set(readings.map(({ value }) => value)), new Set(['a 1']))
  t.equal(readings.filter(({ collapsed }) => collapsed).length, 49)
  t.match(await other, { value: 'b 2', collapsed: false })
})

t.test('a failed load fails all who waited, is forgotten, and the next reader tries again', async t => {
  const { cache, loads, loader } = setUp()
  loader.failure = new Error('down')
  const results = await Promise.allSettled([cache.read('a'), cache.read('a'), cache.read('a')])
  t.strictSame(
    results.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  t.equal(loads.length, 1)
  loader.failure = undefined
  t.match(await cache.read('a'), { value: 'a 2', outcome: 'miss' })
})

t.test('a stale entry is served at once while one refresh runs behind it', async t => {
  const { cache, loads, clock, loader } = setUp()
  await cache.read('a')
  clock.advance(1_000)
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  t.match(await cache.read('a'), { value: 'a 1', outcome: 'stale', source: 'memory' })
  t.match(await cache.read('a'), { value: 'a 1', outcome: 'stale' })
  await settled()
  t.equal(loads.length, 2, 'one refresh for both')
  gate.resolve(undefined)
  await settled()
  t.match(await cache.read('a'), { value: 'a 2', outcome: 'hit' })
})

t.test('a failed refresh keeps the old entry and rests before the next try', async t => {
  const { cache, loads, clock, loader, failures } = setUp()
  await cache.read('a')
  clock.advance(1_000)
  loader.failure = new Error('down')
  for (let i = 0; i < 5; i++) {
    t.match(await cache.read('a'), { value: 'a 1', outcome: 'stale' })
    await settled()
  }
  t.equal(loads.length, 2, 'one try within the rest')
  t.equal(failures.length, 1)
  clock.advance(500)
  await cache.read('a')
  await settled()
  t.equal(loads.length, 3)
  loader.failure = undefined
  clock.advance(500)
  await cache.read('a')
  await settled()
  t.match(await cache.read('a'), { value: 'a 4', outcome: 'hit' })
})

t.test('past its last use a stale entry is not served: the failure of the load is', async t => {
  const { cache, clock, loader } = setUp()
  await cache.read('a')
  loader.failure = new Error('down')
  clock.advance(10_999)
  t.match(await cache.read('a'), { outcome: 'stale' })
  await settled()
  clock.advance(1)
  await t.rejects(cache.read('a'), { message: 'down' })
})

t.test('a refresh takes what another process has refreshed already', async t => {
  const { cache, parts, clock, loads, shared } = setUp()
  const elsewhere = createReadThrough({ ...parts, shared, memory: createMemoryTier(10_000) })
  await cache.read('a')
  await elsewhere.read('a')
  clock.advance(1_000)
  await elsewhere.read('a')
  await settled()
  t.equal(loads.length, 2)
  t.match(await cache.read('a'), { value: 'a 1', outcome: 'stale' })
  await settled()
  t.match(await cache.read('a'), { value: 'a 2', outcome: 'hit' })
  t.equal(loads.length, 2, 'no load of its own')
})

t.test('a reader waits only so long, and the load goes on for the next', async t => {
  const { cache, loads, loader } = setUp({ waitForMs: 5 })
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  await t.rejects(cache.read('a'), { code: 'waited_too_long' })
  await t.rejects(cache.read('a'), { code: 'waited_too_long' })
  gate.resolve(undefined)
  await settled()
  t.match(await cache.read('a'), { value: 'a 1', outcome: 'hit' })
  t.equal(loads.length, 1)
})

t.test('an entry lies in the shared tier until its last use as a stale one', async t => {
  const { cache, clock, store } = setUp()
  await cache.read('a')
  clock.advance(10_999)
  t.ok(await store.readBytes('a'))
  clock.advance(1)
  t.equal(await store.readBytes('a'), undefined)
})

t.test('a store that fails costs speed and nothing else', async t => {
  const { cache, store, failures } = setUp()
  await store.close()
  t.match(await cache.read('a'), { value: 'a 1', outcome: 'miss' })
  t.match(await cache.read('a'), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.equal(failures.length, 2, 'the read and the write were reported')
})

t.test('memory keeps to its bytes and lets the least recently used go', async t => {
  const memory = createMemoryTier<string>(250)
  const { cache } = setUp({ memory })
  await cache.read('a')
  await cache.read('b')
  await cache.read('a')
  await cache.read('c')
  t.ok(memory.bytes <= 250)
  t.strictSame([memory.size, !!memory.get('a'), !!memory.get('b')], [2, true, false])
})
