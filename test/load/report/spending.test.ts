// What a rehearsal spends: by day, by window and between instants, from counts that only grow.

import t from 'tap'
import { createSpending } from '../../../src/load/report/spending.ts'

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
