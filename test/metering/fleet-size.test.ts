// The number of instances that share a quota: the estimate is never too low.

import t from 'tap'
import { createFleetSize } from '../../src/metering/fleet-size.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('the size is unknown until the others can count this instance', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  clock.advance(60_000)
  t.equal(size.atMost(), undefined, 'no heartbeat yet')
  size.onHeartbeat(3)
  clock.advance(5_999)
  size.onHeartbeat(3)
  t.equal(size.atMost(), undefined)
  clock.advance(60_000)
  t.equal(size.atMost(), undefined, 'time alone proves nothing: the store may be away')
  size.onHeartbeat(4)
  t.equal(size.atMost(), 4)
})

t.test('the size is the most of the last minute, and 1 without a heartbeat for so long', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  size.onHeartbeat(5)
  clock.advance(30_000)
  size.onHeartbeat(2)
  t.equal(size.atMost(), 5)
  clock.advance(30_000)
  size.onHeartbeat(1)
  t.equal(size.atMost(), 2)
  clock.advance(60_000)
  size.onHeartbeat(0)
  t.equal(size.atMost(), 1, 'this one')
})

t.test('while heartbeats fail the last ones stand', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  size.onHeartbeat(4)
  clock.advance(6_000)
  size.onHeartbeat(4)
  clock.advance(3_600_000)
  t.equal(size.atMost(), 4)
})
