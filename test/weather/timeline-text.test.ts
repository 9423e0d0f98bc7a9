// Without it a body could differ from the JSON of its numbers.

import fc from 'fast-check'
import t from 'tap'
import { createCalendar, hourMs, quarterHourMs, utcDayMs } from '../../src/common/calendar.ts'
import { layOut } from '../../src/weather/timeline.ts'
import { createTimelineText } from '../../src/weather/timeline-text.ts'
import { currentAt, daysFrom, hoursFrom } from './slices.ts'

const start = Date.parse('2026-11-20T18:00Z')
const value = fc.oneof(
  fc.constant(Number.NaN),
  fc.constant(-0),
  fc.integer({ min: -8191, max: 8191 }),
  fc.integer({ min: -819_100, max: 819_100 }).map(hundredths => hundredths / 100),
)

for (const zone of ['Asia/Dhaka', 'Asia/Kathmandu', 'Europe/Berlin'])
  t.test(`slices in ${zone}`, async t => {
    const calendar = createCalendar(zone)
    const text = createTimelineText(calendar)
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 30, maxLength: 60 }),
        fc.integer({ min: -2 * hourMs, max: 3 * utcDayMs }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 7 }),
        (numbers, after, count, days) => {
          const timeline = layOut(
            start,
            { start, length: 40 },
            { start, length: 60 },
            { start: Math.floor(start / utcDayMs) + 1, length: 8 },
          )
          timeline.values.forEach((_, i) => {
            timeline.values[i] = numbers[i % numbers.length] ?? 0
          })
          const now = start + after
          return (
            text.current(timeline, now) === JSON.stringify(currentAt(timeline, now, calendar)) &&
            text.hourly(timeline, now, count) === JSON.stringify(hoursFrom(timeline, now, calendar, count)) &&
            text.daily(timeline, now, days) === JSON.stringify(daysFrom(timeline, now, calendar, days))
          )
        },
      ),
      { numRuns: 300 },
    )
    const short = layOut(start, { start, length: 1 }, { start, length: 0 }, { start: 0, length: 0 })
    t.equal(text.current(short, start + quarterHourMs), undefined)
  })

t.test('numbers of all sorts do not pile up', async t => {
  const calendar = createCalendar('UTC')
  const timeline = layOut(start, { start, length: 4_000 }, { start, length: 4_000 }, { start: 0, length: 0 })
  timeline.values.forEach((_, i) => {
    timeline.values[i] = i / 16
  })
  const hours = JSON.stringify(hoursFrom(timeline, start, calendar, 4_000))
  t.equal(createTimelineText(calendar).hourly(timeline, start, 4_000), hours)
})
