// Without it one damaged row or page of the file could fail every key or crash the gateway.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import type { RefusedRecord } from '../../src/stores/records.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { costsOneKey } from './damaged-key.ts'
import { spendingStep, spendingWindow, usedIn } from './spending.ts'
import { aDetail, anEntry, batchOf, heartbeatOf, instanceOn } from './usage-instance.ts'

const noCounts = ['-1', '-9223372036854775808', '9223372036854775807', '1000000000000000']
const { day, keepUntil } = anEntry
const now = Date.now()

const setUp = (t: Test) => {
  const path = join(t.testdir(), 'store.db')
  const refused: RefusedRecord[] = []
  const open = () => openEmbeddedStore(path, systemClock, { recordRefused: record => refused.push(record) })
  const store = open()
  const beside = new DatabaseSync(path)
  t.teardown(async () => {
    await store.close()
    beside.close()
  })
  return { path, store, open, beside, refused }
}

t.test('a count that is none affects its own key alone, and begins again at the admitted units', async t => {
  const { store, open, beside, refused } = setUp(t)
  const batch = (units: number) => ['a', 'bad', 'z'].map(keyId => ({ keyId, units, limit: 100 }))
  const [one, two] = [instanceOn(store, 'one'), instanceOn(store, 'two')]
  await one(...batch(30))
  await two(...batch(20))
  for (const [i, text] of noCounts.entries()) {
    const used = 50 + i
    const spoil = () => beside.exec(`UPDATE usage SET used = ${text} WHERE key_id = 'bad'`)
    spoil()
    t.strictSame(await store.usedOn('bad', [day]), [used], text)
    const grant = { granted: 1, used: used + 1, before: used }
    t.strictSame(await one(...batch(1)), [grant, grant, grant])
    const report = { record: 'usage' as const, name: 'bad' }
    t.hasStrict(refused.splice(0), [report, report])
    spoil()
    await store.raiseUsed('bad', day, used + 1, keepUntil)
    t.strictSame(await store.usedOn('bad', [day]), [used + 1])
  }
  beside.exec(`UPDATE usage SET used = -7 WHERE key_id = 'bad'`)
  const next = open()
  const grants = await instanceOn(next, 'three')({ keyId: 'bad', limit: 100 })
  t.strictSame(grants, [{ granted: 1, used: 1, before: 0 }])
  await next.close()
})

t.test('what is no figure of a budget is none', async t => {
  const { store, beside } = setUp(t)
  const window = { name: 'day:1', limit: 40_000, keepUntil: now + 60_000 }
  const step = spendingStep({ provider: 'acc1', wanted: 3_000, windows: [spendingWindow(window)], now })
  await store.spend(step)
  for (const text of noCounts) {
    await store.reopen('acc1', now)
    beside.exec(`UPDATE closure SET until = ${text}, at = ${text}, reopened = ${text}`)
    beside.exec(`UPDATE spent SET charged = ${text}, refunded = ${text}`)
    t.match(await store.spend(step), { granted: 3_000, closure: null, reopenedAt: 0 }, text)
    t.match(await store.reopen('acc1', now), { closure: null }, text)
  }
})

t.test('a count of responses that is none begins with what is added, others are as they were', async t => {
  const { store, beside, refused } = setUp(t)
  for (const [i, text] of noCounts.entries()) {
    const [bad, good] = [
      { ...aDetail, keyId: `bad_${i}` },
      { ...aDetail, keyId: `good_${i}` },
    ]
    beside.exec(
      `INSERT INTO usage_detail VALUES ('${bad.keyId}', '${day}', 'weather', '2xx', ${text}, ${keepUntil})`,
    )
    t.strictSame(await store.detailOn(bad.keyId, day), [], text)
    await store.addDetail([bad, good])
    for (const { keyId } of [bad, good]) t.match(await store.detailOn(keyId, day), [{ count: 1 }], text)
    t.ok(refused.splice(0).length > 0)
  }
})

t.test('names in demand are bounded', async t => {
  const { store, beside } = setUp(t)
  beside.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 501000)
    INSERT INTO wanted SELECT 'q', 'n' || i, ${now} FROM n`)
  t.match(await store.heartbeat(heartbeatOf('one', { requested: ['a'] })), { wanted: 500_000 })
  t.equal((await store.wanted('q', 0)).length, 50_000)
})

const largest = '9223372036854775807'
for (const [change, fault] of [
  ...['-5', '0', largest].map(value => [`keys SET own_limit = ${value}`, /limit must be/] as const),
  ...['-1', largest].map(value => [`keys SET revoked_at = ${value}`, /revokedAt must be/] as const),
  [`keys SET tier = ''`, /tier must be .*, got ""/],
  [`keys SET tier = printf('%.*c', 2000000, 'x')`, /tier must be .*, got "x{60}…"/],
  [`subscribers SET revoked_at = -1`, /revokedAt must be .*, got "-1"/],
  ...['{}', '[]', 'none', '{"origins":["a"]}'].map(
    value => [`keys SET restrictions = '${value}'`, /restrictions must be/] as const,
  ),
  [`keys SET rates = printf('%.*c', 2000000, 'x')`, /rates must be .*, got "x{60}…"/],
] as const)
  t.test(`a key that is none: ${change}`, async t => {
    const opened = setUp(t)
    const damage = () => opened.beside.exec(`UPDATE ${change} WHERE id IN ('bad', 'sub_a')`)
    await costsOneKey(t, opened, damage, { fault })
  })

t.test('a damaged date of a key is 1970, and a former hash without an end has ended', async t => {
  const { store, beside } = setUp(t)
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey(sampleKey('key_1'))
  beside.exec('UPDATE keys SET created_at = -9')
  t.match(await store.findKey('key_1'), { createdAt: 0 })
  beside.exec('UPDATE former_hashes SET valid_until = 9223372036854775807')
  t.equal(await store.findByHash('former-of-key_1'), undefined)
})

t.test('bytes that are too many are not read', async t => {
  const { store, beside } = setUp(t)
  beside.exec(`INSERT INTO bytes VALUES ('cell', zeroblob(100000000), ${Date.now() + 60_000})`)
  const before = process.memoryUsage().rss
  const read = await store.readBytes('cell', 17_000)
  t.equal(typeof read === 'string' ? read : `${read?.length} bytes`, 'too_large')
  const grown = (process.memoryUsage().rss - before) / 1e6
  t.ok(grown < 50, `${Math.round(grown)} MB more`)
})

// Every operation that a gateway or a command performs, in turn.
const everything = (store: Store): (() => Promise<unknown>)[] => [
  () => store.listKeys(),
  () => store.listSubscribers(),
  () => store.findByHash('hash-of-key_3'),
  () => store.usedOn('key_3', [day]),
  () => store.commit(batchOf('one', 1, [{ ...anEntry, keyId: 'key_3' }])),
  () => store.readBytes('cell-3'),
  () => store.writeBytes('cell-3', Buffer.alloc(500), Date.now() + 60_000),
  () => store.changeRecordsAfter('keys', 0),
  () => store.wanted('q', 0),
  () => usedIn(store, 'acc1', ['minute:1'], Date.now()),
  () => store.detailOn('key_3', day),
]

t.test('a file with damaged pages fails with a sentence, or returns what is legible', async t => {
  const folder = t.testdir()
  const whole = join(folder, 'whole.db')
  const filled = openEmbeddedStore(whole, systemClock)
  await filled.ensureSubscriber(sampleSubscriber)
  for (let i = 0; i < 60; i++) {
    await filled.addKey(sampleKey(`key_${i}`))
    await filled.writeBytes(`cell-${i}`, Buffer.alloc(900, i), Date.now() + 60_000)
    await filled.appendChangeRecord('keys', `key_${i}`, Date.now() + 60_000)
    await filled.raiseUsed(`key_${i}`, day, i, keepUntil)
  }
  await filled.close()
  const { length } = readFileSync(whole)
  const spot = fc.record({
    at: fc.integer({ min: 0, max: length - 1 }),
    put: fc.uint8Array({ minLength: 1, maxLength: 200 }),
  })
  let [failed, answered, runs] = [0, 0, 0]
  const onFault = (error: unknown): void => {
    if (!(error instanceof AbohawaError)) throw error
    failed += 1
  }
  await fc.assert(
    fc.asyncProperty(fc.array(spot, { minLength: 1, maxLength: 8 }), async spots => {
      // A new file each time: SQLite caches the files beside it for as long as it is open.
      const path = join(folder, `spoilt-${runs++}.db`)
      const bytes = readFileSync(whole)
      for (const { at, put } of spots) bytes.set(put.subarray(0, length - at), at)
      writeFileSync(path, bytes)
      let store: Store
      try {
        store = openEmbeddedStore(path, systemClock)
      } catch (error) {
        onFault(error)
        return
      }
      for (const act of everything(store))
        await act().then(() => {
          answered += 1
        }, onFault)
      await store.close().catch(() => {})
    }),
    { seed: 20_261_121, numRuns: 60 },
  )
  t.ok(failed > 20 && answered > 20, `${failed} failed with a sentence, ${answered} were answered`)
})
