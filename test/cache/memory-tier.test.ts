// The bound of the memory tier, including data kept beside an entry, also while entries come and go.

import t from 'tap'
import type { Entry } from '../../src/cache/freshness.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/tiers.ts'

const entry = (value: string, bytes = 100): Entry<string> => ({
  value,
  bytes,
  fetchedAt: 0,
  jitter: 0,
  generation: 0,
  run: null,
})

t.test('bytes kept beside an entry count, and the last figure holds', async t => {
  const memory = createMemoryTier<string>(1_000)
  const { setExtraBytes } = keepEntry(memory, 'a', entry('one'))
  t.equal(memory.calculatedSize, 100)
  for (const [extra, bytes] of [
    [500, 600],
    [50, 150],
    [0, 100],
    [900, 1_000],
  ] as const) {
    setExtraBytes(extra)
    t.equal(memory.calculatedSize, bytes, `with ${extra} beside it`)
    t.match(memory.get('a'), { value: 'one', bytes: 100 })
  }
  memory.delete('a')
  t.strictSame([memory.calculatedSize, memory.size], [0, 0])
})

t.test('data beside an entry evicts the least recently used others', async t => {
  const memory = createMemoryTier<string>(400)
  for (const key of ['a', 'b', 'c']) keepEntry(memory, key, entry(key))
  memory.get('a')
  memory.peek('c')?.setExtraBytes(150)
  t.strictSame(
    ['a', 'b', 'c'].map(key => memory.peek(key)?.value),
    ['a', undefined, 'c'],
  )
  t.equal(memory.calculatedSize, 350)
})

t.test('an entry larger than the whole tier with its data is evicted', async t => {
  const memory = createMemoryTier<string>(400)
  keepEntry(memory, 'a', entry('a'))
  const { setExtraBytes } = keepEntry(memory, 'b', entry('b'))
  setExtraBytes(301)
  t.strictSame([memory.peek('a')?.value, memory.peek('b'), memory.calculatedSize], ['a', undefined, 100])
  setExtraBytes(0)
  t.strictSame([memory.size, memory.calculatedSize], [1, 100], 'and nothing brings it back')
  t.equal(keepEntry(memory, 'c', entry('c', 401)).value, 'c')
  t.strictSame([memory.size, memory.calculatedSize], [1, 100])
})

t.test('setExtraBytes does nothing on an entry that was replaced, removed or evicted', async t => {
  const memory = createMemoryTier<string>(1_000)
  const old = keepEntry(memory, 'a', entry('same value'))
  old.setExtraBytes(300)
  const renewed = keepEntry(memory, 'a', entry('same value'))
  t.equal(memory.calculatedSize, 100, 'what was beside the old one went with it')
  old.setExtraBytes(700)
  t.equal(memory.calculatedSize, 100)
  renewed.setExtraBytes(20)
  old.setExtraBytes(0)
  t.equal(memory.calculatedSize, 120)

  memory.delete('a')
  renewed.setExtraBytes(500)
  t.strictSame([memory.size, memory.calculatedSize], [0, 0])

  const first = keepEntry(memory, 'b', entry('b', 600))
  keepEntry(memory, 'c', entry('c', 600))
  first.setExtraBytes(10)
  t.strictSame([memory.size, memory.calculatedSize, memory.peek('b')], [1, 600, undefined])
})
