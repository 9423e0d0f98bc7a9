// Without it test keys could get impossible weather, or other weather each time.

import t from 'tap'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import { horizonFor, stepsWithin } from '../../src/weather/horizon.ts'
import { isPlausible } from '../../src/weather/ranges.ts'
import { syntheticTimeline } from '../../src/weather/synthetic-timeline.ts'
import { createTimelineText } from '../../src/weather/timeline-text.ts'

const noon = Date.parse('2026-04-14T06:00Z')
const calendar = createCalendar('Asia/Dhaka')
const lengths = stepsWithin(horizonFor(hourMs, 168))
const timelineOf = (seed: number) => syntheticTimeline(noon, lengths, calendar, seed)
const text = createTimelineText(calendar)
const seeds = Array.from({ length: 200 }, (_, i) => (i - 100) * 7_654_321)

t.test('every number is possible, and those of Bangladesh in April', async t => {
  for (const seed of seeds) {
    const timeline = timelineOf(seed)
    t.ok(isPlausible(timeline))
    const { temperature_2m: hours } = JSON.parse(text.hourly(timeline, noon, 168) ?? '')
    t.ok(
      Math.min(...hours) > 18 && Math.max(...hours) < 38,
      `${Math.min(...hours)} to ${Math.max(...hours)} °C`,
    )
  }
})

t.test('a seed has the same weather each time, and another one other weather', async t => {
  const texts = new Set(seeds.map(seed => text.hourly(timelineOf(seed), noon, 48)))
  t.equal(texts.size, seeds.length)
  t.strictSame(timelineOf(5), timelineOf(5))
})

t.test('now, hours and days agree: it is bright at noon, dark at night, and rains in some hours', async t => {
  let rains = 0
  for (const seed of seeds.slice(0, 40)) {
    const timeline = timelineOf(seed)
    const now = JSON.parse(text.current(timeline, noon) ?? '')
    const hours = JSON.parse(text.hourly(timeline, noon - 12 * hourMs, 168) ?? '')
    const days = JSON.parse(text.daily(timeline, noon, 7) ?? '')
    t.strictSame(
      [hours.time[12], now.time, days.time[0]],
      ['2026-04-14T12:00', '2026-04-14T12:00', '2026-04-14'],
    )
    t.strictSame([now.is_day, hours.is_day[0], hours.is_day[12]], [1, 0, 1])
    for (const name of ['temperature_2m', 'precipitation', 'weather_code'])
      t.equal(now[name], hours[name][12])
    for (let day = 0; day < 7; day++) {
      const of = (name: string): number[] => hours[name].slice(24 * day, 24 * day + 24)
      t.equal(days.temperature_2m_max[day], Math.max(...of('temperature_2m')))
      t.equal(days.temperature_2m_min[day], Math.min(...of('temperature_2m')))
      t.equal(days.precipitation_probability_max[day], Math.max(...of('precipitation_probability')))
      t.equal(days.weather_code[day], Math.max(...of('weather_code')))
    }
    hours.precipitation.forEach((mm: number, i: number) => {
      if (mm > 0) rains += 1
      t.equal(mm > 0, hours.weather_code[i] === 80)
    })
  }
  t.ok(rains > 100 && rains < 40 * 168 * 0.2, `${rains} hours with rain`)
})
