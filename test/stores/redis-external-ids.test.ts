// External ids in Redis after a process ended, or a failover lost a write, between the steps of storing a key.

import { Redis } from 'ioredis'
import t from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { testRedis } from '../support/redis-server.ts'

const { url, prefix } = await testRedis(t)
const raw = new Redis(url)
const store = await openRedisStore(
  { url, prefix, connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 },
  { redisAway: () => {}, redisBack: () => {} },
)
t.teardown(async () => {
  await store.close()
  await raw.quit()
})
await store.ensureSubscriber(sampleSubscriber)
const listed = async () => (await store.listKeys()).map(({ id }) => id)

t.test('a key that was not listed yet is listed by the next attempt, and there is no second one', async t => {
  const first = { ...sampleKey('key_1'), externalId: 'ours-1' }
  await store.addKey(first)
  await raw.zrem(`${prefix}keys`, 'key_1')
  t.strictSame(await listed(), [])
  t.strictSame(await store.addKey({ ...sampleKey('key_2'), externalId: 'ours-1' }), first)
  t.strictSame(await listed(), ['key_1'])
  t.equal(await store.findKey('key_2'), undefined)
})

t.test('an external id whose key was lost is free again', async t => {
  const lost = { ...sampleKey('key_3'), externalId: 'ours-3' }
  await store.addKey(lost)
  await raw.del(`${prefix}key:key_3`)
  t.equal(await store.findByExternalId('ours-3'), undefined)
  const next = { ...sampleKey('key_4'), externalId: 'ours-3' }
  t.equal(await store.addKey(next), undefined)
  t.strictSame(await store.findByExternalId('ours-3'), next)
})
