// The store's clock as this machine tells it: what is measured, and what is not believed.

import t from 'tap'
import { createStoreClock } from '../../src/metering/store-clock.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'

/** A store whose clock is so far ahead, and whose reply takes so long each way. */
const setUp = (aheadMs: number, wayMs: number) => {
  const clock = manualClock()
  const state = { aheadMs, wayMs, away: false }
  const storeClock = createStoreClock(
    {
      time: async () => {
        if (state.away) throw new StoreError('away')
        clock.advance(state.wayMs)
        const told = clock.now() + state.aheadMs
        clock.advance(state.wayMs)
        return told
      },
    },
    clock,
  )
  return { clock, state, storeClock }
}

for (const [aheadMs, wayMs] of [
  [90_000, 0],
  [-90_000, 40],
  [300, 125],
] as const)
  t.test(`a store that is ${aheadMs} ms ahead, ${wayMs} ms away, is told the time of`, async t => {
    const { clock, storeClock } = setUp(aheadMs, wayMs)
    t.equal(storeClock.now(), clock.now(), 'the same until it was measured')
    await storeClock.measure()
    t.equal(storeClock.offsetMs(), aheadMs)
    clock.advance(1_234)
    t.equal(storeClock.now(), clock.now() + aheadMs)
  })

t.test('what lies within the reply may well be no difference', async t => {
  const { storeClock } = setUp(100, 100)
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 0)
})

t.test('a slow reply, and none, leave what was measured before', async t => {
  const { state, storeClock } = setUp(5_000, 10)
  await storeClock.measure()
  Object.assign(state, { aheadMs: 9_000, wayMs: 126 })
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 5_000, '252 ms say too little')
  state.away = true
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 5_000)
  Object.assign(state, { away: false, wayMs: 125 })
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 9_000)
})
