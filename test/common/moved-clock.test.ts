// Without it a rehearsal could run work at the wrong instant, or in another order.

import t from 'tap'
import { after, every } from '../../src/common/clock.ts'
import { createMovedClock } from '../../src/common/moved-clock.ts'

const start = Date.parse('2026-11-21T17:59:00Z')

t.test('a move runs what is due in the order of its instants, and nothing else', async t => {
  const clock = createMovedClock(start)
  t.equal(clock.now(), start)
  const ran: string[] = []
  const work = (name: string) => () => void ran.push(`${name} ${clock.now() - start}`)
  after(clock, 300, work('third'))
  after(clock, 100, work('first'))
  every(clock, 200, work('second'))
  after(clock, 1_001, work('never'))
  await clock.moveTo(start + 99)
  t.strictSame(ran, [])
  await clock.moveTo(start + 600)
  t.strictSame(ran, ['first 100', 'second 200', 'third 300', 'second 400', 'second 600'])
  t.equal(clock.now(), start + 600)
})

t.test('work at intervals keeps its place; of one instant, what was begun first goes first', async t => {
  const clock = createMovedClock(start)
  const ran: unknown[] = []
  after(clock, 500, () => ran.push('first'))
  every(clock, 500, () => ran.push(clock.now() - start))
  for (const ms of [499, 500, 700, 1_000, 2_600, 2_999, 3_000]) await clock.moveTo(start + ms)
  t.strictSame(ran, ['first', 500, 1_000, 1_500, 2_000, 2_500, 3_000])
})

t.test('a move ends when the work has ended, one after the other', async t => {
  const clock = createMovedClock(start)
  const ran: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  after(clock, 1, async () => {
    await promise
    ran.push('slow')
  })
  after(clock, 2, () => ran.push('quick'))
  const moved = clock.moveTo(start + 2).then(() => ran.push('moved'))
  await new Promise(setImmediate)
  t.strictSame(ran, [])
  resolve()
  await moved
  t.strictSame(ran, ['slow', 'quick', 'moved'])
})

t.test('what the work has begun settles before the clock goes on', async t => {
  const clock = createMovedClock(start)
  const ran: string[] = []
  every(clock, 100, () => ran.push(`work ${clock.now() - start}`))
  await clock.moveTo(start + 250, async () => {
    await new Promise(setImmediate)
    ran.push(`settled ${clock.now() - start}`)
  })
  t.strictSame(ran, ['work 100', 'settled 100', 'work 200', 'settled 200'])
  t.equal(clock.now(), start + 250)
})

t.test('work that is called off does not run, not even by what ran before it', async t => {
  const clock = createMovedClock(start)
  const ran: string[] = []
  const callOff = every(clock, 20, () => ran.push('called off'))
  after(clock, 10, callOff)
  after(clock, 15, () => after(clock, 0, () => ran.push('added by the move')))
  await clock.moveTo(start + 1_000)
  t.strictSame(ran, ['added by the move'])
})

t.test('work that fails fails the move, and the clock never goes back', async t => {
  const clock = createMovedClock(start)
  await t.rejects(clock.moveTo(start - 1), {
    message: "the clock can't go back from 2026-11-21T17:59:00.000Z to 2026-11-21T17:58:59.999Z",
  })
  t.equal(clock.now(), start)
  after(clock, 1, () => Promise.reject(new Error('no')))
  await t.rejects(clock.moveTo(start + 1), { message: 'no' })
})

t.test(
  'a skip leaves out repetitions but the last of each, in step, and nothing that is due once',
  async t => {
    const clock = createMovedClock(start)
    const ran: string[] = []
    const work = (name: string) => () => void ran.push(`${name} ${clock.now() - start}`)
    every(clock, 500, work('tick'))
    every(clock, 7_000, work('sample'))
    clock.skipTo(start + 20_100)
    await clock.moveTo(start + 21_000)
    t.strictSame(ran.splice(0), ['sample 14000', 'tick 20000', 'tick 20500', 'tick 21000', 'sample 21000'])
    after(clock, 3_200, work('once'))
    clock.skipTo(start + 90_000)
    await clock.moveTo(start + 24_300)
    t.strictSame(ran, ['tick 24000', 'once 24200'])
  },
)
