// Without it the buffers of responses could be used again too early or kept without end.

import t from 'tap'
import { giveBack, takeBuffer } from '../../src/common/buffer-pool.ts'

t.test('a buffer is used again once it was given back, for a response that fits', async t => {
  const first = takeBuffer(5_000)
  t.equal(first.length, 16 * 1024)
  t.not(takeBuffer(5_000), first, 'it is in use')
  giveBack(first)
  t.not(takeBuffer(16 * 1024 + 1), first, 'it is too short')
  t.equal(takeBuffer(16 * 1024), first)
  t.not(takeBuffer(5_000), first, 'it is in use again')
})

t.test('at most 4 MiB of a size are kept, and no response of any other length', async t => {
  const size = 512 * 1024
  const all = Array.from({ length: 9 }, () => takeBuffer(size))
  for (const buffer of all) giveBack(buffer)
  t.strictSame(
    Array.from({ length: 9 }, () => all.includes(takeBuffer(size))),
    [...Array(8).fill(true), false],
  )
  const long = takeBuffer(size + 1)
  t.equal(long.length, size + 1)
  giveBack(long)
  t.not(takeBuffer(size + 1), long)
})
