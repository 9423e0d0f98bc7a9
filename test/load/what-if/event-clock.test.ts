// The clock of discrete events alone: timers run at their instants and in order, and what they start settles first.

import t from 'tap'
import { after, every } from '../../../src/clock.ts'
import { createEventClock } from '../../../src/load/what-if/event-clock.ts'

const settled = async () => {}

t.test('timers run in order of their instants, and of their start', async t => {
  const clock = createEventClock(1_000)
  const ran: [string, number][] = []
  const note = (name: string) => () => void ran.push([name, clock.now()])
  after(clock, 30, note('late'))
  const end = every(clock, 20, note('each'))
  after(clock, 20, note('beside'))
  t.equal(clock.nextAt(), 1_020)
  await clock.advanceTo(1_045, settled)
  t.strictSame(ran, [
    ['each', 1_020],
    ['beside', 1_020],
    ['late', 1_030],
    ['each', 1_040],
  ])
  t.equal(clock.now(), 1_045)
  end()
  await clock.advanceTo(2_000, settled)
  t.equal(ran.length, 4)
  t.equal(clock.nextAt(), Number.POSITIVE_INFINITY)
})

t.test('the clock stands still until what a timer started has settled', async t => {
  const clock = createEventClock(0)
  const gate = Promise.withResolvers<void>()
  const seen: number[] = []
  after(clock, 10, () => void gate.promise.then(() => seen.push(clock.now())))
  after(clock, 20, () => seen.push(clock.now()))
  let waits = 0
  await clock.advanceTo(50, async () => {
    waits += 1
    gate.resolve()
    await gate.promise
  })
  t.strictSame(seen, [10, 20])
  t.equal(waits, 2)
})

t.test('many timers come out sorted, those that were ended not at all', async t => {
  const clock = createEventClock(0)
  const ran: number[] = []
  for (let i = 0; i < 500; i++) {
    const ms = (i * 7_919) % 1_000
    const end = after(clock, ms, () => ran.push(ms))
    if (i % 5 === 0) end()
  }
  await clock.advanceTo(1_000, settled)
  t.equal(ran.length, 400)
  t.strictSame(
    ran,
    ran.toSorted((a, b) => a - b),
  )
})

t.test('a clock never goes back', t => {
  const clock = createEventClock(100)
  clock.moveTo(50)
  t.equal(clock.now(), 100)
  clock.moveTo(150)
  t.equal(clock.now(), 150)
  t.end()
})
