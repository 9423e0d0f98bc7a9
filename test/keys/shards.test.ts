// Collections in shards: how evenly ids spread over them, and that they are one collection otherwise.

import t from 'tap'
import { randomBase62 } from '../../src/keys/key-form.ts'
import { createShards } from '../../src/keys/key-table.ts'

const ids = {
  'as keys have them': (): string => `key_${randomBase62(12)}`,
  'that count up': (i: number): string => `key-${String(i).padStart(6, '0')}`,
}

for (const [kind, idOf] of Object.entries(ids))
  t.test(`ids ${kind} spread evenly`, async t => {
    const all = createShards(() => new Map<string, number>())
    for (let i = 0; i < 100_000; i++) {
      const id = idOf(i)
      all.of(id).set(id, i)
    }
    t.equal(all.size(), 100_000)
    t.equal([...all.values()].length, 100_000)
    const largest = Math.max(...Array.from({ length: 1_000 }, (_, i) => all.of(idOf(i * 100 + i)).size))
    t.ok(largest < 100_000 / 8, `the largest has ${largest}`)
  })

t.test('an id is found again, however short, and members may leave while they are walked over', async t => {
  const all = createShards(() => new Map<string, string>())
  const given = ['', 'a', 'আ', 'key_1']
  for (const id of given) all.of(id).set(id, id)
  t.strictSame(
    given.map(id => all.of(id).get(id)),
    given,
  )
  for (const id of all.values()) all.of(id).delete(id)
  t.equal(all.size(), 0)
})
