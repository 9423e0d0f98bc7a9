// Without it a shell or backup that locks the store's file would block the event loop or lose a change.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { spendingStep, spendingWindow } from './spending.ts'
import { aDetail, anEntry, batchOf, heartbeatOf } from './usage-instance.ts'

const now = Date.now()
const keepUntil = now + 86_400_000
const day = '2026-11-26'

const setUp = async (t: Test) => {
  const path = join(t.testdir(), 'store.db')
  const store = openEmbeddedStore(path, systemClock)
  const other = new DatabaseSync(path)
  t.teardown(async () => {
    other.close()
    await store.close()
  })
  await store.ensureSubscriber(sampleSubscriber)
  await store.addKey(sampleKey('key_1'))
  await store.writeBytes('cell', Buffer.from('before'), keepUntil)
  await store.raiseUsed('key_1', day, 7, keepUntil)
  other.exec('BEGIN IMMEDIATE')
  return { store, other }
}

const entry = { ...anEntry, day, limit: 100 }
const window = spendingWindow({ name: 'day:1', limit: 9_000, keepUntil })
const spend = spendingStep({ provider: 'acc1', windows: [window], wanted: 3_000, now })

t.test('no step waits within a turn, and all are right once the lock is free', async t => {
  const { store, other } = await setUp(t)
  const soon = [
    store.commit(batchOf('a', 1, [entry])),
    store.spend(spend),
    store.writeBytes('cell', Buffer.from('after'), keepUntil),
    store.dropDays({ countsBefore: day, sumsBefore: day }),
    store.heartbeat(heartbeatOf('a', { requested: ['cell'] })),
  ]
  // SQLite itself would have blocked each of them for five seconds, longer together than this test may take.
  const ends = await Promise.allSettled(soon)
  const message = /store\.db failed: another program holds its lock$/
  for (const end of ends) t.match(end, { status: 'rejected', reason: { name: 'StoreError', message } })
  const patient = [
    store.addKey(sampleKey('key_2')),
    store.changeKey('key_1', { tier: 'free' }),
    store.replaceHash('key_1', 'f'.repeat(64), keepUntil),
    store.ensureSubscriber({ ...sampleSubscriber, id: 'sub_b', name: 'Meghna' }),
    store.setSubscriberRevoked('sub_a', now),
    store.appendChangeRecord('keys', 'x', keepUntil),
    store.raiseUsed('key_1', day, 9, keepUntil),
    store.reopen('acc1', now),
    store.deleteBytes(['cell']),
    // Nothing repeats them at a stop.
    store.addDetail([aDetail]),
    store.leave('a'),
  ]
  t.equal(String(await store.readBytes('cell')), 'before', 'reads go on')
  t.strictSame(await store.usedOn('key_1', [day]), [7])
  other.exec('ROLLBACK')
  await Promise.all(patient)
  t.hasStrict(await store.findKey('key_1'), { tier: 'free', hash: 'f'.repeat(64) })
  t.equal(await store.readBytes('cell'), undefined)
  t.hasStrict((await store.changeRecordsAfter('keys', 0)).records, [{ text: 'x' }])
  const grants = await store.commit(batchOf('a', 1, [{ ...entry, admitted: 3 }]))
  t.strictSame(grants, [{ granted: 1, used: 13, before: 9 }], 'a batch that met the lock has counted nothing')
  t.match(await store.spend(spend), { granted: 3_000, spent: [{ charged: 3_000, refunded: 0 }] })
})
