// The number of instances that share a quota: the estimate is not too low after an outage either.

import t from 'tap'
import { createFleetSize, type FleetSize } from '../../src/keys/metering.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'

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

/** Heartbeats every five seconds, for a minute. */
const minuteOf = (size: FleetSize, clock: ManualClock, instances: number): void => {
  for (let i = 0; i < 12; i++) {
    clock.advance(5_000)
    size.onHeartbeat(instances)
  }
}

t.test('the size is the most of the last minute, and at least 1', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  size.onHeartbeat(5)
  clock.advance(6_000)
  size.onHeartbeat(2)
  t.equal(size.atMost(), 5)
  minuteOf(size, clock, 1)
  t.equal(size.atMost(), 1)
  minuteOf(size, clock, 0)
  t.equal(size.atMost(), 1, 'this one')
})

t.test('after an outage, or a jump of the clock, the former size stands for a minute more', async t => {
  for (const jumpMs of [70_000, 86_400_000, -3_600_000]) {
    const clock = manualClock()
    const size = createFleetSize(clock)
    size.onHeartbeat(3)
    clock.advance(6_000)
    size.onHeartbeat(3)
    clock.advance(jumpMs)
    // The heartbeats of the others come within seconds, as far as the store stays.
    size.onHeartbeat(1)
    t.equal(size.atMost(), 3, `${jumpMs} ms`)
    minuteOf(size, clock, 2)
    t.equal(size.atMost(), 2, `${jumpMs} ms`)
  }
})

t.test('a jump of the clock before the second heartbeat does not make the size known for long', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  size.onHeartbeat(1)
  clock.advance(-86_400_000)
  size.onHeartbeat(1)
  t.equal(size.atMost(), undefined)
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
