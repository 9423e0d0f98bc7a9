// How many instances a share is reckoned by: never too few.

import t from 'tap'
import { createFleetSize } from '../../src/metering/fleet-size.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('nothing is known until the others can know of this instance', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  clock.advance(60_000)
  t.equal(size.atMost(), undefined, 'no pulse yet')
  size.saw(3)
  clock.advance(5_999)
  size.saw(3)
  t.equal(size.atMost(), undefined)
  clock.advance(60_000)
  t.equal(size.atMost(), undefined, 'time alone says nothing: the store may be away')
  size.saw(4)
  t.equal(size.atMost(), 4)
})

t.test('the most of the last minute counts, and one when there was no pulse for so long', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  size.saw(5)
  clock.advance(30_000)
  size.saw(2)
  t.equal(size.atMost(), 5)
  clock.advance(30_000)
  size.saw(1)
  t.equal(size.atMost(), 2)
  clock.advance(60_000)
  size.saw(0)
  t.equal(size.atMost(), 1, 'this one')
})

t.test('while pulses fail the last sightings stand', async t => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  size.saw(4)
  clock.advance(6_000)
  size.saw(4)
  clock.advance(3_600_000)
  t.equal(size.atMost(), 4)
})
