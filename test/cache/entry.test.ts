import t from 'tap'
import {
  type Entry,
  freshnessOf,
  freshUntil,
  longestUseMs,
  lotOf,
  usableUntil,
} from '../../src/cache/entry.ts'

const policy = { freshForMs: 1_000, freshSpread: 0.2, staleForMs: 5_000 }
const entry = (lot: number): Entry<string> => ({ value: 'x', fetchedAt: 10_000, bytes: 1, lot })

t.test('an entry is fresh for its time, then stale for its time, then expired', t => {
  const policyOfNone = { ...policy, freshSpread: 0 }
  const at = (now: number) => freshnessOf(entry(0.5), policyOfNone, now)
  t.strictSame([10_000, 10_999, 11_000, 15_999, 16_000].map(at), [
    'fresh',
    'fresh',
    'stale',
    'stale',
    'expired',
  ])
  t.end()
})

t.test('freshness is drawn out by the lot, never cut short, and the time as stale comes after it', t => {
  t.equal(freshUntil(entry(0), policy), 11_000)
  t.equal(freshUntil(entry(0.5), policy), 11_100)
  t.equal(usableUntil(entry(0.5), policy), 16_100)
  t.ok(usableUntil(entry(0.999_999), policy) <= 10_000 + longestUseMs(policy))
  t.end()
})

t.test('what was fetched in one instant turns stale spread over the whole of the spread', t => {
  const ends = Array.from({ length: 5_000 }, (_, i) => freshUntil(entry(lotOf(`cell ${i}`, 10_000)), policy))
  const spread = Math.max(...ends) - Math.min(...ends)
  t.ok(spread >= 0.19 * policy.freshForMs, `${spread} ms`)
  const tenths = Map.groupBy(ends, end => Math.floor((end - 11_000) / 20))
  t.equal(tenths.size, 10)
  for (const { length } of tenths.values())
    t.ok(length > 400 && length < 600, `${length} of 5,000 in a tenth`)
  t.end()
})

t.test('a lot is the same for all who draw it, and another for the next fetch', t => {
  t.equal(lotOf('a', 1), lotOf('a', 1))
  t.not(lotOf('a', 1), lotOf('a', 2))
  t.not(lotOf('a', 1), lotOf('b', 1))
  t.end()
})
