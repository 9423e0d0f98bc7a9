// A holder that was stopped in the middle of a load and wakes up after another has loaded the same key, on a real Redis:
// what it brings is older, and no tier keeps it.

import t, { type Test } from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import type { Entry } from '../../src/cache/entry.ts'
import { createFailures } from '../../src/cache/failures.ts'
import { freshByAge } from '../../src/cache/freshness.ts'
import { createJointFlight } from '../../src/cache/joint-flight.ts'
import { createMemoryTier } from '../../src/cache/memory-tier.ts'
import { createPurges } from '../../src/cache/purges.ts'
import { createReadThrough } from '../../src/cache/read-through.ts'
import { createSharedTier } from '../../src/cache/shared-tier.ts'
import { openRedisStore } from '../../src/stores/redis.ts'
import { manualClock } from '../support/manual-clock.ts'
import { testRedis } from '../support/redis-server.ts'

const policy = freshByAge(
  { freshForMs: 60_000, freshSpread: 0, freshForAtMostMs: 60_000, aheadForMs: 0, staleForMs: 60_000 },
  () => 1,
)
const entryIn = (bytes: Buffer) => JSON.parse(bytes.toString()) as Entry<string>
const codec = {
  mostBytes: 10_000,
  encode: (entry: Entry<string>) => Buffer.from(JSON.stringify(entry)),
  notes: entryIn,
  decode: entryIn,
}

/** Two instances on one Redis and one clock. */
const setUp = async (t: Test) => {
  const redis = await testRedis(t)
  // Redis forgets bytes by its own clock.
  const clock = manualClock(Date.now())
  const instance = async (holdForMs: number) => {
    const store = await openRedisStore(
      { ...redis, connectTimeoutMs: 5_000, commandTimeoutMs: 5_000 },
      { redisAway: () => {}, redisBack: () => {} },
    )
    const fail = (error: unknown): void => void t.fail('the store failed', { error })
    const flights = createJointFlight({ store, holdForMs }, fail)
    t.teardown(async () => {
      flights.close()
      await store.close()
    })
    const memory = createMemoryTier<string>(1_000)
    const begun = Promise.withResolvers<void>()
    const loads: PromiseWithResolvers<string>[] = []
    const cache = createReadThrough<string, string>({
      keyOf: subject => subject,
      load: async () => {
        const fetchedAt = clock.now()
        const gate = Promise.withResolvers<string>()
        loads.push(gate)
        begun.resolve()
        return { value: await gate.promise, fetchedAt, bytes: 1, lot: 0, generation: 0, run: null }
      },
      hasten: () => {},
      memory,
      shared: createSharedTier({ name: 'redis', store, longestUseMs: policy.longestUseMs }, codec, {
        sharedTierFailed: (_step, error) => fail(error),
        entryRefused: reason => fail(new Error(`an entry was refused: ${reason}`)),
      }),
      flights,
      policy,
      purges: createPurges(() => false),
      failures: createFailures({ retryAfterMs: 1_000, retryAfterAtMostMs: 1_000 }, clock),
      demand: createDemand(),
      waitForMs: 30_000,
      clock,
      observer: { read: () => {}, refreshFailed: fail },
    })
    return { cache, memory, flights, store, loads, begun: begun.promise }
  }
  const stopped = await instance(100)
  const other = await instance(60_000)

  const reading = Promise.resolve(stopped.cache.read('a'))
  await stopped.begun
  // Whoever is stopped prolongs nothing, and its hold ends by itself.
  stopped.flights.close()
  clock.advance(10_000)
  const taking = other.cache.read('a')
  await other.begun
  other.loads[0]?.resolve('newer')
  t.match(await taking, { value: 'newer', outcome: 'miss' })
  return { stopped, other, reading, wake: () => stopped.loads[0]?.resolve('older') }
}

t.test('who wakes up after another has loaded takes the newer entry', async t => {
  const { stopped, reading, wake } = await setUp(t)
  wake()
  t.match(await reading, { value: 'newer', outcome: 'miss' }, 'for those who waited')
  t.match(stopped.cache.read('a'), { value: 'newer', outcome: 'hit', source: 'memory' }, 'and from then on')
  t.match((await stopped.cache.explain('a')).shared, { state: 'fresh' })
  const before = stopped.memory.bytes
  ;(await reading).setExtraBytes(50)
  t.equal(stopped.memory.bytes, before + 50, 'what is kept beside it counts as the newer one’s')
})

t.test('where the newer entry is gone meanwhile, its first tier keeps nothing', async t => {
  const { stopped, other, reading, wake } = await setUp(t)
  await other.store.deleteBytes(['a'])
  wake()
  t.match(await reading, { value: 'older' }, 'who waited gets what there is')
  t.match(await stopped.cache.explain('a'), { memory: null, shared: null })
  ;(await reading).setExtraBytes(50)
  t.equal(stopped.memory.bytes, 0, 'and counts nothing beside it')
})
