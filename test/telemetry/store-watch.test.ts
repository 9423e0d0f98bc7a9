// Without it a scrape could hang with Redis, or nobody could learn that Redis evicts keys.

import t, { type Test } from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createStoreWatch } from '../../src/telemetry/store-watch.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { until } from '../support/until.ts'

skipFileIf(t, withoutOwnRedis)

const setUp = async (test: Test, commandTimeoutMs = 20_000) => {
  const redis = await startRedis(test)
  const outcomes: string[] = []
  const store = await openRedisStore(
    { url: `redis://${redis.address}`, prefix: 'x:', connectTimeoutMs: 20_000, commandTimeoutMs },
    { redisAway: () => {}, redisBack: () => {}, redisRequest: outcome => void outcomes.push(outcome) },
  )
  test.teardown(() => store.close())
  const lines: string[] = []
  const log = createLog('info', { write: line => void lines.push(line) })
  const clock = manualClock()
  return { redis, store, outcomes, lines, clock, look: createStoreWatch(store, log, clock.now) }
}

t.test('a Redis that answers has a latency, and its memory is read once in ten seconds', async t => {
  const { redis, look } = await setUp(t)
  await redis.admin.config('RESETSTAT')
  const [first, second] = [await look(), await look()]
  t.hasStrict(first, { kind: 'redis', fault: null, size: { maxBytes: 0 } })
  t.ok((first.latencyMs ?? 0) > 0)
  t.ok((first.size?.usedBytes ?? 0) > 100_000)
  t.equal(second.size, first.size)
  t.match(await redis.admin.info('commandstats'), /cmdstat_info:calls=1,/)
})

t.test('a policy that may evict API keys is a line, and so is its end', async t => {
  const { redis, look, lines, clock } = await setUp(t)
  const eviction = async () => {
    clock.advance(10_000)
    return (await look()).size?.eviction
  }
  t.strictSame(await eviction(), { policy: 'noeviction', takesKeys: false, evicted: 0 })
  await redis.admin.mset('x:one', 'a', 'x:two', 'b')
  await redis.admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await redis.admin.config('SET', 'maxmemory', '1')
  await t.rejects(redis.admin.set('x:three', 'c'), /OOM/)
  t.hasStrict(await eviction(), { policy: 'allkeys-lru', takesKeys: true, evicted: 2 })
  await eviction()
  await redis.admin.config('SET', 'maxmemory-policy', 'volatile-lru')
  t.hasStrict(await eviction(), { policy: 'volatile-lru', takesKeys: false })
  t.match(
    lines.map(line => JSON.parse(line)),
    [
      { level: 'error', msg: 'Redis may evict API keys', policy: 'allkeys-lru', evicted: 2, next: /runbook/ },
      { level: 'info', msg: 'Redis no longer evicts API keys', policy: 'volatile-lru' },
    ],
  )
})

t.test('where INFO is refused, Redis answers, its memory is unknown, and one line says so', async t => {
  const { redis, look, lines, outcomes } = await setUp(t)
  await redis.admin.acl('SETUSER', 'default', '-info')
  t.match(await look(), { kind: 'redis', latencyMs: Number, fault: null, size: undefined })
  await look()
  t.strictSame(
    lines.map(line => JSON.parse(line)).map(({ level, msg }) => [level, msg]),
    [['warn', 'Redis memory unknown']],
  )
  t.match(lines[0], /NOPERM/)
  // The first is the store's format, read when it was opened.
  t.strictSame(outcomes, ['ok', 'ok', 'reply', 'ok'])
})

t.test('a Redis that hangs has a fault, and its memory is read as soon as it answers', async t => {
  const { redis, look, outcomes } = await setUp(t, 2_000)
  await look()
  redis.signal('SIGSTOP')
  t.match(await look(), { kind: 'redis', latencyMs: null, fault: /./, size: undefined })
  t.equal(outcomes.at(-1), 'timeout')
  redis.signal('SIGCONT')
  t.match(await until('it answers', async () => (await look()).size), { maxBytes: 0 })
})
