// Records of keys and subscribers that a failover lost, each for itself: what is stored again writes them again, also what only
// points at another record.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { hashOf } from '../../src/keys/key-form.ts'
import type { RefusedRecord } from '../../src/stores/records.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { runCommand } from '../support/process.ts'
import { testRedis } from '../support/redis-server.ts'

const { url, prefix: base } = await testRedis(t)
const raw = new Redis(url)
t.teardown(() => raw.quit())
let opened = 0

/** A store of its own with a key of a subscriber, and what it reports. */
const filled = async (t: Test) => {
  const prefix = `${base}${opened++}:`
  const refused: RefusedRecord[] = []
  const store = await openRedisStore(
    { url, prefix, connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 },
    { redisAway: () => {}, redisBack: () => {}, recordRefused: record => refused.push(record) },
  )
  t.teardown(() => store.close())
  const key = { ...sampleKey('key_1'), externalId: 'ours-1' }
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey(key)
  const command = (...args: string[]) =>
    runCommand(args, { ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__PREFIX: prefix })
  return { store, key, prefix, refused, command }
}

t.test(
  'each record that is lost is there again once its key and its subscriber are stored again',
  async t => {
    const { store, key, prefix } = await filled(t)
    const names = (await raw.keys(`${prefix}*`)).map(name => name.slice(prefix.length)).sort()
    const ofKeys = names.filter(name => /^(?:key|subscriber|external)/.test(name))
    t.strictSame(ofKeys, [
      'external-id:ours-1',
      'key-of:former-of-key_1',
      'key-of:hash-of-key_1',
      'key:key_1',
      'keys',
      'subscriber-name:Padma',
      'subscriber:sub_a',
      'subscribers',
    ])
    for (const name of ofKeys) {
      const whole = await raw.dumpBuffer(prefix + name)
      await raw.del(prefix + name)
      t.strictSame(await store.ensureSubscriber(sampleSubscriber), sampleSubscriber, name)
      t.strictSame(await store.addKey(key), name === 'key:key_1' ? undefined : key, name)
      t.strictSame(await raw.dumpBuffer(prefix + name), whole, name)
    }
  },
)

t.test('what is stored again overwrites nothing that has changed', async t => {
  const { store, key, prefix } = await filled(t)
  await store.changeKey('key_1', { revokedAt: 5_000 })
  await store.setSubscriberRevoked('sub_a', 6_000)
  await raw.del(`${prefix}keys`, `${prefix}subscribers`)
  t.match(await store.ensureSubscriber(sampleSubscriber), { revokedAt: 6_000 })
  t.match(await store.addKey(key), { revokedAt: 5_000 })
  t.match(await store.addKey({ ...key, externalId: null }), { revokedAt: 5_000, externalId: 'ours-1' })
  t.match(await store.listKeys(), [{ id: 'key_1', revokedAt: 5_000 }])
  t.match(await store.listSubscribers(), [{ id: 'sub_a', revokedAt: 6_000 }])
})

t.test(
  'a key of a subscriber that is lost is reported, and valid again with the next key of that name',
  async t => {
    const { store, prefix, refused, command } = await filled(t)
    await raw.del(`${prefix}subscriber:sub_a`)
    t.equal(await store.findByHash('hash-of-key_1'), undefined)
    t.strictSame(refused, [{ record: 'subscriber', name: 'sub_a', fault: 'it is missing' }])
    t.match(await command('keys', 'list', '--json'), { code: 0, stdout: /"status":"subscriber missing"/ })
    t.match(await command('keys', 'rotate', 'key_1'), {
      code: 1,
      stdout: '',
      stderr:
        /^abohawa: the record of subscriber sub_a is missing, so that no key of it is valid; `abohawa store import` of an earlier export writes it again \(store: .*\)\n$/,
    })
    const { code, stdout } = await command(
      'keys',
      'create',
      '--subscriber',
      'Padma',
      '--tier',
      'free',
      '--json',
    )
    t.equal(code, 0)
    t.match(await store.findByHash(hashOf(JSON.parse(stdout).key)), {
      subscriber: { id: 'sub_a', name: 'Padma' },
    })
    t.match(await store.findByHash('hash-of-key_1'), { subscriber: { id: 'sub_a', revokedAt: null } })
    t.match(await store.listSubscribers(), [{ id: 'sub_a', name: 'Padma' }])
    t.equal(refused.length, 1)

    await raw.del(`${prefix}key:key_1`)
    t.equal(await store.findByHash('hash-of-key_1'), undefined)
    t.strictSame(refused[1], { record: 'key', name: 'key_1', fault: 'it is missing' })
  },
)

t.test(
  'a key that is created again by its external id has its lost subscriber again, and no other',
  async t => {
    const { store, prefix, command } = await filled(t)
    const from = join(t.testdir({ 'keys.csv': '' }), 'keys.csv')
    const create = (name: string) => {
      writeFileSync(from, `subscriber,tier,external_id\n${name},free,ours-1\n`)
      return command('keys', 'create', '--from', from, '--json')
    }
    await raw.del(`${prefix}subscriber:sub_a`)
    // A name that nobody has yet must not get the key of another one.
    t.match(await create('Meghna'), {
      code: 1,
      stderr: /external id "ours-1" is that of key_1, a key of another/,
    })
    t.equal(await store.findSubscriber('Meghna'), undefined)
    const { code, stdout } = await create('Padma')
    t.equal(code, 0)
    t.match(JSON.parse(stdout), [{ id: 'key_1', subscriber: 'Padma', existed: true }])
    t.match(await store.findByHash('hash-of-key_1'), { subscriber: { id: 'sub_a', name: 'Padma' } })
    await store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_b', name: 'Meghna' })
    t.match(await create('Meghna'), { stderr: /a key of another subscriber/ })
    // Of a name that is lost too nobody knows whose it was.
    await raw.del(`${prefix}subscriber:sub_a`, `${prefix}subscriber-name:Padma`)
    t.match(await create('Padma'), { code: 1, stderr: /a key of another subscriber/ })
  },
)

t.test('an import writes what is lost again, and an export says what it leaves out', async t => {
  const { store, prefix, command } = await filled(t)
  const folder = t.testdir()
  const file = join(folder, 'whole.ndjson')
  t.match(await command('store', 'export', '--file', file), { code: 0 })
  const whole = readFileSync(file, 'utf8')
  await store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_b', name: 'Meghna' })
  await store.addKey({ ...sampleKey('key_2'), subscriberId: 'sub_b' })
  await store.addKey({ ...sampleKey('key_3'), subscriberId: 'sub_b' })
  // The list alone: the record is there.
  await raw.del(`${prefix}subscriber:sub_a`, `${prefix}key:key_3`, `${prefix}subscribers`)

  const part = join(folder, 'part.ndjson')
  t.match(await command('store', 'export', '--file', part), {
    code: 1,
    stdout: /: 1 subscriber, 1 key, 0 counts of a day/,
    stderr:
      'Left out: the store lists 3 keys and has the records of 2.\n' +
      'Left out: key key_1 is of subscriber sub_a, whose record is lost.\n' +
      'Import an earlier export into this store, which writes lost records again.\n',
  })
  t.strictSame(
    readFileSync(part, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
      .map(({ record, id }) => [record, id]),
    [
      ['subscriber', 'sub_b'],
      ['key', 'key_2'],
      ['end', undefined],
    ],
  )
  const path = join(folder, 'copy.db')
  const copied = await command('store', 'copy', '--to', path, '--json')
  t.equal(copied.code, 1)
  t.match(JSON.parse(copied.stdout), {
    newKeys: 1,
    leftOut: [/lists 3 keys/, /key_1 is of subscriber sub_a/],
  })

  t.match(await command('store', 'import', file, '--json'), {
    code: 0,
    stdout: /"newSubscribers":1,"newKeys":0/,
  })
  t.match(await store.findByHash('hash-of-key_1'), { subscriber: sampleSubscriber })

  await raw.del(`${prefix}key-of:hash-of-key_1`, `${prefix}subscriber-name:Padma`)
  t.match(await command('store', 'import', file), { code: 0 })
  t.match(await store.findByHash('hash-of-key_1'), { subscriber: sampleSubscriber })
  t.match(await store.findSubscriber('Padma'), sampleSubscriber)

  const other = join(folder, 'other.ndjson')
  writeFileSync(
    other,
    whole.replaceAll('sub_a', 'sub_c').replaceAll('key_1', 'key_9').replace('ours-1', 'ours-9'),
  )
  await raw.del(`${prefix}subscriber:sub_a`)
  t.match(await command('store', 'import', other), {
    code: 1,
    stderr: /line 1 of .*: subscriber sub_c is named "Padma", which is the name of sub_a\n$/,
  })
})
