// The length of timelines for a configuration.

import t from 'tap'
import { hourMs } from '../../src/calendar.ts'
import { horizonFor } from '../../src/weather/horizon.ts'

t.test('the horizon grows with the time an entry may be served and with the hours of a response', t => {
  t.strictSame(horizonFor(13 * hourMs, 48), { quarterHours: 54, days: 9 })
  t.strictSame(horizonFor(24 * hourMs, 48), { quarterHours: 98, days: 9 })
  t.strictSame(horizonFor(48 * hourMs, 48), { quarterHours: 194, days: 10 })
  t.strictSame(horizonFor(48 * hourMs, 168), { quarterHours: 194, days: 11 })
  t.strictSame(horizonFor(1, 1), { quarterHours: 6, days: 9 })
  t.end()
})
