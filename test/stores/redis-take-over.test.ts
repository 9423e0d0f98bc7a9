// A Redis of format 1, where each key had hashes of its own: its running day is taken over before a gateway counts, its past days
// are shown, and no gateway starts beside one that still counts there. On a server and on a cluster.

import { Cluster, Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { dayOfNumber, utcDayMs } from '../../src/calendar.ts'
import { redisKeyNames } from '../../src/stores/redis/key-names.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { instanceOn } from '../support/usage-instance.ts'

const timeouts = { connectTimeoutMs: 5_000, commandTimeoutMs: 5_000 }
const quiet = { redisAway: () => {}, redisBack: () => {} }
const today = dayOfNumber(Math.floor(Date.now() / utcDayMs))
const daysBack = (days: number) => dayOfNumber(Math.floor(Date.now() / utcDayMs) - days)
const keepUsageForMs = 400 * utcDayMs
const later = Date.now() + keepUsageForMs

type Place = { url: string; prefix: string; mode: 'single' | 'cluster'; raw: Redis | Cluster }

/** 250 keys, which more than one command takes over, of which most have been used today as format 1 has it. */
const setUp = async (t: Test, { raw, ...place }: Place) => {
  const names = redisKeyNames(place.prefix)
  const open = async () => {
    const store = await openRedisStore({ ...timeouts, ...place }, quiet)
    t.teardown(() => store.close())
    return store
  }
  const store = await open()
  await store.ensureSubscriber(sampleSubscriber)
  await raw.set(names.format, '1')
  const ids = Array.from({ length: 250 }, (_, i) => `key_${i}`)
  for (const [i, id] of ids.entries()) {
    await store.addKey(sampleKey(id))
    const count = async (day: string, used: string) => {
      const name = names.formerMonthUsage(id, day.slice(0, 7))
      await raw.hset(name, day.slice(8), used)
      await raw.pexpireat(name, later)
    }
    if (i >= 240) continue
    await count(today, String(i))
    await count(daysBack(1), String(1_000 + i))
    await count(daysBack(40), String(2_000 + i))
  }
  return { names, store, ids, open }
}

const takesOver = async (t: Test, place: Place): Promise<void> => {
  const { raw } = place
  const { names, store, ids } = await setUp(t, place)
  await raw.hset(names.formerMonthUsage('key_7', today.slice(0, 7)), today.slice(8), 'x')
  await raw.del(names.formerMonthUsage('key_8', today.slice(0, 7)))
  await raw.set(names.formerMonthUsage('key_8', today.slice(0, 7)), 'x')
  await store.raiseUsed('key_9', today, 500, later)
  await store.raiseUsed('key_100', today, 20, later)
  t.match(await store.usedOn('key_5', [today, daysBack(1), daysBack(40), daysBack(41)]), [5, 1_005, 2_005, 0])
  await store.takeOver(keepUsageForMs)
  t.equal(await raw.get(names.format), '2')
  const commit = instanceOn(store, 'one')
  const grants = new Map<string, { granted: number; used: number; before: number }>()
  for (const keyId of ids) {
    const [grant] = await commit({ keyId, day: today, limit: 230 })
    if (grant) grants.set(keyId, grant)
  }
  t.strictSame(grants.get('key_5'), { granted: 1, used: 6, before: 5 })
  t.strictSame(grants.get('key_229'), { granted: 1, used: 230, before: 229 })
  t.strictSame(grants.get('key_230'), { granted: 0, used: 230, before: 230 }, 'no unit beyond the limit')
  t.strictSame(grants.get('key_245'), { granted: 1, used: 1, before: 0 })
  t.strictSame(grants.get('key_7'), { granted: 1, used: 1, before: 0 }, 'which could not be read')
  t.strictSame(grants.get('key_8'), { granted: 1, used: 1, before: 0 }, 'of another type')
  t.strictSame(grants.get('key_9'), { granted: 0, used: 500, before: 500 }, 'what is larger stands')
  t.strictSame(grants.get('key_100'), { granted: 1, used: 101, before: 100 }, 'what is smaller does not')
  await store.takeOver(keepUsageForMs)
  t.strictSame(
    await store.usedOn('key_5', [today, daysBack(1), daysBack(40), daysBack(41)]),
    [6, 1_005, 2_005, 0],
  )
  t.equal(await store.lastUsedOn('key_239', daysBack(100), daysBack(2)), daysBack(40))
  t.equal(await store.lastUsedOn('key_249', daysBack(100), today), today)
  t.ok((await raw.pttl(names.monthUsage(store.partitionOf('key_5'), today.slice(0, 7)))) > 0, 'it expires')

  const detail = {
    keyId: 'key_5',
    day: today,
    endpoint: 'weather',
    statusClass: '2xx',
    count: 3,
    keepUntil: later,
  }
  await raw.hset(names.formerUsageDetail('key_5', today), '2xx weather', '10', '4xx weather', '1')
  await store.addDetail([detail])
  t.strictSame(
    (await store.detailOn('key_5', today)).toSorted((a, b) => b.count - a.count),
    [
      { endpoint: 'weather', statusClass: '2xx', count: 13 },
      { endpoint: 'weather', statusClass: '4xx', count: 1 },
    ],
  )
}

t.test('a server: the running day goes on, past days are shown, and nothing counts twice', async t => {
  const { url, prefix } = await testRedis(t)
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  await takesOver(t, { url, prefix, mode: 'single', raw })
})

t.test('a cluster: the same', { skip: withoutOwnRedis }, async t => {
  const cluster = await startCluster(0)
  t.teardown(cluster.stop)
  const raw = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  t.teardown(() => raw.disconnect())
  await takesOver(t, { url: cluster.url, prefix: 'x:', mode: 'cluster', raw })
})

t.test('beside a gateway that counts in format 1 none starts, and after it one does', async t => {
  const { url, prefix } = await testRedis(t)
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  const { names, store, open } = await setUp(t, { url, prefix, mode: 'single', raw })
  await raw.zadd(names.settings, Date.now(), 'a one')
  await t.rejects(store.takeOver(keepUsageForMs), {
    name: 'InputError',
    message:
      /^redis\.url names 127.*, where a gateway of an earlier version still counts in format 1: stop every /,
  })
  await raw.zadd(names.settings, Date.now(), 'a two')
  await t.rejects((await open()).takeOver(keepUsageForMs), {
    message: /where 2 gateways .* still count in format 1/,
  })
  t.equal(await raw.get(names.format), '1')
  await raw.zrem(names.settings, 'a one', 'a two')
  await store.takeOver(keepUsageForMs)
  t.equal(await raw.get(names.format), '2')
  await raw.zadd(names.settings, Date.now(), 'a three')
  await (await open()).takeOver(keepUsageForMs)
  t.pass('beside one of this version')
})

t.test('a key that is made for a store in use leaves its format to the gateways', async t => {
  const { url, prefix } = await testRedis(t)
  const raw = new Redis(url)
  t.teardown(() => raw.quit())
  const { names, store } = await setUp(t, { url, prefix, mode: 'single', raw })
  await raw.del(names.format)
  await store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_b', name: 'Meghna' })
  t.equal(await raw.get(names.format), null)
})
