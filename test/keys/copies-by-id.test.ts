// Without it a changed key could go on working, or its copies stay in memory for good.

import t from 'tap'
import { createCopiesById } from '../../src/keys/copies-by-id.ts'

const copyOf = (key: string, subscriber: string) => ({
  found: { key: { id: key }, subscriber: { id: subscriber } },
})

t.test('the copies of a key and of a subscriber are found, and forgotten one by one', async t => {
  const copies = createCopiesById()
  const [one, former, other] = [copyOf('key_1', 'sub_1'), copyOf('key_1', 'sub_1'), copyOf('key_2', 'sub_1')]
  for (const copy of [one, former, other]) copies.add(copy)
  const of = (id: string) => [...copies.of(id)]
  t.strictSame(of('key_1'), [one, former], 'a key that was rotated has two')
  t.strictSame([of('key_2'), of('sub_1'), of('key_3')], [[other], [one, former, other], []])
  copies.delete(one)
  t.strictSame([of('key_1'), of('sub_1')], [[former], [former, other]])
  copies.delete(former)
  t.strictSame([of('key_1'), of('sub_1'), copies.size()], [[], [other], 2])
  copies.delete(other)
  t.equal(copies.size(), 0, 'nothing is left of ids without copies')
  const alone = copyOf('key_4', 'sub_4')
  copies.add(alone)
  copies.delete(copyOf('key_4', 'sub_4'))
  t.strictSame(of('key_4'), [alone], 'an older copy takes no newer one with it')
})
