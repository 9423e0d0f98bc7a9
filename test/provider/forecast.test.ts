// Without it operators could read a wrong instant at which a budget runs out.

import t from 'tap'
import { hourMs, minuteMs, utcDayMs } from '../../src/common/calendar.ts'
import { createForecast, type SpendingNow } from '../../src/provider/forecast.ts'

const midnight = Date.parse('2026-11-21T00:00:00Z')
const noon = midnight + utcDayMs / 2
const day = (used: number, limit = 1_000): SpendingNow => ({
  name: 'day',
  limit,
  used,
  resetsAt: midnight + utcDayMs,
})
const minute = (used: number, at: number, limit = 100): SpendingNow => ({
  name: 'minute',
  limit,
  used,
  resetsAt: (Math.floor(at / minuteMs) + 1) * minuteMs,
})

t.test('without a record of an hour the rate is the mean since the window began', async t => {
  const forecast = createForecast()
  t.equal(forecast.exhaustedAt(day(600), noon), midnight + 20 * hourMs, 'spent 600 in 12 hours, 400 are left')
  t.equal(forecast.exhaustedAt(day(500), noon), null, 'it resets at the very instant')
  t.equal(forecast.exhaustedAt(day(0), noon), null, 'nothing is spent')
  t.equal(forecast.exhaustedAt(day(0), midnight), null, 'the window begins')
  t.equal(forecast.exhaustedAt(day(5), midnight), null)
})

t.test('a window that is used up is so now, whatever the rate', async t => {
  const forecast = createForecast()
  t.equal(forecast.exhaustedAt(day(1_000), noon), noon)
  t.equal(forecast.exhaustedAt(day(1_200), noon), noon)
  t.ok((forecast.exhaustedAt(day(999), noon) ?? 0) > noon)
  for (const at of [noon - hourMs, noon]) forecast.record([day(1_000)], at)
  t.equal(forecast.exhaustedAt(day(1_000), noon), noon, 'nor where nothing is spent')
})

t.test('the rate of a minute is that of half of it, of an hour that of ten minutes', async t => {
  for (const [name, overMs] of [
    ['minute', minuteMs / 2],
    ['hour', 10 * minuteMs],
    ['day', hourMs],
  ] as const) {
    const window = (used: number): SpendingNow => ({ name, limit: 20, used, resetsAt: noon + utcDayMs })
    const stepMs = overMs / 30
    /** The forecast where 10 were spent so many steps ago. */
    const after = (steps: number) => {
      const forecast = createForecast()
      for (let step = 61; step >= 0; step--)
        forecast.record([window(step <= steps ? 10 : 0)], noon - step * stepMs)
      return forecast
    }
    t.equal(after(30).exhaustedAt(window(10), noon), null, name)
    const recent = after(29)
    t.equal(recent.exhaustedAt(window(10), noon), noon + overMs, name)
    for (const used of [5, 10]) recent.record([window(used)], noon)
    t.equal(recent.exhaustedAt(window(10), noon), noon + (2 * overMs) / 3, 'spent again, it counts again')
  }
})

t.test('the rate is that of the last hour, and not that of the day', async t => {
  const forecast = createForecast()
  // 600 until eleven, 100 an hour from then on.
  for (let at = noon - hourMs; at <= noon; at += 10_000)
    forecast.record([day(600 + (100 * (at - noon + hourMs)) / hourMs)], at)
  t.equal(forecast.exhaustedAt(day(700), noon), noon + 3 * hourMs)
  // An hour without spending.
  for (let at = noon; at <= noon + 2 * hourMs; at += 10_000) forecast.record([day(700)], at)
  t.equal(forecast.exhaustedAt(day(700), noon + 2 * hourMs), null)
})

t.test('the rate goes on where a window ends, and corrections are no spending', async t => {
  const forecast = createForecast()
  // One a second, so that each minute begins anew with 60 spent at its end.
  for (let second = 0; second <= 65; second += 1)
    forecast.record([minute(second % 60, noon + second * 1000)], noon + second * 1000)
  const at = noon + 65_000
  t.equal(forecast.exhaustedAt(minute(5, at, 60), at), null, '55 are left, and 55 seconds')
  const soon = forecast.exhaustedAt(minute(5, at, 50), at) ?? 0
  t.ok(Math.abs(soon - (at + 45_000)) < 3_000, `45 are left: ${soon - at} ms`)
  const before = forecast.exhaustedAt(minute(5, at, 50), at)
  forecast.record([minute(1, at)], at)
  forecast.record([minute(5, at)], at)
  const after = forecast.exhaustedAt(minute(5, at, 50), at) ?? 0
  t.ok(after < (before ?? 0), 'a count that was given back and spent again counts as spent once more')
})

t.test('a clock that goes back forgets the rate and throws nothing', async t => {
  const forecast = createForecast()
  for (let at = noon - 2 * hourMs; at <= noon; at += minuteMs) forecast.record([day(10)], at)
  forecast.record([day(600)], noon - hourMs)
  const at = noon - hourMs
  t.equal(
    forecast.exhaustedAt(day(600), at),
    Math.ceil(at + (400 * 11 * hourMs) / 600),
    'the mean of the window again',
  )
})
