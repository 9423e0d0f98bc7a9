// Without it two processes on one file could count a unit twice, and the file would grow without end.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/common/clock.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { spendingStep, spendingWindow, usedIn } from './spending.ts'
import { storeContract } from './store-contract.ts'
import { aDetail, anEntry, batchOf, heartbeatOf, instanceOn } from './usage-instance.ts'

storeContract(t, 'embedded', async t => openEmbeddedStore(join(t.testdir(), 'store.db'), systemClock))

/** A store on a file of the test, with that file beside it. */
const setUp = (t: Test, clock: Clock = systemClock, observer = {}) => {
  const path = join(t.testdir(), 'store.db')
  const store = openEmbeddedStore(path, clock, observer)
  const beside = new DatabaseSync(path)
  t.teardown(async () => {
    beside.close()
    await store.close()
  })
  return { path, store, beside }
}

t.test('two openings of one file see each other and never count a unit twice', async t => {
  const { path, store } = setUp(t)
  const stores = [store, openEmbeddedStore(path, systemClock)]
  t.teardown(() => stores[1]?.close())
  const commits = stores.map((store, at) => instanceOn(store, `of ${at}`))
  const admitted = [0, 0]
  for (let i = 0; i < 25; i++)
    for (const [at, commit] of commits.entries())
      admitted[at] = (admitted[at] ?? 0) + ((await commit({ limit: 30 }))[0]?.granted ?? 0)
  t.strictSame(admitted, [15, 15])
  const windows = [spendingWindow({ name: 'minute:1', limit: 100_000, keepUntil: Date.now() + 1e9 })]
  const spend = spendingStep({ provider: 'acc1', windows, wanted: 3_000, now: Date.now() })
  const grants = await Promise.all(Array.from({ length: 50 }, (_, i) => stores[i % 2]?.spend(spend)))
  t.equal(grants.filter(grant => grant?.granted === 3_000).length, 33)

  const beat = async (i: number, now: number) =>
    (await stores[i]?.heartbeat(heartbeatOf(`instance-${i}`, { aliveForMs: 1_000, now })))?.instances
  t.equal(await beat(0, 10_000), 1)
  t.equal(await beat(1, 10_500), 2)
  t.equal(await beat(0, 10_900), 2)
  t.equal(await beat(0, 11_600), 1, 'one that is silent counts no more')
  t.equal(await beat(1, 11_700), 2)
  await stores[0]?.leave('instance-0')
  t.equal(await beat(1, 11_800), 1, 'nor one that has ended')
})

t.test('a clock that is set back takes no demand and no process away, and lets them end in time', async t => {
  const clock = manualClock()
  const refused: unknown[] = []
  const { store } = setUp(t, clock, { recordRefused: (record: unknown) => refused.push(record) })
  const beat = (instance: string, ...requested: string[]) =>
    store.heartbeat(heartbeatOf(instance, { requested, aliveForMs: 20_000, now: clock.now() }))
  await beat('one', 'a', 'b')
  await beat('two')
  for (const [afterMs, instances, wanted] of [
    [-6 * 3_600_000, 2, 2],
    [30_000, 1, 2],
    [30_000, 1, 0],
  ] as const) {
    clock.advance(afterMs)
    t.strictSame(await beat('one'), { instances, variants: 1, wanted })
    t.equal((await store.wanted('q', 0)).length, wanted)
  }
  t.strictSame(refused, [])
})

t.test('a heartbeat with very many names leaves turns to requests', async t => {
  const { store, beside } = setUp(t)
  const rows = () =>
    Number(beside.prepare("SELECT count(*) AS rows FROM wanted WHERE topic = 'q'").get()?.rows)
  const requested = Array.from({ length: 9_000 }, (_, i) => `cell_${i}`)
  const seen = new Set<number>()
  let isSent = false
  const sent = store.heartbeat(heartbeatOf('one', { requested })).finally(() => {
    isSent = true
  })
  const look = () => seen.add(rows()) && isSent
  await until('all are written', look, { everyMs: 0 })
  t.match(await sent, { instances: 1, wanted: 9_000 })
  t.strictSame([...seen.add(rows())], [2_000, 4_000, 6_000, 8_000, 9_000])
  t.match(await store.heartbeat(heartbeatOf('one', { requested: requested.slice(0, 2_000) })), {
    wanted: 9_000,
  })
})

t.test('expired records are swept from the file', async t => {
  const path = join(t.testdir(), 'store.db')
  const clock = manualClock('2126-11-21T00:00Z')
  const store = openEmbeddedStore(path, clock)
  await store.writeBytes('cell', Buffer.from('x'), clock.now() + 1_000)
  const entry = { ...anEntry, keyId: 'k', limit: 9 }
  await store.commit(batchOf('one', 1, [{ ...entry, keepUntil: clock.now() + 1_000 }]))
  await store.close()
  clock.advance(2_000)
  const again = openEmbeddedStore(path, clock)
  t.strictSame(await again.usedOn('k', ['2126-11-21']), [1], 'opening takes no walk over all counts')
  await again.dropDays({ countsBefore: '2126-11-21', sumsBefore: '2126-11-21' })
  t.strictSame(await again.usedOn('k', ['2126-11-21']), [0])
  clock.set('2126-11-21T00:00Z')
  t.equal(await again.readBytes('cell'), undefined, 'gone, and not only hidden by its expiry')
  await again.close()
})

t.test('counts are swept in parts, and requests pass in between', async t => {
  const clock = manualClock('2126-11-21T00:00Z')
  const { store, beside } = setUp(t, clock)
  // Of each key one count that is over and one that is kept.
  beside.exec(`WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i < 4999)
    INSERT INTO usage SELECT printf('key_%05d', i), day, 1, keep FROM k,
      (SELECT '2126-11-19' AS day, ${clock.now()} AS keep UNION ALL SELECT '2126-11-20', ${clock.now() + 1})`)
  const rows = () => Number(beside.prepare('SELECT count(*) AS rows FROM usage').get()?.rows)
  const swept = store.dropDays({ countsBefore: '2126-11-21', sumsBefore: '2126-11-21' })
  const seen = new Set([rows()])
  let isSwept = false
  void swept.then(() => {
    isSwept = true
  })
  await until('all is swept', async () => {
    seen.add(rows())
    return isSwept
  })
  t.equal(rows(), 5_000)
  t.ok(seen.size >= 3, `${[...seen].join(', ')} rows on the way`)
  t.strictSame(await store.usedOn('key_04999', ['2126-11-19', '2126-11-20']), [0, 1])
})

t.test('responses by endpoint are swept some at a time, and faster than they can come', async t => {
  const clock = manualClock('2126-11-21T00:00Z')
  const { store, beside } = setUp(t, clock)
  // The rows of a day expire at one instant.
  beside.exec(`WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i < 4999)
    INSERT INTO usage_detail SELECT printf('key_%05d', i), '2126-11-18', 'weather', '2xx', 1, ${clock.now()} FROM k`)
  const ended = beside.prepare('SELECT count(*) AS rows FROM usage_detail WHERE keep_until <= ?')
  const expired = () => Number(ended.get(clock.now())?.rows)
  const left: number[] = []
  for (let write = 0; write < 6; write++) {
    await store.addDetail([{ ...aDetail, keyId: `key_${write}`, keepUntil: clock.now() + 1 }])
    left.push(expired())
  }
  t.strictSame(left, [4_000, 3_000, 2_000, 1_000, 0, 0])
  t.equal((await store.detailOn('key_0', '2126-11-21')).length, 1)
})

t.test(
  'entries that expire together are swept some at a time, and faster than others are written',
  async t => {
    const clock = manualClock('2126-11-21T00:00Z')
    const { path, store, beside } = setUp(t, clock)
    beside.exec(`WITH RECURSIVE k(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i < 2999)
    INSERT INTO bytes SELECT printf('cell_%05d', i), x'00', ${clock.now()} FROM k`)
    const ended = beside.prepare('SELECT count(*) AS rows FROM bytes WHERE expires_at <= ?')
    const expired = () => Number(ended.get(clock.now())?.rows)
    const left: number[] = []
    for (let write = 1; write <= 1_000; write++) {
      await store.writeBytes(`new_${write}`, Buffer.from('x'), clock.now() + 1_000)
      if (write % 500 === 0) left.push(expired())
    }
    t.strictSame(left, [2_000, 1_000])
    t.equal(String(await store.readBytes('new_1')), 'x')
    await openEmbeddedStore(path, clock).close()
    t.equal(expired(), 0, 'all of them when the store is opened')
  },
)

t.test('a removal that fails half-way removes nothing, and the store goes on', async t => {
  const { store, beside } = setUp(t)
  for (const key of ['first', 'second'])
    await store.writeBytes(key, Buffer.from(key), systemClock.now() + 60_000)
  // FAIL, other than ABORT, leaves the rollback to the caller.
  beside.exec(`CREATE TRIGGER stuck BEFORE DELETE ON bytes WHEN old.key = 'second'
    BEGIN SELECT RAISE(FAIL, 'stuck'); END`)
  await t.rejects(store.deleteBytes(['first', 'second']), { name: 'StoreError', message: /stuck/ })
  t.equal(String(await store.readBytes('first')), 'first')
  beside.exec('DROP TRIGGER stuck')
  t.equal(await store.deleteBytes(['first', 'second']), 2)
})

t.test('windows that are over are swept from the file', async t => {
  const clock = manualClock('2126-11-21T00:00Z')
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const reserveIn = (name: string) => {
    const windows = [spendingWindow({ name, limit: 9_000, keepUntil: clock.now() + 1_000 })]
    return store.spend(spendingStep({ provider: 'acc1', windows, wanted: 3_000, now: clock.now() }))
  }
  await reserveIn('minute:1')
  clock.advance(1_000)
  await reserveIn('minute:2')
  t.strictSame(await usedIn(store, 'acc1', ['minute:1', 'minute:2'], clock.now()), [0, 3_000])
})

t.test('the write-ahead log does not grow with every count', async t => {
  const { path, store } = setUp(t)
  const commit = instanceOn(store, 'one')
  for (let i = 0; i < 20_000; i++) await commit({ limit: 1e9 })
  const { size } = statSync(`${path}-wal`)
  t.ok(size < 20e6, `${size} bytes after 20,000 counts`)
})

t.test('a path that can hold no store is a sentence, and a missing folder of it is made', async t => {
  const folder = t.testdir({
    'no-store.db': 'this is not a database, and long enough to be looked at as one'.repeat(20),
    'folder.db': {},
  })
  await openEmbeddedStore(join(folder, 'data', 'store.db'), systemClock).close()
  const paths = ['a/b/store.db', 'no-store.db', 'folder.db'].map(name => join(folder, name))
  for (const path of [...paths, '/proc/nowhere/store.db', '/proc/store.db'])
    t.throws(() => openEmbeddedStore(path, systemClock), {
      name: 'InputError',
      message: `store.path is ${path}, `,
    })
  t.throws(() => openEmbeddedStore(join(folder, 'no-store.db'), systemClock), {
    message: /, which can't be opened and written as an SQLite file: /,
  })
  t.notOk(existsSync(join(folder, 'a')))
})

t.test('a log keeps its last thousand change records, and takes none of another’s', async t => {
  const { store, beside } = setUp(t)
  const later = Date.now() + 60_000
  await store.appendChangeRecord('keys', 'kept', later)
  for (let i = 0; i < 1_003; i++) await store.appendChangeRecord('purges', `${i}`, later)
  const rows = beside.prepare(`SELECT topic, count(*) AS count FROM notices GROUP BY topic`)
  t.hasStrict(rows.all(), [
    { topic: 'keys', count: 1 },
    { topic: 'purges', count: 1_000 },
  ])
  const number = await store.appendChangeRecord('purges', 'above', later, 9_000)
  t.equal(number, 9_001, 'above the numbers of a log that was lost')
  t.equal(await store.appendChangeRecord('purges', 'after', later), 9_002)
})
