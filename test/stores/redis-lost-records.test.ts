// Without it a record that a failover lost would stay lost after its key is stored or imported again.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hashOf } from '../../src/keys/key-form.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { runCommand } from '../support/process.ts'
import { testRedis } from '../support/redis-server.ts'
import { redisStores } from '../support/redis-store.ts'

const server = await testRedis(t)
const open = redisStores(server)

/** A store of its own with a key of a subscriber, and commands on it. */
const filled = async (t: Test) => {
  const opened = await open(t)
  const key = { ...sampleKey('key_1'), externalId: 'ours-1' }
  await opened.store.ensureSubscriber(sampleSubscriber)
  await opened.store.addKey(key)
  const command = (...args: string[]) =>
    runCommand(args, { ...server.env, ABOHAWA_REDIS__PREFIX: opened.prefix })
  /** Loses records by their names. */
  const lose = (...names: string[]) => opened.raw.del(...names.map(name => opened.prefix + name))
  return { ...opened, key, command, lose }
}

t.test('each record that is lost is there once its key and its subscriber are stored again', async t => {
  const { store, key, prefix, raw, names, lose } = await filled(t)
  const ofKeys = (await names()).filter(name => /^(?:key|subscriber|external)/.test(name))
  t.strictSame(ofKeys, [
    ...['external-id:ours-1', 'key-of:former-of-key_1', 'key-of:hash-of-key_1', 'key:key_1', 'keys'],
    ...['subscriber-name:Padma', 'subscriber:sub_a', 'subscribers'],
  ])
  for (const name of ofKeys) {
    const whole = await raw.dumpBuffer(prefix + name)
    await lose(name)
    t.strictSame(await store.ensureSubscriber(sampleSubscriber), sampleSubscriber, name)
    t.strictSame(await store.addKey(key), name === 'key:key_1' ? undefined : key, name)
    t.strictSame(await raw.dumpBuffer(prefix + name), whole, name)
  }
})

t.test('an external id leads to one key, also where a process ended before it was listed', async t => {
  const { store, key, prefix, raw, lose } = await filled(t)
  await raw.zrem(`${prefix}keys`, 'key_1')
  t.strictSame(await store.listKeys(), [])
  const second = { ...sampleKey('key_2'), externalId: 'ours-1' }
  t.strictSame(await store.addKey(second), key)
  t.strictSame(await store.listKeys(), [key])
  t.equal(await store.findKey('key_2'), undefined)
  await lose('key:key_1')
  t.equal(await store.findByExternalId('ours-1'), undefined)
  t.equal(await store.addKey(second), undefined, 'that of a key that was lost is free again')
  t.strictSame(await store.findByExternalId('ours-1'), second)
})

t.test('what is stored again overwrites nothing that has changed', async t => {
  const { store, key, lose } = await filled(t)
  await store.changeKey('key_1', { revokedAt: 5_000 })
  await store.setSubscriberRevoked('sub_a', 6_000)
  await lose('keys', 'subscribers')
  t.match(await store.ensureSubscriber(sampleSubscriber), { revokedAt: 6_000 })
  t.match(await store.addKey(key), { revokedAt: 5_000 })
  t.hasStrict(await store.addKey({ ...key, externalId: null }), { revokedAt: 5_000, externalId: 'ours-1' })
  t.hasStrict(await store.listKeys(), [{ id: 'key_1', revokedAt: 5_000 }])
  t.hasStrict(await store.listSubscribers(), [{ id: 'sub_a', revokedAt: 6_000 }])
})

t.test('a key of a lost subscriber is reported, and valid again with the next key of that name', async t => {
  const { store, refused, command, lose } = await filled(t)
  await lose('subscriber:sub_a')
  t.equal(await store.findByHash('hash-of-key_1'), undefined)
  t.strictSame(refused, [{ record: 'subscriber', name: 'sub_a', fault: 'it is missing' }])
  t.match(await command('keys', 'list', '--json'), { code: 0, stdout: /"status":"subscriber missing"/ })
  t.match(await command('keys', 'rotate', 'key_1'), {
    code: 1,
    stdout: '',
    stderr:
      /^abohawa: the record of subscriber sub_a is missing, so none of its keys is valid; restore it with `abohawa store import` of an earlier export \(store: .*\)\n$/,
  })
  const ofPadma = ['--subscriber', 'Padma', '--tier', 'free', '--json']
  const { code, stdout } = await command('keys', 'create', ...ofPadma)
  t.equal(code, 0)
  const subscriber = { id: 'sub_a', name: 'Padma', revokedAt: null }
  t.hasStrict(await store.findByHash(hashOf(JSON.parse(stdout).key)), { subscriber })
  t.hasStrict(await store.findByHash('hash-of-key_1'), { subscriber })
  t.hasStrict(await store.listSubscribers(), [subscriber])
  t.equal(refused.length, 1)

  await lose('key:key_1')
  t.equal(await store.findByHash('hash-of-key_1'), undefined)
  t.strictSame(refused[1], { record: 'key', name: 'key_1', fault: 'it is missing' })
})

t.test('a key created again by its external id has its lost subscriber again, and no other', async t => {
  const { store, command, lose } = await filled(t)
  const from = join(t.testdir({ 'keys.csv': '' }), 'keys.csv')
  const create = (name: string) => {
    writeFileSync(from, `subscriber,tier,external_id\n${name},free,ours-1\n`)
    return command('keys', 'create', '--from', from, '--json')
  }
  await lose('subscriber:sub_a')
  // A name that nobody has yet must not get the key of another one.
  const stderr = /external id "ours-1" belongs to key_1, a key of another subscriber/
  t.match(await create('Meghna'), { code: 1, stderr })
  t.equal(await store.findSubscriber('Meghna'), undefined)
  const { code, stdout } = await create('Padma')
  t.equal(code, 0)
  t.hasStrict(JSON.parse(stdout), [{ id: 'key_1', subscriber: 'Padma', existed: true }])
  t.hasStrict(await store.findByHash('hash-of-key_1'), { subscriber: { id: 'sub_a', name: 'Padma' } })
  await store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_b', name: 'Meghna' })
  t.match(await create('Meghna'), { stderr })
  // Of a name that is lost too nobody knows whose it was.
  await lose('subscriber:sub_a', 'subscriber-name:Padma')
  t.match(await create('Padma'), { code: 1, stderr })
})

t.test('an import writes what is lost again, and an export says what it leaves out', async t => {
  const { store, command, lose } = await filled(t)
  const folder = t.testdir()
  const file = join(folder, 'whole.ndjson')
  t.match(await command('store', 'export', '--file', file), { code: 0 })
  const whole = readFileSync(file, 'utf8')
  await store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_b', name: 'Meghna' })
  await store.addKey({ ...sampleKey('key_2'), subscriberId: 'sub_b' })
  await store.addKey({ ...sampleKey('key_3'), subscriberId: 'sub_b' })
  // The list alone: the record is there.
  await lose('subscriber:sub_a', 'key:key_3', 'subscribers')

  const part = join(folder, 'part.ndjson')
  t.match(await command('store', 'export', '--file', part), {
    code: 1,
    stdout: /: 1 subscriber, 1 key, 0 counts of a day/,
    stderr:
      'Left out: the store lists 3 keys and has the records of 2.\n' +
      'Left out: the record of subscriber sub_a of key key_1 is lost.\n' +
      'Import an earlier export into this store, which writes lost records again.\n',
  })
  const lines = readFileSync(part, 'utf8').trim().split('\n')
  t.strictSame(
    lines.map(line => JSON.parse(line)).map(({ record, id }) => `${record} ${id}`),
    ['subscriber sub_b', 'key key_2', 'end undefined'],
  )
  const path = join(folder, 'copy.db')
  const copied = await command('store', 'copy', '--to', path, '--json')
  t.equal(copied.code, 1)
  const leftOut = [/lists 3 keys/, /subscriber sub_a of key key_1 is lost/]
  t.match(JSON.parse(copied.stdout), { newKeys: 1, leftOut })

  const imported = await command('store', 'import', file, '--json')
  t.match(imported, { code: 0, stdout: /"newSubscribers":1,"newKeys":0/ })
  t.hasStrict(await store.findByHash('hash-of-key_1'), { subscriber: sampleSubscriber })

  await lose('key-of:hash-of-key_1', 'subscriber-name:Padma')
  t.match(await command('store', 'import', file), { code: 0 })
  t.hasStrict(await store.findByHash('hash-of-key_1'), { subscriber: sampleSubscriber })
  t.match(await store.findSubscriber('Padma'), sampleSubscriber)

  const other = join(folder, 'other.ndjson')
  writeFileSync(
    other,
    whole.replaceAll('sub_a', 'sub_c').replaceAll('key_1', 'key_9').replace('ours-1', 'ours-9'),
  )
  await lose('subscriber:sub_a')
  t.match(await command('store', 'import', other), {
    code: 1,
    stderr: /line 1 of .*: subscriber sub_c is named "Padma", which is the name of sub_a\n$/,
  })
})
