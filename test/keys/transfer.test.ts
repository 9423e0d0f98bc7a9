// Without it an import beside another one could name the wrong record, or write what contradicts the store.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { importRecords } from '../../src/keys/transfer.ts'
import type { TransferRecord } from '../../src/keys/transfer-records.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'

const subscriber = (id: string, name: string) => ({ id, name, createdAt: 0, revokedAt: null })

t.test('a name that is taken after the check ends an import at its record', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const records: TransferRecord[] = [
    { record: 'subscriber', ...subscriber('sub_1', 'River') },
    { record: 'subscriber', ...subscriber('sub_2', 'Delta') },
    { record: 'end', subscribers: 2, keys: 0, usage: 0 },
  ]
  const passed: string[] = []
  const importAll = (onChecked: () => Promise<unknown>) =>
    importRecords(
      store,
      async function* () {
        yield* records
        if (passed.length === 3) await onChecked()
      },
      number => `line ${number}`,
      { keepUsageForMs: 0, onLine: (pass, lines) => void passed.push(`${pass} ${lines}`) },
      createCalendar('Asia/Dhaka'),
      clock,
    )
  await t.rejects(
    importAll(() => store.ensureSubscriber(subscriber('sub_3', 'Delta'))),
    { message: 'line 2: subscriber sub_2 is named "Delta", which is the name of sub_3' },
  )
  t.strictSame(passed.splice(0), ['checked 1', 'checked 2', 'checked 3', 'written 1'])

  records.splice(1, 1, { record: 'subscriber', ...subscriber('sub_3', 'Delta') })
  t.match(await importAll(async () => {}), { subscribers: 2, newSubscribers: 0 })
  t.strictSame(passed.slice(3), ['written 1', 'written 2', 'written 3'])
})

t.test('an export that changes while it is imported is told with what was imported', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const records: TransferRecord[] = [
    { record: 'subscriber', ...subscriber('sub_1', 'River') },
    { record: 'end', subscribers: 1, keys: 0, usage: 0 },
  ]
  const readings = [records, []]
  const imported = importRecords(
    store,
    async function* () {
      yield* readings.shift() ?? []
    },
    number => `line ${number}`,
    { keepUsageForMs: 0 },
    createCalendar('Asia/Dhaka'),
    clock,
  )
  await t.rejects(imported, {
    message: 'the export changed: it had 2 records when it was checked, and 0 were imported',
  })
})
