// The read-through cache over a real store: hits, stale responses, loads, purges, and what each read reports.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createFailures, createUncached } from '../../src/cache/failures.ts'
import { createFleetSingleFlight } from '../../src/cache/fleet-single-flight.ts'
import { createFreshness, type Entry, factsOf } from '../../src/cache/freshness.ts'
import { createPurges, type Purge } from '../../src/cache/purges.ts'
import { type CacheParts, createReadThrough, type Subject } from '../../src/cache/read-through.ts'
import { createMemoryTier, createSharedTier } from '../../src/cache/tiers.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { CellId } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const policy = createFreshness(
  {
    freshForMs: 1_000,
    freshSpread: 0,
    freshForAtMostMs: 1_000,
    refreshAheadForMs: 0,
    staleForMs: 10_000,
    settleForMs: 0,
    spreadOverMs: 0,
  },
  () => 1,
)

type Parts = CacheParts<Subject, string>

const named = (id: string): Subject => ({ id })
const cell = (id: string) => ({ cell: id as CellId })

/** A cache over a real store; its loader counts loads, and fails or waits as the test says. */
const setUp = (t: Tap, given: Partial<Parts> = {}) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  const loads: string[] = []
  const failures: unknown[] = []
  const loader = { failure: undefined as Error | undefined, gate: Promise.resolve() as Promise<unknown> }
  const entryIn = (bytes: Buffer) => JSON.parse(bytes.toString()) as Entry<string>
  const decoded: string[] = []
  const codec = {
    maxBytes: 10_000,
    encode: (entry: Entry<string>) => Buffer.from(JSON.stringify(entry)),
    metadata: entryIn,
    decode: (bytes: Buffer) => {
      decoded.push(entryIn(bytes).value)
      return entryIn(bytes)
    },
  }
  const observer = {
    onSharedTierFailure: (_step: string, error: unknown) => failures.push(error),
    onEntryRefused: (reason: string) => failures.push(reason),
  }
  const shared = createSharedTier(
    { name: 'embedded', store, longestUseMs: () => policy.longestUseMs },
    codec,
    observer,
  )
  const purges = createPurges()
  const newFleet = () => {
    const fleet = createFleetSingleFlight({ store, leaseForMs: 1_000 }, error => failures.push(error))
    t.teardown(fleet.close)
    return fleet
  }
  const expedited: (string | undefined)[] = []
  const parts: Parts = {
    keyOf: ({ id }) => id,
    load: async ({ id }) => {
      loads.push(id)
      const value = `${id} ${loads.length}`
      const { generation } = purges
      await loader.gate
      if (loader.failure) throw loader.failure
      return { value, fetchedAt: clock.now(), bytes: 100, jitter: 0, generation, run: null }
    },
    expedite: ({ id }, consumer) => expedited.push(consumer ?? id),
    heldBack: () => undefined,
    consumerOf: () => undefined,
    memory: createMemoryTier(10_000),
    shared,
    fleet: newFleet(),
    policy,
    purges,
    failures: createFailures({ retryAfterMs: 500, retryAfterAtMostMs: 2_000 }, clock, () => 0),
    uncached: createUncached(),
    demand: createDemand(),
    waitForMs: 60_000,
    clock,
    observer: {
      onRead: () => {},
      onCollapsed: () => {},
      onLoadFailure: ({ error, purpose }) => purpose !== 'cold' && failures.push(error),
    },
    ...given,
  }
  /** The same store as another process would see it. */
  const elsewhere = (more: Partial<Parts> = {}) =>
    createReadThrough<Subject, string>({
      ...parts,
      memory: createMemoryTier<string>(10_000),
      failures: createFailures({ retryAfterMs: 500, retryAfterAtMostMs: 2_000 }, clock, () => 0),
      fleet: newFleet(),
      ...more,
    })
  /** Puts a purge in force, in the caches that know it. */
  const purge = (order: Purge, ...caches: Pick<typeof cache, 'purged'>[]) => {
    parts.purges.add(order)
    for (const each of caches) each.purged([order], true)
  }
  const cache = createReadThrough(parts)
  return {
    clock,
    loads,
    decoded,
    failures,
    expedited,
    loader,
    store,
    purges,
    parts,
    elsewhere,
    cache,
    purge,
  }
}
type Tap = { teardown(fn: () => unknown): void }

// Background work has run once the event loop has completed a turn.
const settled = () => new Promise(resolve => setImmediate(resolve))

t.test(
  'a first read is a miss, the next a hit from memory, another process a hit from the shared tier',
  async t => {
    const { cache, elsewhere: another, loads } = setUp(t)
    t.match(await cache.read(named('a')), {
      value: 'a 1',
      outcome: 'miss',
      source: 'provider',
      collapsed: false,
    })
    t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'hit', source: 'memory' })
    const elsewhere = another()
    t.match(await elsewhere.read(named('a')), { value: 'a 1', outcome: 'hit', source: 'embedded' })
    t.match(await elsewhere.read(named('a')), { value: 'a 1', outcome: 'hit', source: 'memory' })
    t.strictSame(loads, ['a'])
  },
)

t.test('many first readers cost one load and get one value; keys do not wait for each other', async t => {
  const { cache, loads, loader } = setUp(t)
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  const readers = Array.from({ length: 50 }, () => cache.read(named('a')))
  const other = cache.read(named('b'))
  await settled()
  t.strictSame(loads, ['a', 'b'])
  gate.resolve(undefined)
  const readings = await Promise.all(readers)
  t.strictSame(new Set(readings.map(({ value }) => value)), new Set(['a 1']))
  t.equal(readings.filter(({ collapsed }) => collapsed).length, 49)
  t.match(await other, { value: 'b 2', collapsed: false })
})

t.test('a failed load fails all waiters, and backs off before the next read tries again', async t => {
  const { cache, loads, loader, clock } = setUp(t)
  loader.failure = new Error('down')
  const results = await Promise.allSettled([
    cache.read(named('a')),
    cache.read(named('a')),
    cache.read(named('a')),
  ])
  t.strictSame(
    results.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  )
  await t.rejects(async () => cache.read(named('a')), { message: 'down', retryAt: clock.now() + 500 })
  t.equal(loads.length, 1)
  loader.failure = undefined
  clock.advance(500)
  t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'miss' })
})

t.test('a stale entry is served at once while one refresh runs behind it', async t => {
  const { cache, loads, clock, loader } = setUp(t)
  await cache.read(named('a'))
  clock.advance(1_000)
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'stale', source: 'memory' })
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'stale' })
  await settled()
  t.equal(loads.length, 2, 'one refresh for both')
  gate.resolve(undefined)
  await settled()
  t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'hit' })
})

t.test('a failed refresh keeps the old entry and backs off before the next try', async t => {
  const { cache, loads, clock, loader, failures } = setUp(t)
  await cache.read(named('a'))
  clock.advance(1_000)
  loader.failure = new Error('down')
  for (let i = 0; i < 5; i++) {
    t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'stale' })
    await settled()
  }
  t.equal(loads.length, 2, 'one try within the rest')
  t.equal(failures.length, 1)
  clock.advance(500)
  await cache.read(named('a'))
  await settled()
  t.equal(loads.length, 3)
  clock.advance(999)
  t.match(
    await cache.read(named('a')),
    { outcome: 'stale', forwarded: false },
    'twice the rest after the second failure',
  )
  loader.failure = undefined
  clock.advance(1)
  t.match(await cache.read(named('a')), { outcome: 'stale', forwarded: true })
  await settled()
  t.match(await cache.read(named('a')), { value: 'a 4', outcome: 'hit' })
})

t.test('an expired entry is not served: the failure of the load is', async t => {
  const { cache, clock, loader } = setUp(t)
  await cache.read(named('a'))
  loader.failure = new Error('down')
  clock.advance(10_999)
  t.match(await cache.read(named('a')), { outcome: 'stale' })
  await settled()
  clock.advance(1)
  await t.rejects(async () => cache.read(named('a')), { message: 'down' })
})

t.test('a refresh uses the entry that another process has already refreshed', async t => {
  const { cache, elsewhere: another, clock, loads, decoded } = setUp(t)
  const elsewhere = another()
  await cache.read(named('a'))
  await elsewhere.read(named('a'))
  clock.advance(1_000)
  await elsewhere.read(named('a'))
  await settled()
  t.equal(loads.length, 2)
  t.strictSame(decoded, ['a 1'], 'what was read and is too old is seen to be so without being decoded')
  await cache.refresh(named('a'), 'refresh_ahead')
  t.match(cache.read(named('a')), { value: 'a 2', outcome: 'hit', source: 'memory' })
  t.equal(loads.length, 2, 'no load of its own')
})

t.test('a reader waits only so long, and the load goes on for the next', async t => {
  const { cache, loads, loader } = setUp(t, { waitForMs: 5 })
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  await t.rejects(async () => cache.read(named('a')), { code: 'waited_too_long' })
  await t.rejects(async () => cache.read(named('a')), { code: 'waited_too_long' })
  gate.resolve(undefined)
  await settled()
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'hit' })
  t.equal(loads.length, 1)
})

t.test('the shared tier keeps an entry until it is expired', async t => {
  const { cache, clock, store } = setUp(t)
  await cache.read(named('a'))
  clock.advance(10_999)
  t.ok(await store.readBytes('a'))
  clock.advance(1)
  t.equal(await store.readBytes('a'), undefined)
})

t.test('a failing store only costs speed', async t => {
  const { cache, store, failures } = setUp(t)
  await store.close()
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'miss' })
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.equal(failures.length, 3, 'the read, the second read and the write were reported')
})

t.test('memory keeps to its bytes and evicts the least recently used', async t => {
  const memory = createMemoryTier<string>(250)
  const { cache } = setUp(t, { memory })
  await cache.read(named('a'))
  await cache.read(named('b'))
  await cache.read(named('a'))
  await cache.read(named('c'))
  t.ok(memory.calculatedSize <= 250)
  t.strictSame([memory.size, !!memory.get('a'), !!memory.get('b')], [2, true, false])
})

t.test('data beside a value counts in memory, from whichever tier the value was read', async t => {
  const memory = createMemoryTier<string>(10_000)
  const { cache, elsewhere, clock } = setUp(t, { memory })
  const loaded = await cache.read(named('a'))
  loaded.setExtraBytes(500)
  t.equal(memory.calculatedSize, 600, 'from the provider')
  const hit = await cache.read(named('a'))
  hit.setExtraBytes(700)
  t.equal(memory.calculatedSize, 800, 'from memory: the same entry')
  const other = createMemoryTier<string>(10_000)
  const found = await elsewhere({ memory: other }).read(named('a'))
  t.equal(found.source, 'embedded')
  found.setExtraBytes(40)
  t.strictSame([other.calculatedSize, memory.calculatedSize], [140, 800], 'from the shared tier')

  clock.advance(1_500)
  const stale = await cache.read(named('a'))
  t.equal(stale.outcome, 'stale')
  await settled()
  t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'hit' })
  t.equal(memory.calculatedSize, 100, 'the renewed entry has nothing beside it')
  for (const old of [loaded, hit, stale]) old.setExtraBytes(900)
  t.equal(memory.calculatedSize, 100, 'and what is kept beside the older one is not its')
})

t.test('a soft purge makes older entries stale, a hard one removes them', async t => {
  const { cache, loads, elsewhere, purge } = setUp(t)
  await cache.read(named('a'))
  await cache.read(named('b'))
  purge({ generation: 1, kind: 'soft', scope: cell('a') }, cache)
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'stale', forwarded: true })
  await settled()
  t.match(await cache.read(named('a')), { value: 'a 3', outcome: 'hit' }, 'loaded after the purge')
  t.match(await cache.read(named('b')), { value: 'b 2', outcome: 'hit' }, 'not covered')
  purge({ generation: 2, kind: 'hard', scope: cell('b') }, cache)
  t.match(await elsewhere().read(named('b')), { value: 'b 4', outcome: 'miss' }, 'nor from the shared tier')
  t.match(await cache.read(named('b')), { outcome: 'hit', source: 'embedded' })
  t.strictSame(loads, ['a', 'b', 'a', 'b'])
})

t.test('a hard purge that is read late keeps what was loaded after it', async t => {
  const { cache, purges, loads, parts, purge } = setUp(t)
  purges.reach(2)
  await cache.read(named('a'))
  const late = createPurges()
  const other = createReadThrough({ ...parts, purges: late })
  purge({ generation: 3, kind: 'hard', scope: cell('b') }, cache)
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.match(await other.read(named('a')), { value: 'a 1', outcome: 'hit' })
  const order = { generation: 2, kind: 'hard', scope: cell('a') } as const
  late.add(order)
  other.purged([order], true)
  t.match(await other.read(named('a')), { value: 'a 1', outcome: 'hit', source: 'memory' })
  t.equal(loads.length, 1)
})

t.test('a soft purge during a load makes what it brings stale, for those that wait for it too', async t => {
  const { cache, loader, loads, clock, purge } = setUp(t)
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  const reading = cache.read(named('a'))
  await settled()
  purge({ generation: 1, kind: 'soft', scope: cell('a') }, cache)
  const later = cache.read(named('a'))
  await settled()
  t.equal(loads.length, 1, 'what the load brings is usable')
  gate.resolve(undefined)
  for (const result of [await reading, await later])
    t.match(result, {
      value: 'a 1',
      outcome: 'stale',
      source: 'memory',
      forwarded: true,
      freshUntil: clock.now(),
    })
  await until('it is reloaded', () => loads.length === 2)
  t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'hit' })
})

for (const where of ['the same process', 'another instance'])
  t.test(`in ${where} no read after a hard purge gets a load from before it`, async t => {
    const { cache, loader, loads, elsewhere, purge } = setUp(t)
    const [first, second] = [Promise.withResolvers(), Promise.withResolvers()]
    loader.gate = first.promise
    const before = cache.read(named('a'))
    await settled()
    const other = where === 'the same process' ? cache : elsewhere()
    // There it waits for the load of the first instance.
    const waiting = where === 'the same process' ? [] : [other.read(named('a'))]
    await settled()
    purge({ generation: 1, kind: 'hard', scope: cell('a') }, cache)
    loader.gate = second.promise
    const after = [...waiting, other.read(named('a')), other.read(named('a'))]
    await settled()
    first.resolve(undefined)
    t.match(await before, { value: 'a 1', outcome: 'stale' })
    await until('the second load', () => loads.length === 2)
    second.resolve(undefined)
    for (const reading of after) t.match(await reading, { value: 'a 2', outcome: 'miss' })
    t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'hit' })
    t.equal(loads.length, 2)
  })

t.test('where purges were missed everything is stale, and no load from before counts as newer', async t => {
  const { cache, loader, loads, purges } = setUp(t)
  await cache.read(named('a'))
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  const reading = cache.read(named('b'))
  await settled()
  purges.reach(5)
  purges.miss(5)
  cache.purged([], false)
  t.match(await cache.read(named('a')), { value: 'a 1', outcome: 'stale', forwarded: true })
  gate.resolve(undefined)
  t.match(await reading, { value: 'b 2', outcome: 'stale', forwarded: true })
  await until('both are reloaded', () => loads.length === 4)
})

t.test('who joins a load from after a purge has it expedited for itself', async t => {
  const { cache, loader, loads, expedited, purge } = setUp(t)
  const [first, second] = [Promise.withResolvers(), Promise.withResolvers()]
  loader.gate = first.promise
  const before = cache.read(named('a'), 'before')
  await until('the first load', () => loads.length === 1)
  purge({ generation: 1, kind: 'hard', scope: cell('a') }, cache)
  loader.gate = second.promise
  const after = [cache.read(named('a'), 'many'), cache.read(named('a'), 'few')]
  first.resolve(undefined)
  t.match(await before, { value: 'a 1' })
  await until('the second load', () => loads.length === 2)
  t.strictSame(expedited, ['few'])
  second.resolve(undefined)
  for (const reading of after) t.match(await reading, { value: 'a 2', outcome: 'miss' })
})

t.test('a reload does not take for its own what a read is about to find', async t => {
  const { cache, clock, loads, elsewhere } = setUp(t)
  await cache.read(named('a'))
  clock.advance(500)
  const other = elsewhere()
  const [reading] = await Promise.all([other.read(named('a')), other.reload(named('a'))])
  t.match(reading, { outcome: 'hit' })
  t.strictSame(loads, ['a', 'a'])
})

t.test('two instances that miss together load once; the other gets the result, or the failure', async t => {
  const { cache, elsewhere, loads, loader, clock } = setUp(t)
  const other = elsewhere()
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  const readings = [cache.read(named('a')), other.read(named('a'))]
  await settled()
  t.equal(loads.length, 1)
  gate.resolve(undefined)
  const [mine, its] = await Promise.all(readings)
  t.match([mine?.value, its?.value], ['a 1', 'a 1'])
  t.strictSame([mine?.collapsed, its?.collapsed], [false, true])

  loader.failure = new Error('down')
  const failing = [cache.read(named('b')), other.read(named('b'))]
  const results = await Promise.allSettled(failing)
  t.match(
    results.map(result => result.status === 'rejected' && result.reason.message),
    ['down', 'down'],
  )
  t.equal(loads.length, 2, 'one load failed for both')
  clock.advance(1)
})

t.test('a read that waits for a less urgent load expedites it', async t => {
  const { cache, expedited, loader, clock } = setUp(t)
  await cache.read(named('a'))
  clock.advance(1_000)
  const gate = Promise.withResolvers()
  loader.gate = gate.promise
  await cache.read(named('a'))
  await settled()
  t.strictSame(expedited, [])
  clock.advance(10_000)
  const waiting = cache.read(named('a'))
  await settled()
  t.strictSame(expedited, ['a'])
  gate.resolve(undefined)
  t.match(await waiting, { value: 'a 2', outcome: 'miss' })
})

t.test('a reload loads although the entry is fresh, and reports a failure', async t => {
  const { cache, loads, loader, failures } = setUp(t)
  await cache.read(named('a'))
  await cache.reload(named('a'))
  t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'hit' })
  loader.failure = new Error('down')
  await cache.reload(named('a'))
  t.match(failures, [{ message: 'down' }])
  t.match(await cache.read(named('a')), { value: 'a 2', outcome: 'hit' }, 'what there is stays')
  t.equal(loads.length, 3)
})

t.test('an older entry that was being read does not replace one that was loaded meanwhile', async t => {
  const gate = Promise.withResolvers<void>()
  const { cache, parts, elsewhere, clock } = setUp(t)
  await cache.read(named('a'))
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
  const [reading, warming] = [slow.read(named('a')), slow.warm(named('a'))]
  clock.advance(2_000)
  await slow.reload(named('a'))
  gate.resolve()
  t.match(await reading, { value: 'a 2', outcome: 'hit' }, 'the newer one answers')
  await warming
  t.match(await slow.read(named('a')), { value: 'a 2', outcome: 'hit' })
})

t.test('warming copies the shared entry and loads nothing', async t => {
  const { cache, elsewhere, loads, clock } = setUp(t)
  await cache.read(named('a'))
  const other = elsewhere()
  t.equal(await other.warm(named('a')), true)
  t.equal(await other.warm(named('b')), false)
  t.match(await other.read(named('a')), { outcome: 'hit', source: 'memory' })
  clock.advance(11_000)
  t.equal(await elsewhere().warm(named('a')), false, 'past its last use')
  t.strictSame(loads, ['a'])
})

t.test('what is known of a key has both tiers, the last failure and the load under way', async t => {
  const { cache, parts, clock, loader } = setUp(t)
  const explain = async () => {
    const facts = (entry: Entry<string> | undefined) => factsOf(entry, policy, clock.now(), undefined)
    const [memory, shared] = [facts(parts.memory.peek('a')), facts(await parts.shared.get('a'))]
    return { memory, shared, lastFailure: parts.failures.last('a'), loading: cache.isLoading(named('a')) }
  }
  t.match(await explain(), { memory: null, shared: null, lastFailure: undefined, loading: false })
  await cache.read(named('a'))
  const fetchedAt = clock.now()
  const facts = { fetchedAt, freshUntil: fetchedAt + 1_000, usableUntil: fetchedAt + 11_000, state: 'fresh' }
  t.match(await explain(), { memory: facts, shared: facts })
  clock.advance(1_000)
  loader.failure = new Error('down')
  const reading = cache.read(named('a'))
  t.equal(cache.isLoading(named('a')), true)
  await reading
  await settled()
  t.match(await explain(), {
    memory: { state: 'stale' },
    lastFailure: { attempts: 1, backoffUntil: clock.now() + 500 },
  })
})

t.test('a cold read that joins a refresh is loaded for itself when only the refresh is refused', async t => {
  for (const where of ['in this process', 'in another']) {
    const gate = Promise.withResolvers<void>()
    const purposes: string[] = []
    const { clock, cache, elsewhere, store } = setUp(t, {
      load: async ({ id }, purpose) => {
        purposes.push(purpose)
        if (purpose !== 'cold') {
          await gate.promise
          // As of a budget whose reserve is for cold reads.
          throw Object.assign(new AbohawaError('provider_limited', 'used up'), {
            retryAt: clock.now() + 1_000,
          })
        }
        return { value: id, fetchedAt: clock.now(), bytes: 100, jitter: 0, generation: 0, run: null }
      },
    })
    const other = where === 'in another' ? elsewhere() : cache
    await cache.read(named('a'))
    clock.advance(2_000)
    t.match(await cache.read(named('a')), { outcome: 'stale' })
    await until('the refresh has begun', () => purposes.includes('refresh'), 5_000, 0)
    clock.advance(20_000)
    const cold = Promise.resolve(other.read(named('a')))
    await until('the cold read waits', async () => {
      await settled()
      return (await store.acquireLease('a', 'test', 1_000)) === 'held'
    })
    gate.resolve()
    t.match(await cold, { outcome: 'miss', value: 'a' }, where)
    t.strictSame(purposes, ['cold', 'refresh', 'cold'], where)
  }
})

t.test('what another instance has refreshed is not answered stale from memory', async t => {
  const { clock, cache, elsewhere, loads, store } = setUp(t)
  const other = elsewhere()
  await cache.read(named('a'))
  t.match(await other.read(named('a')), { outcome: 'hit', source: 'embedded' })
  clock.advance(2_000)
  t.match(await cache.read(named('a')), { outcome: 'stale', forwarded: true, collapsed: false })
  await until('it is refreshed', () => Object(cache.read(named('a'))).outcome === 'hit', 5_000, 0)
  const both = [other.read(named('a')), other.read(named('a'))]
  t.match(await Promise.all(both), [
    { outcome: 'hit', source: 'embedded', value: 'a 2', forwarded: false },
    { outcome: 'hit', value: 'a 2' },
  ])
  t.match(other.read(named('a')), { outcome: 'hit', source: 'memory' }, 'at once from then on')
  t.equal(loads.length, 2)

  // Without the shared tier the older entry is served, and refreshed.
  clock.advance(2_000)
  await store.deleteBytes(['a'])
  t.match(await other.read(named('a')), { outcome: 'stale', value: 'a 2', forwarded: true })
})
