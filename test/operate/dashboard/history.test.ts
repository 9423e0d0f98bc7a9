// Without it, the charts of the dashboard could add up shares or drop the newest point.

import t from 'tap'
import { newestOf, stacked } from '../../../dashboard/page/history.js'

type Values = (number | null)[]

const endsAt = '2026-11-21T06:00:00.000Z'
const each = <Value>(value: () => Value) => ({
  ...{ requestsPerSecond: value(), errorsPerSecond: value(), p50: value(), p90: value(), p99: value() },
  hitShare: { memory: value(), shared: value(), provider: value() },
})
const historyOf = (values: Values) => ({ stepSeconds: 10, endsAt, ...each(() => [...values]) })
const pointOf = (value: number | null) => each(() => value)

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
