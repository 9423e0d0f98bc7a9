// Without it a gateway that stalled in a load could overwrite newer weather with its own.

import t, { type Test } from 'tap'
import { ReadThrough } from '../../src/cache/read-through.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { testRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { partsOn, policyOf, textEntry } from './cache-set-up.ts'

/** Two instances on one Redis and one clock; the first is overtaken by the second in the middle of its load. */
const setUp = async (t: Test) => {
  const redis = await testRedis(t)
  // Redis expires bytes by its own clock.
  const clock = manualClock(Date.now())
  const instance = async (leaseForMs: number) => {
    const store = await openRedisStore({ ...patient, ...redis }, quiet)
    t.teardown(() => store.close())
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<string>()
    const { parts, failed } = partsOn(
      t,
      { store, clock },
      {
        load: async () => {
          const fetchedAt = clock.now()
          begun.resolve()
          return textEntry({ value: await gate.promise, fetchedAt })
        },
        policy: policyOf({ freshForMs: 60_000, freshForAtMostMs: 60_000, staleForMs: 60_000 }),
      },
      leaseForMs,
    )
    const cache = new ReadThrough(parts)
    return { ...parts, cache, store, failed, begun: begun.promise, end: gate.resolve }
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
  other.end('newer')
  t.hasStrict(await taking, { value: 'newer', outcome: 'miss' })
  return { stalled, other, reading }
}

t.test('a stalled holder takes the newer entry when it resumes', async t => {
  const { stalled, reading } = await setUp(t)
  stalled.end('older')
  const result = await reading
  t.hasStrict(result, { value: 'newer', outcome: 'miss' }, 'for its waiters')
  t.has(stalled.cache.read({ id: 'a' }), { value: 'newer', outcome: 'hit', source: 'memory' }, 'and later')
  t.hasStrict(await stalled.shared.get('a'), { value: 'newer' })
  const before = stalled.memory.calculatedSize
  result.derived.setBytes(50)
  t.equal(stalled.memory.calculatedSize, before + 50, 'what is kept beside it counts as the newer one’s')
  t.strictSame(stalled.failed, [], 'and it failed nothing')
})

t.test('where the newer entry is gone meanwhile, its own is for its memory alone', async t => {
  const { stalled, other, reading } = await setUp(t)
  await other.store.deleteBytes(['a'])
  stalled.end('older')
  t.hasStrict(await reading, { value: 'older' })
  t.hasStrict(stalled.memory.peek('a'), { value: 'older' })
  t.equal(await stalled.shared.get('a'), undefined)
})
