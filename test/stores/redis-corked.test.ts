// How commands reach Redis: those of one turn of the event loop in one write, each with its own reply.

import { Redis } from 'ioredis'
import t from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { startRedis } from '../support/redis-server.ts'

t.test('what is asked in one turn reaches Redis in one piece, and each gets its own reply', async t => {
  // A server of its own, whose reads are those of this test.
  const server = await startRedis()
  t.teardown(server.stop)
  const timeouts = { connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 }
  const observer = { redisAway: () => {}, redisBack: () => {} }
  const store = await openRedisStore({ ...timeouts, url: server.url, prefix: 'a:' }, observer)
  const raw = new Redis(server.url)
  t.teardown(async () => {
    await raw.quit()
    await store.close()
  })
  const reads = async () =>
    Number(/total_reads_processed:(\d+)/.exec(await raw.info('stats'))?.[1] ?? Number.NaN)
  const names = Array.from({ length: 200 }, (_, i) => `cell-${i}`)
  const inAnHour = Date.now() + 3_600_000
  await Promise.all(names.map(name => store.writeBytes(name, Buffer.from(`weather of ${name}`), inAnHour)))

  const before = await reads()
  const found = await Promise.all(names.map(name => store.readBytes(name)))
  const after = await reads()
  t.strictSame(
    found.map(bytes => bytes?.toString()),
    names.map(name => `weather of ${name}`),
  )
  // Apart from the question itself and what a gateway asks all the time. One for each command without it.
  t.ok(after - before < 20, `${after - before} reads of Redis for ${names.length} commands`)
})
