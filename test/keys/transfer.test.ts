// Without it an export could lose records silently, or an import could write what contradicts the store or another record.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { exportRecords, importRecords } from '../../src/keys/transfer.ts'
import { readRecord, type TransferRecord } from '../../src/keys/transfer-records.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { KeyRecord, Store } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { storeInMemory } from './meters.ts'

const subscriber = (id: string, name: string) => ({ id, name, createdAt: 0, revokedAt: null })
const keyOf = (id: string, change: Partial<KeyRecord> = {}) => ({
  ...{ id, hash: `hash of ${id}`, subscriberId: 'sub_1', tier: 'free', limit: null, externalId: null },
  ...{ createdAt: 0, revokedAt: null, expiresAt: null, restrictions: null, rates: null },
  ...change,
  previousHashes: [...(change.previousHashes ?? [])],
})
const river: TransferRecord = { record: 'subscriber', ...subscriber('sub_1', 'River') }
const endOf = (subscribers: number, keys: number, usage = 0): TransferRecord => ({
  record: 'end',
  ...{ subscribers, keys, usage },
})

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

t.test('an export leaves out what a failover lost, says so, and has 400 days of usage', async t => {
  const clock = manualClock()
  const found = [keyOf('key_1'), keyOf('key_2', { subscriberId: 'sub_2' }), keyOf('key_3')]
  const store = {
    countKeys: async () => 5,
    listKeys: async () => [...found, keyOf('key_4', { subscriberId: 'sub_4' })],
    listSubscribers: async () => [subscriber('sub_1', 'River')],
    // By id or name.
    findSubscriber: async (id: string) =>
      id === 'sub_2' ? subscriber(id, 'Delta') : subscriber('sub_5', 'sub_4'),
    usedOn: async (keyId: string, days: readonly string[]) => days.map(() => (keyId === 'key_2' ? 7 : 0)),
  }
  const left: string[] = []
  const exportOf = (given: typeof store) =>
    Array.fromAsync(exportRecords(given, createCalendar('Asia/Dhaka'), clock, each => void left.push(each)))
  const records = await exportOf(store)
  t.strictSame(left.splice(0), [
    'the store lists 5 keys and has the records of 4',
    'the record of subscriber sub_4 of key key_4 is lost',
  ])
  t.strictSame(records.slice(0, 6), [
    river,
    { record: 'subscriber', ...subscriber('sub_2', 'Delta') },
    ...found.map(key => ({ record: 'key', ...key })),
    { record: 'usage', keyId: 'key_2', day: '2025-10-18', used: 7 },
  ])
  t.strictSame(records.slice(-2), [
    { record: 'usage', keyId: 'key_2', day: '2026-11-21', used: 7 },
    endOf(2, 3, 400),
  ])
  await exportOf({ ...store, countKeys: async () => 3, listKeys: async () => found })
  t.strictSame(left, [], 'nothing is said of a store that lost nothing')
})

const importInto = (
  store: Store,
  records: readonly TransferRecord[],
  zone = 'Asia/Dhaka',
  keepUsageForMs = 0,
) =>
  importRecords(
    store,
    async function* () {
      yield* records
    },
    number => `line ${number}`,
    { keepUsageForMs },
    createCalendar(zone),
    manualClock(),
  )

t.test('records that contradict the store or an earlier record are named, and none is written', async t => {
  const store = storeInMemory(t, manualClock())
  const first = await importInto(store, [river, { record: 'key', ...keyOf('key_1') }, endOf(1, 1)])
  t.match(first, { newSubscribers: 1, newKeys: 1 })
  const crm = { externalId: 'crm/1' }
  const former = { previousHashes: [{ hash: 'h', validUntil: 0 }] }
  for (const [records, fault] of [
    [
      [
        { record: 'subscriber', ...subscriber('sub_2', 'Delta') },
        { record: 'subscriber', ...subscriber('sub_3', 'Delta') },
      ],
      'line 3: subscriber sub_3 is named "Delta", which is the name of sub_2',
    ],
    [
      [
        { record: 'key', ...keyOf('key_2', crm) },
        { record: 'key', ...keyOf('key_3', crm) },
      ],
      'line 3: key key_3 has the external id "crm/1", which belongs to key_2',
    ],
    [
      [{ record: 'key', ...keyOf('key_2', { hash: 'hash of key_1' }) }],
      'line 2: key key_2 has the hash hash of key_1, which belongs to key_1',
    ],
    [
      [{ record: 'key', ...keyOf('key_1', former) }],
      'line 2: key key_1 exists with another formers: [], and the export has [{"hash":"h","validUntil":0}]',
    ],
  ] as [TransferRecord[], string][])
    await t.rejects(importInto(store, [river, ...records]), { message: `${fault}; nothing was imported` })
  t.strictSame(
    [(await store.listKeys()).map(({ id }) => id), (await store.listSubscribers()).map(({ id }) => id)],
    [['key_1'], ['sub_1']],
  )
})

t.test('an import keeps a count from the end of its day on, and is announced', async t => {
  const day = '2026-11-21'
  const dayMs = 86_400_000
  for (const [zone, keepUsageForMs, keepUntil, written] of [
    ['Asia/Dhaka', 2 * dayMs, '2026-11-23T18:00:00Z', 2],
    // The count of two days before would be gone just now.
    ['Asia/Dhaka', 1.5 * dayMs, '2026-11-23T06:00:00Z', 1],
    ['Asia/Dhaka', 0, '2026-11-21T19:00:00Z', 1],
    ['Etc/GMT+12', 0, '2026-11-22T13:00:00Z', 1],
    ['Pacific/Noumea', 0, '2026-11-21T14:00:00Z', 1],
  ] as const) {
    const raised: unknown[] = []
    let announced = 0
    const store: Store = {
      ...storeInMemory(t, manualClock()),
      raiseUsed: async (...given) => void raised.push(given),
      appendChangeRecord: async () => ++announced,
    }
    const usage = ['2026-11-19', day].map(each => ({
      record: 'usage' as const,
      keyId: 'key_1',
      day: each,
      used: 5,
    }))
    await importInto(
      store,
      [river, { record: 'key', ...keyOf('key_1') }, ...usage, endOf(1, 1, 2)],
      zone,
      keepUsageForMs,
    )
    t.strictSame(raised.at(-1), ['key_1', day, 5, Date.parse(keepUntil)], `${zone}, ${keepUsageForMs} ms`)
    t.strictSame([raised.length, announced], [written, 1])
  }
})

t.test('a record is read up to its bounds; beyond them the field is named', async t => {
  const { previousHashes: formers, ...key } = keyOf('key_1')
  const long = 'x'.repeat(200)
  const control = 'it has a control or bidi character'
  const usage = { record: 'usage', keyId: 'key_1', day: '2026-11-21' }
  for (const [record, fault] of [
    [{ ...key, formers, hash: 'h', limit: 1 }],
    [{ ...key, formers, tier: long, createdAt: 0 }],
    [{ ...usage, used: 0 }],
    [{ ...key, formers, tier: '' }, /^its tier is wrong: /],
    [{ ...key, formers, tier: `${long}x` }, 'its tier is wrong: it is longer than 200 characters'],
    [{ ...key, formers, externalId: 'a\u001b' }, `its externalId is wrong: ${control}`],
    [{ ...key, formers, limit: 0 }, /^its limit is wrong: /],
    [{ ...key, formers, createdAt: -1 }, /^its createdAt is wrong: /],
    [{ ...key, formers: [{ hash: 'h', validUntil: -1 }] }, /^its formers\.0\.validUntil is wrong: /],
    [{ ...usage, used: -1 }, /^its used is wrong: /],
  ] as [object, (string | RegExp)?][]) {
    const read = () => readRecord(JSON.stringify({ record: 'key', ...record }))
    if (fault === undefined) t.doesNotThrow(read)
    else t.throws(read, { message: fault })
  }
})
