// Without it gateways of two versions could use different names in one Redis, and so count each key twice.

import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { redisKeyNames, usagePartitionOf } from '../../src/stores/redis/key-names.ts'
import type { Store } from '../../src/stores/store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { testRedis } from '../support/redis-server.ts'
import { redisStores } from '../support/redis-store.ts'
import { until } from '../support/until.ts'
import { spendingStep, spendingWindow } from './spending.ts'
import { aDetail, anEntry, batchOf, heartbeatOf } from './usage-instance.ts'

const open = redisStores(await testRedis(t))
const later = Date.now() + 3_600_000
// Of partition 0, which is the only one of a single server.
const keyId = 'key_9hK2mPq4XyZa'

/** Runs every operation of the store that names a key, and each script at least once. */
const useAll = async (store: Store): Promise<void> => {
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey({ ...sampleKey(keyId), hash: 'h1', externalId: 'ours-1', previousHashes: [] })
  await store.replaceHash(keyId, 'h2', later)
  await store.changeKey(keyId, { limit: 7 })
  await store.findByHash('h2')
  await store.listKeys()
  await store.listSubscribers()
  await store.commit(batchOf('one', 1, [{ ...anEntry, keyId }]))
  await store.raiseUsed(keyId, '2126-11-20', 5, later)
  await store.usedOn(keyId, ['2126-11-20', '2126-11-21'])
  await store.addDetail([{ ...aDetail, keyId }])
  await store.detailOn(keyId, '2126-11-21')
  await store.acquireLease('q:23.8,90.4', 'one', 1_000)
  await store.renewLease('q:23.8,90.4', 'one', 1_000)
  await store.writeBytes('q:23.8,90.4', Buffer.from('x'), later, 'one')
  await store.releaseLease('q:23.8,90.4', 'one', '{}')
  await store.readBytes('q:23.8,90.4')
  await store.deleteBytes(['q:0,0'])
  await store.heartbeat(heartbeatOf('one', { requested: ['23.8,90.4'] }))
  await store.wanted('q', 0)
  await store.aliveInstances(60_000)
  await store.appendChangeRecord('purges', 'x', later)
  await store.changeRecordsAfter('purges', 0)
  const windows = [spendingWindow({ name: 'minute:1', limit: 9_000, keepUntil: later })]
  await store.spend(spendingStep({ provider: 'acc1', windows, wanted: 3_000, now: Date.now() }))
  await store.reopen('acc1', Date.now())
}

t.test('every key of the store has the name that gateways of every version know', async t => {
  const { store, names } = await open(t)
  await useAll(store)
  const expected = [
    ...['bytes:{q:23.8,90.4}', 'external-id:ours-1', 'flight:{q:23.8,90.4}', 'format', 'instance:one'],
    ...['instances', 'key-of:h1', 'key-of:h2', `key:${keyId}`, 'keys', 'notices:purges'],
    ...['quota:{q0}:2126-11-20', 'quota:{q0}:2126-11-21', 'settings', 'spending:{acc1}:closure'],
    ...['spending:{acc1}:minute:1', 'subscriber-name:Padma', 'subscriber:sub_a', 'subscribers'],
    ...['usage-detail:{q0}:2126-11-21', 'used:{q0}:2126-11', 'wanted:q'],
  ]
  t.strictSame(await names(), expected.sort())
})

t.test('a script touches the keys it declares and no other, and they lie in one slot', async t => {
  const { prefix, store, raw } = await open(t)
  const monitor = await raw.monitor()
  t.teardown(() => monitor.disconnect())
  const seen: { source: string; args: string[] }[] = []
  monitor.on('monitor', (_time: string, args: string[], source: string) => seen.push({ source, args }))
  await useAll(store)
  await raw.get(`${prefix}end`)
  await until('the end is seen', async () => seen.some(({ args }) => args[1] === `${prefix}end`))

  let declared: string[] = []
  const touched = new Set<string>()
  const published: string[] = []
  for (const { source, args } of seen) {
    const [command = '', ...rest] = args
    if (/^evalsha|^eval$/i.test(command)) {
      declared = rest.slice(2, 2 + Number(rest[1]))
      t.ok(declared.length > 0, 'a script declares keys')
      const tags = new Set(declared.map(name => /\{(.+?)\}/.exec(name)?.[1] ?? name))
      t.equal(tags.size, 1, `one slot has ${declared.join(' and ')}`)
    } else if (source === 'lua' && /^publish$/i.test(command)) {
      published.push(rest.join(' ').slice(prefix.length))
    } else if (source === 'lua' && !/^time$/i.test(command)) {
      touched.add(rest[0] ?? '')
      t.ok(declared.includes(rest[0] ?? ''), `${command} ${rest[0]} is of a declared key`)
    }
  }
  t.equal(touched.size, 15, [...touched].join(', '))
  t.strictSame(published, [`used ${keyId} 2126-11-21 1`])
})

t.test('names keep their format, whatever they contain, and partitions their keys', async t => {
  const names = redisKeyNames('abohawa:')
  t.equal(names.subscriberOfName('ঢাকা: {Dhaka} Tribune'), 'abohawa:subscriber-name:ঢাকা: {Dhaka} Tribune')
  t.equal(names.dayUsage(3, '2126-11-21'), 'abohawa:quota:{q3}:2126-11-21')
  t.equal(names.monthUsage(2, '2126-11'), 'abohawa:used:{q2}:2126-11')
  t.equal(names.usageDetail(1, '2126-11-21'), 'abohawa:usage-detail:{q1}:2126-11-21')
  t.strictSame(['key_9hK2mPq4XyZa', 'key_4', 'key_1', 'key_5'].map(usagePartitionOf), [0, 1, 2, 3])
})

t.test('no other file of the store knows the prefix, and no script makes a name of others', async t => {
  const files = globSync('src/stores/redis/*.ts').filter(file => !file.endsWith('/key-names.ts'))
  t.ok(files.length > 10, `${files.length} files were looked at`)
  for (const file of files) {
    const text = readFileSync(file, 'utf8')
    const calls = text.match(/redisKeyNames\(/g)?.length ?? 0
    t.equal(calls, file === 'src/stores/redis/redis-store.ts' ? 1 : 0, `${file} makes names`)
    t.equal(text.match(/\.prefix\b/g)?.length ?? 0, calls, `${file} reads the prefix`)
    t.notMatch(text, /KEYS\[[^\]]+\] *\.\.|\.\. *KEYS\[|(?:sub|find|match|byte)\((?:KEYS|live|record),/, file)
  }
})
