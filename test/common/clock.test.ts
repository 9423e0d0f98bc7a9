// Without it an instant that was taken before a clock was corrected could stay wrong by years.

import t from 'tap'
import { presentInstant } from '../../src/common/clock.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('an instant follows a corrected clock, so that an age stays the time that passed', async t => {
  // As on a board without a battery, before it has asked for the time.
  let elapsedMs = 5_000
  const clock = { ...manualClock(0), elapsed: () => elapsedMs }
  const startedAt = presentInstant(clock)
  elapsedMs += 60_000
  clock.advance(61_000)
  t.equal(startedAt(), 0, 'a clock that is a little fast changes nothing')
  clock.set('2026-11-28T00:00:00Z')
  t.equal(clock.now() - startedAt(), 60_000)
  elapsedMs += 3_600_000
  clock.advance(3_600_000)
  t.equal(clock.now() - startedAt(), 3_660_000)
})
