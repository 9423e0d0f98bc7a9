// A lease holder that stalls in the middle of a load and resumes after another instance has loaded the same key, on a real
// Redis: its older entry replaces none in the shared tier.

import t, { type Test } from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createFailures, createUncached } from '../../src/cache/failures.ts'
import { createFleetSingleFlight } from '../../src/cache/fleet-single-flight.ts'
import { createFreshness, type Entry } from '../../src/cache/freshness.ts'
import { createPurges } from '../../src/cache/purges.ts'
import { createReadThrough, type Subject } from '../../src/cache/read-through.ts'
import { createMemoryTier, createSharedTier } from '../../src/cache/tiers.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { testRedis } from '../support/redis-server.ts'

const policy = createFreshness(
  {
    freshForMs: 60_000,
    freshSpread: 0,
    freshForAtMostMs: 60_000,
    refreshAheadForMs: 0,
    staleForMs: 60_000,
    settleForMs: 0,
    spreadOverMs: 0,
  },
  () => 1,
)
const entryIn = (bytes: Buffer) => JSON.parse(bytes.toString()) as Entry<string>
const codec = {
  maxBytes: 10_000,
  encode: (entry: Entry<string>) => Buffer.from(JSON.stringify(entry)),
  metadata: entryIn,
  decode: entryIn,
}

/** Two instances on one Redis and one clock. */
const setUp = async (t: Test) => {
  const redis = await testRedis(t)
  // Redis expires bytes by its own clock.
  const clock = manualClock(Date.now())
  const instance = async (leaseForMs: number) => {
    const store = await openRedisStore(
      { ...redis, connectTimeoutMs: 5_000, commandTimeoutMs: 5_000 },
      { redisAway: () => {}, redisBack: () => {} },
    )
    const fail = (error: unknown): void => void t.fail('the store failed', { error })
    const fleet = createFleetSingleFlight({ store, leaseForMs }, fail)
    t.teardown(async () => {
      fleet.close()
      await store.close()
    })
    const memory = createMemoryTier<string>(1_000)
    const shared = createSharedTier(
      { name: 'redis', store, longestUseMs: () => policy.longestUseMs },
      codec,
      {
        onSharedTierFailure: (_step, error) => fail(error),
        onEntryRefused: reason => fail(new Error(`an entry was refused: ${reason}`)),
      },
    )
    const begun = Promise.withResolvers<void>()
    const loads: PromiseWithResolvers<string>[] = []
    const cache = createReadThrough<Subject, string>({
      keyOf: ({ id }) => id,
      load: async () => {
        const fetchedAt = clock.now()
        const gate = Promise.withResolvers<string>()
        loads.push(gate)
        begun.resolve()
        return { value: await gate.promise, fetchedAt, bytes: 1, jitter: 0, generation: 0, run: null }
      },
      expedite: () => {},
      heldBack: () => undefined,
      consumerOf: () => undefined,
      memory,
      shared,
      fleet,
      policy,
      purges: createPurges(),
      failures: createFailures({ retryAfterMs: 1_000, retryAfterAtMostMs: 1_000 }, clock),
      uncached: createUncached(),
      demand: createDemand(),
      waitForMs: 30_000,
      clock,
      observer: { onRead: () => {}, onCollapsed: () => {}, onLoadFailure: fail },
    })
    return { cache, memory, shared, fleet, store, loads, begun: begun.promise }
  }
  const stalled = await instance(100)
  const other = await instance(60_000)

  const reading = Promise.resolve(stalled.cache.read({ id: 'a' }))
  await stalled.begun
  // A stalled holder renews nothing, so its lease expires.
  stalled.fleet.close()
  clock.advance(10_000)
  const taking = other.cache.read({ id: 'a' })
  await other.begun
  other.loads[0]?.resolve('newer')
  t.match(await taking, { value: 'newer', outcome: 'miss' })
  return { stalled, other, reading, resume: () => stalled.loads[0]?.resolve('older') }
}

t.test('a stalled holder takes the newer entry when it resumes', async t => {
  const { stalled, reading, resume } = await setUp(t)
  resume()
  t.match(await reading, { value: 'newer', outcome: 'miss' }, 'for its waiters')
  t.match(
    stalled.cache.read({ id: 'a' }),
    { value: 'newer', outcome: 'hit', source: 'memory' },
    'and from then on',
  )
  t.match(await stalled.shared.get('a'), { value: 'newer' })
  const before = stalled.memory.calculatedSize
  ;(await reading).setExtraBytes(50)
  t.equal(stalled.memory.calculatedSize, before + 50, 'what is kept beside it counts as the newer one’s')
})

t.test('where the newer entry is gone meanwhile, its own is for its memory alone', async t => {
  const { stalled, other, reading, resume } = await setUp(t)
  await other.store.deleteBytes(['a'])
  resume()
  t.match(await reading, { value: 'older' })
  t.match(stalled.memory.peek('a'), { value: 'older' })
  t.equal(await stalled.shared.get('a'), undefined)
})
