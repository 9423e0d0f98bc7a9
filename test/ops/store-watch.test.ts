// What metrics learn of the store at a scrape: a Redis that answers, one that may not be asked for its memory, and one that
// hangs.

import t, { type Test } from 'tap'
import { createLog } from '../../src/ops/log.ts'
import { createStoreWatch } from '../../src/ops/store-watch.ts'
import { openRedisStore } from '../../src/stores/redis.ts'
import { startRedisProcess } from '../support/redis-process.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

if (withoutOwnRedis) t.bailout(withoutOwnRedis)

const setUp = async (test: Test) => {
  const redis = await startRedisProcess()
  test.teardown(redis.stop)
  const outcomes: string[] = []
  const store = await openRedisStore(
    { url: `redis://${redis.address}`, prefix: 'x:', connectTimeoutMs: 1_000, commandTimeoutMs: 200 },
    { redisAway: () => {}, redisBack: () => {}, redisRequest: outcome => void outcomes.push(outcome) },
  )
  test.teardown(() => store.close())
  const lines: string[] = []
  const log = createLog('info', { write: line => void lines.push(line) })
  return { redis, store, outcomes, lines, look: createStoreWatch(store, log) }
}

t.test('a Redis that answers is up, and is asked for its memory once in ten seconds', async t => {
  const { redis, look } = await setUp(t)
  await redis.admin.config('RESETSTAT')
  const [first, second] = [await look(), await look()]
  t.match(first, { kind: 'redis', up: true, memory: { maxBytes: 0 } })
  t.ok((first.memory?.usedBytes ?? 0) > 100_000)
  t.equal(second.memory, first.memory)
  t.match(await redis.admin.info('commandstats'), /cmdstat_info:calls=1,/)
})

t.test('where INFO is refused, Redis is up, its memory is unknown, and one line says so', async t => {
  const { redis, look, lines, outcomes } = await setUp(t)
  await redis.admin.acl('SETUSER', 'default', '-info')
  t.strictSame(await look(), { kind: 'redis', up: true, memory: undefined })
  await look()
  t.strictSame(
    lines.map(line => JSON.parse(line)).map(({ level, msg }) => [level, msg]),
    [['warn', 'memory of Redis is not known']],
  )
  t.match(lines[0], /NOPERM/)
  t.strictSame(outcomes, ['ok', 'reply', 'ok'])
})

t.test('a Redis that hangs is not up, and its memory is asked for as soon as it answers', async t => {
  const { redis, look, outcomes } = await setUp(t)
  await look()
  redis.signal('SIGSTOP')
  t.strictSame(await look(), { kind: 'redis', up: false, memory: undefined })
  t.equal(outcomes.at(-1), 'timeout')
  redis.signal('SIGCONT')
  t.match(await look(), { up: true, memory: { maxBytes: 0 } })
})
