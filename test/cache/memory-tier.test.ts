// Without it the memory tier could grow beyond its bound.

import t from 'tap'
import { createMemoryTier, keepEntry } from '../../src/cache/tiers.ts'
import { textEntry } from './cache-set-up.ts'

const entry = (value: string, bytes = 100) => textEntry({ value, bytes })

t.test('bytes kept beside an entry count, and the last figure holds', async t => {
  const memory = createMemoryTier<string>(1_000)
  const { derived } = keepEntry(memory, 'a', entry('one'))
  t.equal(memory.calculatedSize, 100)
  for (const extra of [500, 50, 0, 900]) {
    derived.setBytes(extra)
    t.equal(memory.calculatedSize, 100 + extra, `with ${extra} beside it`)
    t.hasStrict(memory.get('a'), { value: 'one', bytes: 100 })
  }
  memory.delete('a')
  t.strictSame([memory.calculatedSize, memory.size], [0, 0])
})

t.test('the least recently used others are evicted, and an entry larger than the whole tier', async t => {
  const memory = createMemoryTier<string>(400)
  for (const key of ['a', 'b', 'c']) keepEntry(memory, key, entry(key))
  memory.get('a')
  memory.peek('c')?.derived.setBytes(150)
  const values = () => ['a', 'b', 'c'].map(key => memory.peek(key)?.value)
  t.strictSame(values(), ['a', undefined, 'c'])
  t.equal(memory.calculatedSize, 350)
  const c = memory.peek('c')
  c?.derived.setBytes(301)
  t.strictSame([values(), memory.calculatedSize], [['a', undefined, undefined], 100])
  c?.derived.setBytes(0)
  t.strictSame([memory.size, memory.calculatedSize], [1, 100], 'and nothing brings it back')
  t.equal(keepEntry(memory, 'c', entry('c', 401)).value, 'c')
  t.strictSame([memory.size, memory.calculatedSize], [1, 100])
})

t.test(
  'setting the bytes of derived data does nothing on an entry that was replaced, removed or evicted',
  async t => {
    const memory = createMemoryTier<string>(1_000)
    const old = keepEntry(memory, 'a', entry('same value'))
    old.derived.setBytes(300)
    const renewed = keepEntry(memory, 'a', entry('same value'))
    t.equal(memory.calculatedSize, 100, 'what was beside the old one went with it')
    old.derived.setBytes(700)
    t.equal(memory.calculatedSize, 100)
    renewed.derived.setBytes(20)
    old.derived.setBytes(0)
    t.equal(memory.calculatedSize, 120)

    memory.delete('a')
    renewed.derived.setBytes(500)
    t.strictSame([memory.size, memory.calculatedSize], [0, 0])

    const first = keepEntry(memory, 'b', entry('b', 600))
    keepEntry(memory, 'c', entry('c', 600))
    first.derived.setBytes(10)
    t.strictSame([memory.size, memory.calculatedSize, memory.peek('b')], [1, 600, undefined])
  },
)
