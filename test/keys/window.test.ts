// Without it a day could begin or end at the wrong instant, above all where summer time begins or ends.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { localDays } from '../../src/keys/window.ts'

t.test('a day is from one local midnight to the next, whichever of its instants is given', async t => {
  const rows = [
    ['Asia/Dhaka', '2026-11-21', '2026-11-20T18:00:00Z', '2026-11-21T18:00:00Z'],
    ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z'],
    ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z'],
  ] as const
  for (const [zone, name, start, end] of rows) {
    const [startsAt, endsAt] = [Date.parse(start), Date.parse(end)]
    const days = localDays(createCalendar(zone), 86_400_000)
    for (const instant of [startsAt, startsAt + 1, endsAt - 1])
      t.strictSame(days.at(instant), { name, startsAt, endsAt, keepUntil: endsAt + 86_400_000 })
    t.equal(days.at(endsAt).startsAt, endsAt, 'its end is the start of the next')
  }
})
