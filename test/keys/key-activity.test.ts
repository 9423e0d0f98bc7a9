// Without it operators would see requests in the wrong hour, or a million keys would fill the memory.

import t, { type Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createKeyActivities, maxKeys } from '../../src/keys/key-activity.ts'
import { manualClock } from '../support/manual-clock.ts'

const hour = 3_600_000

const setUp = (_: Test) => {
  const clock = manualClock()
  return { clock, ...createKeyActivities(createCalendar('Asia/Dhaka'), clock) }
}
/** The hours up to the running one, without those before that are 0. */
const hoursOf = (hours: readonly number[] = []) => hours.slice(hours.findIndex(count => count > 0))

t.test('requests are counted by hour, for a day', t => {
  const { clock, used, of } = setUp(t)
  t.equal(of('key_1'), undefined)
  used([
    { keyId: 'key_1', count: 3 },
    { keyId: 'key_2', count: 1 },
    { keyId: 'key_1', count: 4 },
  ])
  const lastUsedAt = clock.now()
  t.hasStrict(of('key_1'), { refusals: {}, lastUsedAt })
  t.strictSame(hoursOf(of('key_1')?.hours), [7])
  clock.advance(2 * hour)
  used([{ keyId: 'key_1', count: 5 }])
  t.strictSame(hoursOf(of('key_1')?.hours), [7, 0, 5])
  clock.advance(21 * hour)
  t.equal(of('key_1')?.hours.length, 24)
  t.strictSame(hoursOf(of('key_1')?.hours).slice(0, 3), [7, 0, 5])
  clock.advance(hour)
  t.strictSame(hoursOf(of('key_1')?.hours), [5, ...Array<number>(22).fill(0)])
  clock.advance(48 * hour)
  t.ok(of('key_1')?.hours.every(count => count === 0))
  t.equal(of('key_2')?.lastUsedAt, lastUsedAt, 'when it was used stays')
  t.end()
})

t.test('a clock that goes back leaves no count of an hour to come', t => {
  for (const hours of [1, 5]) {
    const { clock, used, of } = setUp(t)
    used([{ keyId: 'key_1', count: 3 }])
    clock.advance(-hours * hour)
    used([{ keyId: 'key_1', count: 2 }])
    t.strictSame(hoursOf(of('key_1')?.hours), [2])
  }
  t.end()
})

t.test('errors are counted by code until local midnight', t => {
  const { clock, refused, of } = setUp(t)
  for (let i = 0; i < 3; i++) refused('key_1', 'quota_exhausted')
  refused('key_1', 'place_not_found')
  const expected = { quota_exhausted: 3, place_not_found: 1 }
  t.match(of('key_1'), { refusals: expected, lastUsedAt: null })
  clock.set('2026-11-21T17:59:59Z')
  t.strictSame(of('key_1')?.refusals, expected)
  clock.advance(1_000)
  t.strictSame(of('key_1')?.refusals, {})
  refused('key_1', 'key_revoked')
  t.strictSame(of('key_1')?.refusals, { key_revoked: 1 })
  t.end()
})

t.test('of very many keys those with most requests are kept', t => {
  const { used, of } = setUp(t)
  const name = (i: number) => `key_${i}`
  for (let i = 0; i < 10 * maxKeys; i++) used([{ keyId: name(i), count: i % 10 === 0 ? 50 : 1 }])
  const kept = Array.from({ length: 10 * maxKeys }, (_, i) => i).filter(i => of(name(i)))
  t.equal(kept.length, 1_250, 'a thousand, and a quarter before the next are dropped')
  t.ok(kept.filter(i => i % 10 === 0).length >= maxKeys - 30)
  t.end()
})

t.test('a key that has made no request for a day goes before others', t => {
  const { clock, used, of } = setUp(t)
  const all = (kind: string, many: number, count: number) =>
    used(Array.from({ length: many }, (_, i) => ({ keyId: `${kind}_${i}`, count })))
  all('former', maxKeys, 50)
  clock.advance(24 * hour)
  all('recent', 251, 1)
  t.ok(Array.from({ length: 251 }, (_, i) => of(`recent_${i}`)).every(Boolean))
  t.end()
})
