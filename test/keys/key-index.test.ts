// Without it two ids with one number could share a count, and a million keys stop the process for each collection.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { randomBase62 } from '../../src/keys/key-form.ts'
import { createKeyIndex, numberOf, shardCount, shardOf } from '../../src/keys/key-index.ts'
import { createUsageDetail } from '../../src/keys/usage-detail.ts'
import { manualClock } from '../support/manual-clock.ts'
import { consume, meterOn, storeInMemory } from './meters.ts'

type Entry = { keyId: string; next: Entry | undefined }
const entryOf = (keyId: string): Entry => ({ keyId, next: undefined })

t.test('an entry is found until it is deleted, and all are listed', async t => {
  const table = createKeyIndex<Entry>()
  const all = ['', 'a', 'আ', 'key_1', 'key_2'].map(entryOf)
  for (const entry of all) table.add(entry)
  t.equal(table.size(), 5)
  t.ok(all.every(entry => table.find(entry.keyId) === entry))
  t.equal(table.find('key_3'), undefined)
  t.equal(new Set(table.values()).size, 5)
  for (const entry of table.values()) table.delete(entry)
  t.equal(table.size(), 0)
  t.equal(table.find('key_1'), undefined)
})

t.test('two ids with one number are two keys, whichever is deleted first', async t => {
  // With the same end they are in one shard.
  const [one, other] = ['key_332789_aa', 'key_529192_aa'].map(entryOf)
  if (!one || !other) throw new Error('there are two')
  for (const [first, last] of [
    [one, other],
    [other, one],
  ] as const) {
    const table = createKeyIndex<Entry>()
    table.add(one)
    t.equal(table.find(other.keyId), undefined)
    table.add(other)
    t.strictSame([table.size(), [...table.values()].length], [2, 2])
    t.ok([one, other].every(entry => table.find(entry.keyId) === entry))
    for (let i = 0; i < 2; i++) table.delete(first)
    t.strictSame([table.find(first.keyId), table.size()], [undefined, 1])
    t.equal(table.find(last.keyId), last)
    table.delete(last)
    t.strictSame([[...table.values()], table.size()], [[], 0])
  }
})

const ids = {
  'as keys have them': (): string => `key_${randomBase62(12)}`,
  'that count up': (i: number): string => `key-${String(i).padStart(6, '0')}`,
}

for (const [kind, idOf] of Object.entries(ids))
  t.test(`ids ${kind} spread evenly over the shards`, async t => {
    const sizes = Array.from({ length: shardCount }, () => 0)
    const numbers = new Set<number>()
    for (let i = 0; i < 100_000; i++) {
      const shard = shardOf(idOf(i))
      sizes[shard] = (sizes[shard] ?? 0) + 1
      numbers.add(numberOf(idOf(i)))
    }
    const largest = Math.max(...sizes)
    t.ok(largest < 100_000 / 12, `the largest has ${largest}`)
    t.ok(numbers.size > 99_900, `${numbers.size} numbers`)
  })

setFlagsFromString('--allow-natives-syntax')
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const isInTableOfTexts = new Function('text', 'return %IsInternalizedString(text)') as (
  text: string,
) => boolean

t.test('the id of a counted key does not get into the table of texts of V8', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = storeInMemory(t, clock)
  // The embedded store's own Maps are not the point.
  const commit: typeof store.commit = async ({ entries }) =>
    entries.map(({ units }) => ({ granted: units, used: units, before: 0 }))
  const meter = meterOn({ ...store, commit }, clock)
  // As they come from a store: made at run time.
  const idOf = (kind: string, i: number): string => Buffer.from(`key_${kind}_${i}`).toString('latin1')
  const ids = Array.from({ length: 50 }, (_, i) => idOf('counted', i))
  const detail = createUsageDetail(
    { ...store, addDetail: async () => {} },
    createCalendar('Asia/Dhaka'),
    clock,
  )
  t.teardown(detail.close)
  for (const keyId of [...ids, ...ids]) {
    await consume(meter, { keyId, limit: 9 }, clock.now())
    detail.count({ keyId, endpoint: 'weather', status: 200, arrivedAt: clock.now() })
  }
  const ofMap = Array.from({ length: 50 }, (_, i) => idOf('of_map', i))
  const map = new Map(ofMap.map(id => [id, 1]))
  t.equal([...map.keys()].filter(isInTableOfTexts).length, map.size, 'those of a Map are in it')
  // What stands for a text in the table until then is replaced by it.
  collect()
  t.equal(ids.filter(isInTableOfTexts).length, 0)
})
