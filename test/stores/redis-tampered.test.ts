// A Redis that somebody else has written to: every record of the store in every invalid form, on a single server and on a
// cluster.

import { Cluster, Redis } from 'ioredis'
import t, { type Test } from 'tap'
import type { RefusedRecord } from '../../src/stores/records.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { tamperedRecords } from '../support/tampered-records.ts'
import { until } from '../support/until.ts'

const timeouts = { connectTimeoutMs: 5_000, commandTimeoutMs: 20_000 }
const quiet = { redisAway: () => {}, redisBack: () => {} }
let opened = 0

const server = await testRedis(t)
const raw = new Redis(server.url)
t.teardown(() => raw.quit())
tamperedRecords(t, 'single', async observer => {
  const prefix = `${server.prefix}${opened++}:`
  const store = await openRedisStore({ ...timeouts, url: server.url, prefix }, { ...quiet, ...observer })
  return { store, raw, prefix }
})

/** A store that subscribes, with the messages it received and the refusals it reported. */
const listening = async (t: Test) => {
  const prefix = `${server.prefix}${opened++}:`
  const refused: RefusedRecord[] = []
  const store = await openRedisStore(
    { ...timeouts, url: server.url, prefix },
    { ...quiet, recordRefused: record => refused.push(record) },
  )
  t.teardown(() => store.close())
  const messages: unknown[] = []
  store.onUsage(each => messages.push(each))
  const publish = (text: string) => raw.publish(`${prefix}used`, text)
  await until('it listens', async () => (await publish('probe 2126-11-21 1')) === 1 && messages.length > 0)
  const received = (marker: number) =>
    until('the marker has arrived', async () => {
      await publish(`marker 2126-11-21 ${marker}`)
      return messages.some(each => Object(each).used === marker)
    })
  return { prefix, refused, messages, publish, received }
}

t.test('messages that no gateway sends are reported and ignored', async t => {
  const { prefix, refused, messages, publish, received } = await listening(t)
  const longest = `${'k'.repeat(200)} 2126-11-21 ${'9'.repeat(15)}`
  await publish(longest)
  await received(2)
  t.ok(messages.some(each => Object(each).keyId === 'k'.repeat(200)))
  messages.length = 0
  const texts = [
    '',
    'x',
    'key_1',
    'key_1 2126-11-21',
    'key_1 2126-11-21 x',
    'key_1 2126-11-21 -5',
    'key_1 2126-11-21 1e9',
    'key_1 2126-11-21 1.5',
    `key_1 2126-11-21 ${'9'.repeat(400)}`,
    'key_1 yesterday 5',
    'key_1 2126-11-21 5 6',
    `${'x'.repeat(1_000)} 2126-11-21 5`,
    '\u001b[31m<b>lost</b>',
  ]
  for (const text of texts) await publish(text)
  await received(3)
  const others = messages.filter(each => Object(each).keyId !== 'marker')
  t.strictSame(others, [], 'not even that something was missed')
  t.equal(refused.length, texts.length)
  t.ok(refused.every(each => each.record === 'message' && each.name.startsWith(prefix)))
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no such character is to be there
  t.ok(refused.every(({ fault }) => fault.length < 120 && !/[\u0000-\u001f]/.test(fault)))
})

t.test(
  'a message of megabytes is not read: the connection is opened again, and the next message arrives',
  async t => {
    const { refused, messages, received } = await listening(t)
    messages.length = 0
    const before = process.memoryUsage().rss
    for (let i = 0; i < 3; i++) {
      await raw.publish(`${server.prefix}${opened - 1}:used`, 'x'.repeat(8_000_000))
      await until('its return is reported', async () => refused.length === i + 1)
      await received(100 + i)
    }
    t.match(refused, [
      { record: 'message', fault: /larger than 1048576 bytes/ },
      { record: 'message' },
      { record: 'message' },
    ])
    t.ok(messages.includes('lost'), 'and subscribers learn that messages may be missing')
    const grown = (process.memoryUsage().rss - before) / 1e6
    t.ok(grown < 100, `${Math.round(grown)} MB more, what the test itself sent included`)
  },
)

if (!withoutOwnRedis) {
  const cluster = await startCluster(0)
  t.teardown(cluster.stop)
  const everywhere = new Cluster([cluster.url], { lazyConnect: true })
  await everywhere.connect()
  t.teardown(() => everywhere.disconnect())
  tamperedRecords(t, 'cluster', async observer => {
    const prefix = `tampered:${opened++}:`
    const options = { ...timeouts, mode: 'cluster' as const, url: cluster.url, prefix }
    return { store: await openRedisStore(options, { ...quiet, ...observer }), raw: everywhere, prefix }
  })
}
