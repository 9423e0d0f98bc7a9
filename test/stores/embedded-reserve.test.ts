// The reserve of the embedded store: it ignores everything that it has not written itself, allocates its bytes in advance,
// and is readable for its owner alone.

import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { openStore } from '../../src/stores/open-store.ts'
import { unobserved } from '../../src/stores/records.ts'
import { maxReserved, openReserve, type ReservedCount, reservePath } from '../../src/stores/sqlite/reserve.ts'

const countOf = (i: number, used = i): ReservedCount => ({
  keyId: `key_${i}`,
  day: '2026-11-21',
  used,
  keepUntil: 9e12,
})

t.test('the next process reads the last value of each count', t => {
  const path = join(t.testdir(), 'store.db')
  const reserve = openReserve(path)
  const { blocks, mode } = statSync(reservePath(path))
  t.ok(blocks * 512 >= 2_000_000, `${blocks} blocks are there`)
  t.equal((mode & 0o777).toString(8), '600')
  t.ok(reserve.put([countOf(1), countOf(2)]))
  t.ok(reserve.put([countOf(2, 22), countOf(3), { ...countOf(2, 7), day: '2026-11-22' }]))
  reserve.close()
  const next = openReserve(path)
  const expected = [countOf(1), countOf(2, 22), countOf(3), { ...countOf(2, 7), day: '2026-11-22' }]
  t.strictSame(next.read(), { counts: expected, damaged: 0 })
  t.ok(next.put([countOf(4)]), 'and goes on behind them')
  t.equal(next.read().counts.length, 5)
  next.clear()
  t.strictSame(next.read(), { counts: [], damaged: 0 })
  t.equal(statSync(reservePath(path)).blocks, blocks, 'in place')
  next.close()
  t.end()
})

t.test('what one process puts or clears, another one sees', t => {
  const path = join(t.testdir(), 'store.db')
  const [one, other] = [openReserve(path), openReserve(path)]
  t.ok(one.put([countOf(1)]) && other.put([countOf(2)]) && one.put([countOf(3)]))
  t.strictSame(other.find('key_3', '2026-11-21'), countOf(3))
  t.ok(other.put([countOf(1, 11)]))
  t.strictSame(one.find('key_1', '2026-11-21'), countOf(1, 11))
  t.equal(one.read().counts.length, 3)
  one.clear()
  t.equal(readFileSync(reservePath(path))[0], 0, 'the first byte says that none waits')
  t.ok(one.put([countOf(4), countOf(5)]))
  t.equal(other.find('key_2', '2026-11-21'), undefined)
  t.strictSame(other.find('key_5', '2026-11-21'), countOf(5))
  t.ok(other.put([countOf(2, 22)]))
  t.strictSame(one.read().counts, [countOf(4), countOf(5), countOf(2, 22)])
  one.close()
  other.close()
  t.end()
})

t.test('more than fit are not put, and neither is one that no slot takes', t => {
  const reserve = openReserve(join(t.testdir(), 'store.db'))
  t.teardown(reserve.close)
  t.ok(reserve.put(Array.from({ length: maxReserved - 1 }, (_, i) => countOf(i))))
  t.notOk(reserve.put([countOf(8_888), countOf(9_999)]), 'one slot is left')
  t.ok(reserve.put([countOf(3, 33), countOf(9_999)]))
  t.notOk(reserve.put([countOf(8_888)]))
  t.notOk(reserve.put([{ ...countOf(3), keyId: 'k'.repeat(300) }]))
  t.equal(reserve.read().counts.length, maxReserved)
  t.end()
})

t.test('bytes of others are no counts, whatever they are', t => {
  const path = join(t.testdir(), 'store.db')
  openReserve(path).close()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 4_096 }), fc.boolean(), (bytes, isLong) => {
      writeFileSync(reservePath(path), bytes)
      const reserve = openReserve(path)
      if (isLong) reserve.put([countOf(1)])
      const { counts } = reserve.read()
      reserve.close()
      if (counts.length > (isLong ? 1 : 0)) throw new Error(`${counts.length} counts`)
    }),
    { numRuns: 100 },
  )
  t.pass('none of them')
  t.end()
})

t.test('a store that can have no reserve says so and goes on', async t => {
  const path = join(t.testdir(), 'store.db')
  mkdirSync(reservePath(path))
  const missing: string[] = []
  const redis = { url: null, prefix: 'x:', connectTimeoutMs: 1, commandTimeoutMs: 1 }
  const store = await openStore({ redis, store: { path } }, Date, {
    ...unobserved,
    redisAway: () => {},
    redisBack: () => {},
    reserveMissing: reason => missing.push(reason),
  })
  t.match(missing, [/-reserve can't be opened: it is a directory; allowed: a regular file$/])
  await store.ping()
  await store.close()
})
