// Slices of timelines by instant, and the size of a timeline in memory.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { bytesOf } from '../../src/weather/timeline.ts'
import { currentAt, daysFrom, hoursFrom } from '../support/slices.ts'
import { sampleTimeline } from './sample-timeline.ts'

const calendar = createCalendar('Asia/Dhaka')
const timeline = sampleTimeline()
const at = (iso: string) => Date.parse(iso)

t.test('a slice outside of the timeline is undefined, never a shorter or another one', async t => {
  t.equal(currentAt(timeline, at('2026-11-21T05:59:59Z'), calendar), undefined)
  t.ok(currentAt(timeline, at('2026-11-21T20:59:59Z'), calendar))
  t.equal(currentAt(timeline, at('2026-11-21T21:00:00Z'), calendar), undefined)
  t.ok(daysFrom(timeline, at('2026-11-23T12:00Z'), calendar, 7))
  t.equal(daysFrom(timeline, at('2026-11-23T18:00Z'), calendar, 7), undefined)
  t.equal(hoursFrom(timeline, at('2026-11-28T18:00Z'), calendar, 48), undefined)
  t.equal(hoursFrom(timeline, at('2026-11-20T17:59Z'), calendar, 1), undefined)
})

t.test('a missing value is null, and decimals come back as the provider wrote them', async t => {
  const column = timeline.values
  const written = [24.6, 1013.2, 0.05, -12.34, 0, -0]
  for (const value of written) {
    column[1] = value
    const current = currentAt(timeline, at('2026-11-21T06:15Z'), calendar)
    t.equal(JSON.stringify(current?.temperature_2m), JSON.stringify(value))
  }
  column[1] = Number.NaN
  t.equal(currentAt(timeline, at('2026-11-21T06:15Z'), calendar)?.temperature_2m, null)
  column[1] = 100.01
})

t.test('the computed size of a timeline is its real size', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const taken = () => {
    for (let i = 0; i < 4; i++) collect()
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    return arrayBuffers + heapUsed
  }
  const kept: unknown[] = new Array(2_000).fill(sampleTimeline())
  const before = taken()
  for (let i = 0; i < kept.length; i++) kept[i] = sampleTimeline({ quarterHours: 102, days: 10 })
  const each = (taken() - before) / kept.length
  const bytes = bytesOf(kept[0] as typeof timeline)
  t.ok(Math.abs(bytes - each) < bytes * 0.03, `${bytes} bytes said, ${each.toFixed(0)} taken`)
  // One buffer, no larger than its values.
  const { values } = kept[0] as typeof timeline
  t.equal(values.length, 102 * 15 + 240 * 11 + 10 * 4)
  t.equal(values.buffer.byteLength, values.length * 4)
})
