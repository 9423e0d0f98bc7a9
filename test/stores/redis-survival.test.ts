// Without it the tables in docs/operating/redis.md on what survives a crash or a full memory could be wrong.

import t, { type Test } from 'tap'
import { dayOfNumber, utcDayMs } from '../../src/common/calendar.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { until } from '../support/until.ts'

const skip = withoutOwnRedis
const today = dayOfNumber(Math.floor(Date.now() / utcDayMs))
const later = Date.now() + 7 * utcDayMs

/** A Redis with a key, used 7 times. */
const open = async (t: Test, args: string[]) => {
  const redis = await startRedis(t, { args })
  const store = await openRedisStore({ ...patient, url: redis.url, prefix: 'x:' }, quiet)
  t.teardown(() => store.close())
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey(sampleKey('key_1'))
  await store.raiseUsed('key_1', today, 7, later)
  const found = async () => ({
    keys: (await store.listKeys()).map(({ id }) => id),
    used: (await store.usedOn('key_1', [today]))[0],
  })
  const killAndStart = async () => {
    await redis.kill()
    await redis.start()
    await until('the store is connected again', () => store.time().then(Boolean, () => false))
  }
  return { redis, store, found, killAndStart }
}

t.test('with an append-only file all of it survives kill -9', { skip }, async t => {
  const { redis, found, killAndStart } = await open(t, ['--appendonly', 'yes', '--appendfsync', 'everysec'])
  // Redis keeps what it has to write for up to two seconds where the disk does not keep up.
  await until('all of it is written', async () =>
    (await redis.admin.info('persistence')).includes('aof_buffer_length:0\r\n'),
  )
  await killAndStart()
  t.strictSame(await found(), { keys: ['key_1'], used: 7 })
})

t.test('with snapshots alone all is as of the last one', { skip }, async t => {
  const { redis, store, found, killAndStart } = await open(t, ['--appendonly', 'no'])
  await redis.admin.save()
  await store.addKey(sampleKey('key_2'))
  await store.raiseUsed('key_1', today, 9, later)
  await killAndStart()
  t.strictSame(await found(), { keys: ['key_1'], used: 7 })
})

t.test('FLUSHALL leaves neither keys nor counts', { skip }, async t => {
  const { redis, found } = await open(t, [])
  await redis.admin.flushall()
  t.strictSame(await found(), { keys: [], used: 0 })
})

t.test('a full memory evicts no key and no subscriber, with noeviction nothing', { skip }, async t => {
  const bytes = 3_000_000
  for (const policy of ['noeviction', 'volatile-lru', 'volatile-lfu', 'volatile-ttl', 'volatile-random']) {
    const { redis, store, found } = await open(t, [
      ...['--maxmemory', String(bytes), '--maxmemory-policy', policy],
    ])
    const text = 'x'.repeat(10_000)
    let written = 0
    // Three times as much as there is room for.
    while (written < (3 * bytes) / text.length) {
      const taken = await redis.admin.set(`x:weather:${written}`, text, 'EX', 60).catch(() => undefined)
      written += 1
      if (taken === undefined) break
    }
    const { keys, used } = await found()
    t.strictSame(keys, ['key_1'], policy)
    t.equal((await store.listSubscribers()).length, 1, policy)
    if (policy === 'noeviction') {
      t.equal(used, 7)
      t.ok(written < bytes / text.length, 'further writes are refused')
    } else t.ok(Number(await redis.admin.dbsize()) < written, `${policy}: something was evicted`)
  }
})
