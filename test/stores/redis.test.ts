// Without it records in Redis would never expire, and a lost log could repeat the numbers of its records.

import t from 'tap'
import { testRedis } from '../support/redis-server.ts'
import { redisStores } from '../support/redis-store.ts'
import { closeIn, spendingStep, spendingWindow } from './spending.ts'
import { storeContract } from './store-contract.ts'
import { aDetail, anEntry, batchOf, heartbeatOf, instanceOn } from './usage-instance.ts'

const server = await testRedis(t)
const open = redisStores(server)

storeContract(t, 'redis', async t => (await open(t)).store)

t.test('every count and every cached byte carries an expiry and the prefix', async t => {
  const { store, prefix, raw } = await open(t)
  const hour = 3_600_000
  const inAnHour = Date.now() + hour
  const commit = instanceOn(store, 'one')
  for (let i = 0; i < 2; i++) await commit({ limit: 9, keepUntil: inAnHour })
  await store.writeBytes('23.8,90.4', Buffer.from('x'), inAnHour)
  await store.acquireLease('23.9,90.4', 'one', 60_000)
  await store.writeBytes('23.9,90.4', Buffer.from('x'), inAnHour, 'one')
  await store.appendChangeRecord('purges', 'x', inAnHour)
  await store.heartbeat(
    heartbeatOf('one', { aliveForMs: hour / 2, wantedForMs: hour / 2, requested: ['23.8,90.4'] }),
  )
  await store.addDetail([{ ...aDetail, keepUntil: inAnHour }])
  // The number of the format stays.
  const keys = (await raw.keys(`${prefix}*`)).filter(key => key !== `${prefix}format`)
  t.equal(keys.length, 11, keys.join(', '))
  // Usage is dropped by gateways before these expiries: the counts of a day, the sums of a month, and the detail of a day.
  const later: [part: string, ms: number][] = [
    [':quota:', 17 * hour],
    [':used:', 38 * 24 * hour],
    [':usage-detail:', 24 * hour],
    [':flight:', 60_000 - hour],
  ]
  for (const key of keys) {
    const left = (await raw.pttl(key)) - (later.find(([part]) => key.includes(part))?.[1] ?? 0)
    t.ok(left > hour - 100_000 && left <= hour, `${key} expires in ${left} ms`)
  }
  const today = new Date().toISOString().slice(0, 10)
  await store.raiseUsed('key_2', today, 5, inAnHour)
  const raised = (await raw.keys(`${prefix}*{q0}*`)).filter(key => key.includes(today))
  t.equal(raised.length, 1, raised.join(', '))
  for (const key of raised) t.ok((await raw.pttl(key)) > 3_500_000, `${key} expires`)
})

t.test('all spending records expire, and share the slot of their provider', async t => {
  const { store, prefix, raw } = await open(t)
  const keepUntil = Date.now() + 3_600_000
  const names = ['minute:1', 'minute:2', 'hour:1', 'day:1']
  const windows = names.map(name => spendingWindow({ name, limit: 9_000, keepUntil }))
  const claims = [{ consumer: 'key_1', wanted: 3_000 }]
  const now = Date.now()
  await store.spend(spendingStep({ provider: 'acc1', windows, claims, now }))
  await store.reopen('acc1', now)
  await closeIn(store, 'acc1', { until: now + 60_000, at: now, reason: 'x' }, null)
  const keys = await raw.keys(`${prefix}*`)
  t.strictSame(keys.sort(), [...names, 'closure'].map(name => `${prefix}spending:{acc1}:${name}`).sort())
  for (const key of keys) {
    const left = await raw.pttl(key)
    // A reopening is remembered for longer than a closure from before it can last.
    const most = key.endsWith('closure') ? 50 * 3_600_000 : 3_600_000
    t.ok(left > most - 100_000 && left <= most, `${key} expires in ${left} ms`)
  }
  const refused = spendingStep({ provider: 'acc2', windows, wanted: 2_000, now })
  t.equal((await store.spend(refused)).granted, 0)
  t.equal((await raw.keys(`${prefix}*`)).length, 5, 'a refusal leaves no counter behind')
  const soon = Date.now() + 1_000
  await store.commit(batchOf('one', 1, [{ ...anEntry, limit: 0, endsAt: soon, keepUntil: soon }]))
  t.equal((await raw.keys(`${prefix}*`)).length, 5, 'nor does that of a batch')
})

t.test('days that are over are dropped, with the sums of months and the detail nobody reads', async t => {
  const { store, prefix, raw, names } = await open(t)
  const keepUntil = Date.now() + 1e9
  // Years ago, so that no count of these days is live whenever the test runs.
  const days = ['2020-08-31', '2020-09-30', '2020-10-01', '2020-11-19', '2020-11-20', '2020-11-21']
  for (const day of days) await store.raiseUsed('key_1', day, 5, keepUntil)
  for (const day of ['2020-11-19', '2020-11-20']) await raw.hset(`${prefix}quota:{q0}:${day}`, 'key_1', '5')
  const addDetail = (day: string) => store.addDetail([{ ...aDetail, day, keepUntil }])
  for (const day of days.slice(3)) await addDetail(day)
  await store.dropDays({ countsBefore: '2020-11-20', sumsBefore: '2020-10-22' })
  const isDetail = (name: string) => name.startsWith('usage-detail')
  t.strictSame(
    (await names()).filter(name => !isDetail(name)),
    ['quota:{q0}:2020-11-20', 'used:{q0}:2020-10', 'used:{q0}:2020-11'],
  )
  t.strictSame(await store.usedOn('key_1', days), [0, 0, 5, 5, 5, 5])
  await addDetail('2020-11-22')
  await store.dropDays({ countsBefore: '2020-11-22', sumsBefore: '2020-10-22' })
  const left = (await names()).filter(isDetail).map(name => name.slice(-2))
  t.strictSame(left, ['20', '21', '22'])
})

t.test('the detail of a thousand keys is a command for each 100, and each key has its own', async t => {
  const { store, raw } = await open(t)
  const { day } = aDetail
  const entries = Array.from({ length: 1_000 }, (_, i) =>
    ['2xx', '4xx'].map((statusClass, at) => ({
      ...aDetail,
      keyId: `key_${i}`,
      statusClass,
      count: i + at + 1,
    })),
  ).flat()
  const calls = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await raw.info('commandstats'))?.[1] ?? 0)
  await store.addDetail(entries.slice(0, 2))
  const before = await calls()
  await store.addDetail(entries)
  const called = (await calls()) - before
  t.ok(called >= 5 && called <= 12, `${called} calls, with what other tests of this server do meanwhile`)
  t.strictSame(await store.detailOn('key_999', day), [
    { endpoint: 'weather', statusClass: '2xx', count: 1_000 },
    { endpoint: 'weather', statusClass: '4xx', count: 1_001 },
  ])
  t.match(await store.detailOn('key_0', day), [{ count: 2 }, { count: 4 }])
})

t.test('a count with more instances than it has room for stays exact', async t => {
  const { store } = await open(t)
  const limit = 5_000
  const commits = Array.from({ length: 900 }, (_, i) => instanceOn(store, `instance${10_000 + i}`))
  for (const commit of commits) await commit({ units: 2, limit })
  for (const commit of commits) await commit({ units: 1, limit })
  t.strictSame(await store.usedOn(anEntry.keyId, [anEntry.day]), [2_700])
  // The units of the last one to write stand at the end, where a value that is read in part is cut.
  for (const units of [1_234, 1]) await commits[450]?.({ units, limit })
  t.strictSame(await store.usedOn(anEntry.keyId, [anEntry.day]), [3_935])
})

t.test('a log of change records that was lost, or lacks its end, never repeats a number', async t => {
  const { store, prefix, raw } = await open(t)
  const later = Date.now() + 60_000
  const seen = await store.appendChangeRecord('keys', 'one', later)
  await raw.del(`${prefix}notices:keys`)
  t.strictSame(await store.changeRecordsAfter('keys', seen), { records: [], complete: false })
  // The store's time has advanced by a millisecond, as in any real loss.
  for (let time = seen; time <= seen; ) {
    const [seconds, micros] = await raw.time()
    time = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
  }
  const next = await store.appendChangeRecord('keys', 'two', later)
  t.ok(next > seen)
  const records = [{ number: next, text: 'two' }]
  t.strictSame(await store.changeRecordsAfter('keys', seen), { records, complete: false })
})

t.test('a heartbeat tells how many different settings the instances alive run with', async t => {
  const { store, prefix, raw } = await open(t)
  const beat = async (instance: string, settings: string | null) => {
    // Their machines are two days apart.
    const now = Date.now() + (instance === 'two' ? 1 : -1) * 86_400_000
    const alive = heartbeatOf(instance, { settings, aliveForMs: 20_000, now })
    const { instances, variants } = await store.heartbeat(alive)
    return [instances, variants]
  }
  t.strictSame(await beat('one', 'a'), [1, 1])
  t.strictSame(await beat('two', 'a'), [2, 1])
  t.strictSame(await beat('two', 'b'), [2, 2], 'the second runs others from now on')
  t.strictSame(await beat('one', 'b'), [2, 1], 'the former ones are forgotten with the change')
  for (const settings of ['c', 'd', 'e']) {
    t.strictSame(await beat('one', settings), [2, 2], 'one instance is ahead')
    t.strictSame(await beat('two', settings), [2, 1], 'and the other follows')
  }
  t.strictSame(await beat('two', 'f'), [2, 2])
  t.strictSame(await beat('two', null), [2, 1], 'those of an instance that stops are gone')
  t.hasStrict((await store.aliveInstances(20_000)).map(({ id }) => id).sort(), ['one', 'two'])
  // In place of waiting.
  await raw.zincrby(`${prefix}instances`, -20_001, 'two')
  t.hasStrict(await store.aliveInstances(20_000), [{ id: 'one', report: '{}' }])
  t.strictSame(await beat('one', 'e'), [1, 1])
})
