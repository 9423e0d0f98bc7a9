// The history of the dashboard's charts: points that join it in order, late, after a pause, and shares that are stacked.

import t from 'tap'
import { extend, newestOf, stacked } from '../../../src/operate/dashboard/page/history.js'

type Values = (number | null)[]

const endsAt = '2026-11-21T06:00:00.000Z'
const each = <Value>(value: () => Value) => ({
  ...{ requestsPerSecond: value(), errorsPerSecond: value(), p50: value(), p90: value(), p99: value() },
  hitShare: { memory: value(), shared: value(), provider: value() },
})
const historyOf = (values: Values) => ({ stepSeconds: 10, endsAt, ...each(() => [...values]) })
const pointOf = (value: number | null) => each(() => value)

t.test('a point replaces the newest within its step, and moves the hour on after it', t => {
  const cases: [secondsLater: number, wanted: Values, endsAt: string][] = [
    [-20, [1, 2, 3, 4], endsAt],
    [0, [1, 2, 3, 9], endsAt],
    [9.9, [1, 2, 3, 9], endsAt],
    [10, [2, 3, 4, 9], '2026-11-21T06:00:10.000Z'],
    [25, [3, 4, null, 9], '2026-11-21T06:00:20.000Z'],
    [86_400, [null, null, null, 9], '2026-11-22T06:00:00.000Z'],
  ]
  for (const [later, wanted, end] of cases) {
    const history = historyOf([1, 2, 3, 4])
    extend(history, pointOf(9), new Date(Date.parse(endsAt) + later * 1000).toISOString())
    t.strictSame(history, { ...historyOf(wanted), endsAt: end }, `${later} s`)
  }
  t.end()
})

t.test('shares lie on one another, and what is not known stays so', t => {
  t.strictSame(
    stacked([
      [0.5, null, 1],
      [0.25, null, null],
      [0.25, 1, 0],
    ]),
    [
      [0.5, null, 1],
      [0.75, null, null],
      [1, 1, 0],
    ],
  )
  t.end()
})

t.test('the newest point is the last of each', t => {
  t.strictSame(newestOf(historyOf([1, 2, 3])), pointOf(3))
  t.strictSame(newestOf(historyOf([])), pointOf(null))
  t.end()
})
