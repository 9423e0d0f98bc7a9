// Without it a downgrade could damage the store of a newer version, or an upgrade fail on an older store.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import t from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { runCommand } from '../support/process.ts'
import { patientRedisEnv, testRedis } from '../support/redis-server.ts'
import { patient, quiet, redisStores } from '../support/redis-store.ts'
import { heartbeatOf } from './usage-instance.ts'

t.test('a file of a newer version is refused by name, and not a byte of it changes', async t => {
  const path = join(t.testdir(), 'store.db')
  const newer = new DatabaseSync(path)
  newer.exec('CREATE TABLE of_tomorrow (x); PRAGMA user_version = 99')
  newer.close()
  const before = readFileSync(path)
  t.throws(() => openEmbeddedStore(path, systemClock), {
    name: 'InputError',
    message: `store.path is ${path}, a store of format 99 of a newer version of abohawa; this version knows format 1: start `,
  })
  for (const args of [['serve'], ['keys', 'list']]) {
    const env = { ABOHAWA_SERVER__PORT: '0', ABOHAWA_OPS__PORT: '0', ABOHAWA_STORE__PATH: path }
    const { code, stdout, stderr } = await runCommand(args, env)
    t.strictSame([code, stdout], [1, ''], args.join(' '))
    t.match(stderr, /^abohawa: store\.path is [^\n]*format 99[^\n]*\n$/)
  }
  t.ok(readFileSync(path).equals(before))
})

t.test('a new file has the number, and two at once may open it', async t => {
  const path = join(t.testdir(), 'store.db')
  const stores = [openEmbeddedStore(path, systemClock), openEmbeddedStore(path, systemClock)]
  for (const store of stores) await store.close()
  using db = new DatabaseSync(path)
  t.equal(db.prepare('PRAGMA user_version').get()?.user_version, 1)
})

t.test('Redis: one that a newer version wrote is refused, and nothing in it changes', async t => {
  const { url, prefix } = await testRedis(t)
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  const everything = async () => {
    const keys = (await raw.keys(`${prefix}*`)).sort()
    return Promise.all(keys.map(async key => [key, await raw.dump(key), await raw.pttl(key)]))
  }
  await raw.set(`${prefix}format`, '2')
  await raw.hset(`${prefix}key:key_1`, 'of', 'tomorrow')
  const before = await everything()
  const env = { ...patientRedisEnv, ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__PREFIX: prefix }
  await t.rejects(openRedisStore({ ...patient, url, prefix }, quiet), {
    name: 'InputError',
    message:
      /^redis\.url names 127\.0\.0\.1:\d+, a store of format 2 of a newer version of abohawa; this version knows /,
  })
  const ports = { ABOHAWA_SERVER__PORT: '0', ABOHAWA_OPS__PORT: '0' }
  const provider = { ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:9' }
  for (const line of ['serve', 'keys create --subscriber Padma --tier free', 'keys list']) {
    const { code, stderr } = await runCommand(line.split(' '), { ...env, ...ports, ...provider })
    t.equal(code, 1, line)
    t.match(stderr, /redis\.url names [^\n]*format 2 of a newer version of abohawa/)
  }
  const { code, stdout } = await runCommand(['doctor', '--no-spend', '--json'], env)
  t.equal(code, 1)
  const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; fix: string }[] }
  const ofRedis = checks.find(({ name }) => name === 'redis')
  t.match(ofRedis, { status: 'fail', fix: /restore the copy/ })
  t.strictSame(await everything(), before)

  for (const number of ['0', '-1', 'x', '1.5', '12345678']) {
    await raw.set(`${prefix}format`, number)
    await t.rejects(openRedisStore({ ...patient, url, prefix }, quiet), {
      name: 'InputError',
      message: `format must be the number of a format, got ${number}; this version writes 1`,
    })
  }
})

t.test('Redis: one without a number gets it with the first record', async t => {
  const { url, prefix: base } = await testRedis(t)
  const { store, prefix, raw, names } = await redisStores({ url, prefix: base })(t)
  t.strictSame(await names(), [], 'a look leaves nothing behind')
  await store.ensureSubscriber(sampleSubscriber)
  t.equal(await raw.get(`${prefix}format`), '1')
  t.equal(await raw.ttl(`${prefix}format`), -1, 'for ever')

  await raw.del(`${prefix}format`)
  const again = await openRedisStore({ ...patient, url, prefix }, quiet)
  t.teardown(() => again.close())
  t.hasStrict(await again.listSubscribers(), [{ id: 'sub_a', name: 'Padma' }])
  await again.heartbeat(heartbeatOf('one'))
  t.equal(await raw.get(`${prefix}format`), '1', 'as each heartbeat sees to')

  await raw.set(`${prefix}format`, '7')
  await again.heartbeat(heartbeatOf('one'))
  t.equal(await raw.get(`${prefix}format`), '7', 'a gateway that still runs leaves a later number alone')
})

const restrictions = { origins: null, addresses: ['192.0.2.1'], endpoints: ['weather'] }
const rates = { perSecond: 2, burst: null, perMinute: 60 }

t.test('a file of version 1.0 is read and changed, and that version goes on with it', async t => {
  const path = join(t.testdir(), 'store.db')
  await openEmbeddedStore(path, systemClock).close()
  using beside = new DatabaseSync(path)
  for (const column of ['restrictions', 'rates']) beside.exec(`ALTER TABLE keys DROP COLUMN ${column}`)
  const ofVersion1 = (id: string) =>
    beside.exec(
      `INSERT INTO keys (id, hash, subscriber_id, tier, own_limit, created_at, revoked_at, expires_at, external_id)
       VALUES ('${id}', 'hash-of-${id}', 'sub_a', 'free', NULL, 1000, NULL, NULL, NULL)`,
    )
  beside.exec(`INSERT INTO subscribers VALUES ('sub_a', 'Padma', 1000, NULL)`)
  ofVersion1('key_1')

  const store = openEmbeddedStore(path, systemClock)
  t.teardown(() => store.close())
  const expected = { ...sampleKey('key_1'), previousHashes: [] }
  t.strictSame(await store.findKey('key_1'), expected)
  await store.changeKey('key_1', { restrictions, rates })
  ofVersion1('key_2')
  beside.exec(`UPDATE keys SET tier = 'starter', own_limit = 5, revoked_at = NULL, expires_at = NULL`)
  t.strictSame(await store.listKeys(), [
    { ...expected, tier: 'starter', limit: 5, restrictions, rates },
    { ...expected, id: 'key_2', hash: 'hash-of-key_2', tier: 'starter', limit: 5 },
  ])
  t.equal(beside.prepare('PRAGMA user_version').get()?.user_version, 1)
})

t.test('Redis: keys of version 1.0 are read, and that version leaves what it does not know', async t => {
  const { url, prefix: base } = await testRedis(t)
  const { store, prefix, raw } = await redisStores({ url, prefix: base })(t)
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey(sampleKey('key_1'))
  await raw.hdel(`${prefix}key:key_1`, 'restrictions', 'rates')
  t.strictSame(await store.findKey('key_1'), sampleKey('key_1'))
  await store.changeKey('key_1', { restrictions, rates })
  await raw.hset(`${prefix}key:key_1`, 'tier', 'starter', 'limit', '')
  t.strictSame(await store.findKey('key_1'), { ...sampleKey('key_1'), tier: 'starter', restrictions, rates })
})
