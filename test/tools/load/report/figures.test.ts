// Figures of runs from their counts: what was spent by day and window, which plan carries it, the settings that no other beats, and
// shares of answers.

import t from 'tap'
import { hourMs, minuteMs } from '../../../../src/common/calendar.ts'
import { smallestPlan, verdictsOf, wholeDaysOf } from '../../../../tools/load/report/plans.ts'
import { paretoOptimal } from '../../../../tools/load/report/run-figures.ts'
import { createSpending } from '../../../../tools/load/report/spending.ts'
import { createTally, servedShare } from '../../../../tools/load/what-if/tally.ts'

const at = (text: string): number => Date.parse(`2026-11-${text}Z`)

t.test('weight belongs to the window of the instant at which it was counted', async t => {
  const spending = createSpending()
  spending.record(at('21T23:58:30'), { calls: 1, weight: 10, refused: 0 })
  spending.record(at('21T23:58:59'), { calls: 2, weight: 25, refused: 0 })
  spending.record(at('21T23:59:00'), { calls: 3, weight: 45, refused: 1 })
  spending.record(at('21T23:59:30'), { calls: 3, weight: 45, refused: 1 })
  spending.record(at('22T00:00:00'), { calls: 5, weight: 50.5, refused: 1 })
  t.strictSame(spending.days(), [
    { day: '2026-11-21', requests: 3, weight: 45 },
    { day: '2026-11-22', requests: 2, weight: 5.5 },
  ])
  t.strictSame(spending.spent(undefined), {
    most: { minute: 25, hour: 45, day: 45 },
    weight: 50.5,
    wholeDays: null,
  })
  const wholeDays = { from: at('21T23:59:00'), days: 1, quietMs: 2_000 }
  t.strictSame(spending.spent(wholeDays).wholeDays, { days: 1, quietSeconds: 2, weight: 25.5 })
  t.strictSame(spending.total, { calls: 5, weight: 50.5, refused: 1 })
  t.equal(spending.weightBetween(at('21T23:58:59'), at('22T00:00:00')), 35)
})

t.test('without a request there is nothing', async t => {
  const spending = createSpending()
  spending.record(at('21T00:00:00'), { calls: 0, weight: 0, refused: 0 })
  t.strictSame(spending.days(), [])
  t.equal(spending.spent(undefined).most.day, 0)
  t.equal(spending.weightBetween(0, at('22T00:00:00')), 0)
})

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

const optimal = (...merits: number[][]): number[] => [...paretoOptimal(merits)]

t.test('no other beats them', async t => {
  t.strictSame(optimal([0.83, -34_068], [0.897, -18_660], [0.911, -14_532]), [2])
  t.strictSame(optimal([0.8, -10], [0.9, -20], [0.7, -15]), [0, 1])
  t.strictSame(optimal([1, 1], [1, 1]), [0, 1], 'equal ones')
  t.strictSame(optimal(), [])
})

t.test('what failed is no answer with weather', async t => {
  const tally = createTally(() => 0, 60_000, 0)
  for (const outcome of ['hit', 'hit', 'stale', 'miss'] as const) {
    tally.request()
    tally.onRead(outcome, 'memory', 0)
  }
  tally.request()
  tally.failed()
  const figures = tally.figures()
  t.match(figures, { weather: 5, failed: 1, hitShare: 0.5 })
  t.equal(servedShare(figures.stale, figures), 0.25)
  t.equal(servedShare(0, { weather: 2, failed: 2 }), 0, 'all failed')
})
