// Which plan carries what was spent: by whole days, and what less than that still says.

import t from 'tap'
import { hourMs, minuteMs } from '../../../src/common/calendar.ts'
import { smallestPlan, verdictsOf, wholeDaysOf } from '../../../src/load/report/plans.ts'

const hour = 3_600
const most = { minute: 60, hour: 500, day: 9_000 }
const whole = { days: 1, quietSeconds: 0, weight: 9_000 }
/** An instant each minute. */
const minutes = (from: number, to: number) =>
  Array.from({ length: (to - from) / minuteMs + 1 }, (_, i) => from + i * minuteMs)

t.test('whole days are the last ones, from 23 hours on', async t => {
  const of = (hours: number) => wholeDaysOf(minutes(0, hours * hourMs), 0, hours * hourMs)
  t.equal(of(22.9), undefined)
  t.match(of(23), { from: 0, days: 23 / 24, quietMs: 0 })
  t.match(of(24), { from: 0, days: 1 })
  // Not the evening of one day more.
  t.match(of(30), { from: 6 * hourMs, days: 1 })
  t.match(of(47.5), { from: 0, days: 47.5 / 24 })
})

t.test('gaps of more than an hour are quiet time', async t => {
  const end = 24 * hourMs
  const parted = [...minutes(0, hourMs), ...minutes(3 * hourMs, 4 * hourMs), end]
  t.match(wholeDaysOf(parted, 0, end), { quietMs: (2 + 20) * hourMs })
  // A warm-up that is not counted is no gap.
  t.match(wholeDaysOf(minutes(0, end + hourMs), hourMs, end + hourMs), { from: hourMs, quietMs: 0 })
})

t.test('the month is that of the mean whole day', async t => {
  const plan = (weight: number, days = 1) => {
    const spent = { most, weight, wholeDays: { ...whole, days, weight } }
    return smallestPlan(verdictsOf(spent))
  }
  t.strictSame(plan(10_000), { plan: 'free', isLeast: false })
  t.strictSame(plan(10_001), { plan: 'standard', isLeast: false })
  t.strictSame(plan(20_000, 2), { plan: 'free', isLeast: false })
  t.equal(plan(2e6), undefined)
})

t.test('less than a day names the plans that are too small, and no more', async t => {
  const plan = (weight: number) => smallestPlan(verdictsOf({ most, weight, wholeDays: null }))
  t.strictSame(plan(100), { plan: 'free', isLeast: true })
  t.strictSame(plan(20_000), { plan: 'standard', isLeast: true })
})

t.test('with quiet time a plan carries what it would carry without it', async t => {
  const plan = (quietSeconds: number) =>
    smallestPlan(verdictsOf({ most, weight: 9_000, wholeDays: { ...whole, quietSeconds } }))
  t.strictSame(plan(0.9 * hour), { plan: 'free', isLeast: false })
  t.strictSame(plan(2 * hour), { plan: 'free', isLeast: false })
  t.strictSame(plan(3 * hour), { plan: 'free', isLeast: true })
})
