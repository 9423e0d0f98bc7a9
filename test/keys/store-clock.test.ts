// The measured offset of the store's clock, and the replies that are ignored.

import t from 'tap'
import { createStoreClock } from '../../src/keys/metering.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'

/** A store whose clock is `aheadMs` ahead and whose replies take `wayMs` each way. */
const setUp = (aheadMs: number, wayMs: number) => {
  const clock = manualClock()
  const state = { aheadMs, wayMs, away: false }
  const storeClock = createStoreClock(
    {
      time: async () => {
        if (state.away) throw new StoreError('away')
        clock.advance(state.wayMs)
        const time = clock.now() + state.aheadMs
        clock.advance(state.wayMs)
        return time
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
  t.test(`the clock follows a store that is ${aheadMs} ms ahead and ${wayMs} ms away`, async t => {
    const { clock, storeClock } = setUp(aheadMs, wayMs)
    t.equal(storeClock.now(), clock.now(), 'the same before the first measurement')
    await storeClock.measure()
    t.equal(storeClock.offsetMs(), aheadMs)
    clock.advance(1_234)
    t.equal(storeClock.now(), clock.now() + aheadMs)
  })

t.test('a difference within the time of the reply counts as none', async t => {
  const { storeClock } = setUp(100, 100)
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 0)
})

t.test('it is measured with the first reply that is not slow', async t => {
  const { state, storeClock } = setUp(5_000, 126)
  await storeClock.measure()
  t.equal(storeClock.isMeasured(), false, 'a slow reply')
  Object.assign(state, { away: true, wayMs: 0 })
  await storeClock.measure()
  t.equal(storeClock.isMeasured(), false, 'no reply')
  state.away = false
  await storeClock.measure()
  t.equal(storeClock.isMeasured(), true)
  state.away = true
  await storeClock.measure()
  t.equal(storeClock.isMeasured(), true, 'it stays so')
})

t.test('a slow reply, or none, keeps the former offset', async t => {
  const { state, storeClock } = setUp(5_000, 10)
  await storeClock.measure()
  Object.assign(state, { aheadMs: 9_000, wayMs: 126 })
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 5_000, 'a reply after 252 ms is ignored')
  state.away = true
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 5_000)
  Object.assign(state, { away: false, wayMs: 125 })
  await storeClock.measure()
  t.equal(storeClock.offsetMs(), 9_000)
})
