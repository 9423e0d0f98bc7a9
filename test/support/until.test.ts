// The waiting helper: it ends with the result, or with an error that names what it waited for.

import t from 'tap'
import { foundWithin, until } from './until.ts'

t.test('it gives what it found, as soon as it is there', async t => {
  let looks = 0
  const found = await until('the third look', async () => (++looks === 3 ? { looks } : undefined))
  t.strictSame(found, { looks: 3 })
  looks = 0
  t.equal(await until('a number', () => looks++, 20_000, 0), 1, '0 is nothing found')
  t.equal(await foundWithin(20_000, () => 'at once'), 'at once')
})

t.test('what does not come is named, with what was seen last', async t => {
  await t.rejects(
    until('the circuit is closed', () => false, 30),
    { message: 'not within 30 ms: the circuit is closed; last: false' },
  )
  const cause = new Error('refused')
  const look = () => Promise.reject(cause)
  await t.rejects(until('an answer', look, 30), {
    message: /^not within 30 ms: an answer; last: .*refused/s,
    cause,
  })
  t.equal(await foundWithin(30, look), undefined)
})

t.test('a look that never ends is given up as well', async t => {
  const never = new Promise<boolean>(() => {})
  await t.rejects(
    until('an answer', () => never, 30),
    { message: "not within 30 ms: an answer; last: 'no answer yet'" },
  )
})
