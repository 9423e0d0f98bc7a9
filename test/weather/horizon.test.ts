// Without it a stale timeline could end before it may be served last.

import t from 'tap'
import { createCalendar, hourMs, quarterHourMs, utcDayMs } from '../../src/common/calendar.ts'
import {
  coverageEndOf,
  horizonFor,
  pastDays,
  pastQuarterHours,
  stepsWithin,
} from '../../src/weather/horizon.ts'

t.test('the horizon grows with the time an entry may be served and with the hours of a response', async t => {
  t.strictSame(horizonFor(13 * hourMs, 48), { quarterHours: 54, days: 9 })
  t.strictSame(horizonFor(24 * hourMs, 48), { quarterHours: 98, days: 9 })
  t.strictSame(horizonFor(48 * hourMs, 48), { quarterHours: 194, days: 10 })
  t.strictSame(horizonFor(48 * hourMs, 168), { quarterHours: 194, days: 11 })
  t.strictSame(horizonFor(1, 1), { quarterHours: 6, days: 9 })
  t.strictSame(horizonFor(97 * hourMs, 168), { quarterHours: 390, days: 13 }, 'no day that weighs more')
})

t.test('a timeline reaches as long as it was fetched for, and little longer', async t => {
  const calendar = createCalendar('Asia/Dhaka')
  for (const [hours, hourly] of [
    [1, 1],
    [13, 48],
    [26.5, 48],
    [48, 168],
    [60, 168],
  ] as const)
    for (let fetchedAt = Date.parse('2026-11-21T06:07Z'), i = 0; i < 50; i++, fetchedAt += 31 * 60_000) {
      const lengths = stepsWithin(horizonFor(hours * hourMs, hourly))
      const offset = calendar.offsetSecondsAt(fetchedAt) * 1_000
      const today = Math.floor((fetchedAt + offset) / utcDayMs)
      const spans = {
        quarterHours: {
          start: (Math.floor(fetchedAt / quarterHourMs) - pastQuarterHours) * quarterHourMs,
          length: lengths.quarterHours,
        },
        hours: { start: (today - pastDays) * utcDayMs - offset, length: lengths.hours },
        days: { start: today - pastDays, length: lengths.days },
      }
      const reach = (coverageEndOf(spans, hourly) - fetchedAt) / hourMs
      t.ok(reach >= hours && reach < hours + 2, `${hours} h, ${hourly} hours: ${reach} h`)
    }
})
