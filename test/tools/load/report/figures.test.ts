// Without it provider weight could be counted in the wrong window, or a worse setting be marked best.

import t from 'tap'
import { createProviderWeight } from '../../../../tools/load/report/provider-weight.ts'
import { paretoOptimal } from '../../../../tools/load/report/run-figures.ts'
import { createCounters, servedShare } from '../../../../tools/load/what-if/counters.ts'

const at = (text: string): number => Date.parse(`2026-11-${text}Z`)

t.test('weight belongs to the window of the instant at which it was counted', async t => {
  const spending = createProviderWeight()
  spending.record(at('21T23:58:30'), { calls: 1, weight: 10, refused: 0 })
  spending.record(at('21T23:58:59'), { calls: 2, weight: 25, refused: 0 })
  spending.record(at('21T23:59:00'), { calls: 3, weight: 45, refused: 1 })
  spending.record(at('21T23:59:30'), { calls: 3, weight: 45, refused: 1 })
  spending.record(at('22T00:00:00'), { calls: 5, weight: 50.5, refused: 1 })
  t.strictSame(spending.days(), [
    { day: '2026-11-21', requests: 3, weight: 45 },
    { day: '2026-11-22', requests: 2, weight: 5.5 },
  ])
  t.strictSame(spending.most(), { minute: 25, hour: 45, day: 45 })
  t.strictSame(spending.total, { calls: 5, weight: 50.5, refused: 1 })
  t.equal(spending.weightBetween(at('21T23:58:59'), at('22T00:00:00')), 35)
})

const optimal = (...merits: number[][]): number[] => [...paretoOptimal(merits)]

t.test('no other beats them', async t => {
  t.strictSame(optimal([0.83, -34_068], [0.897, -18_660], [0.911, -14_532]), [2])
  t.strictSame(optimal([0.8, -10], [0.9, -20], [0.7, -15]), [0, 1])
  t.strictSame(optimal([1, 1], [1, 1]), [0, 1], 'equal ones')
  t.strictSame(optimal(), [])
})

t.test('what failed is no answer with weather', async t => {
  const counters = createCounters(() => 0, 60_000, 0)
  for (const outcome of ['hit', 'hit', 'stale', 'miss'] as const) {
    counters.request()
    counters.onRead(outcome, 'memory', 0)
  }
  counters.request()
  counters.failed()
  const figures = counters.figures()
  t.match(figures, { weather: 5, failed: 1, hitShare: 0.5 })
  t.equal(servedShare(figures.stale, figures), 0.25)
  t.equal(servedShare(0, { weather: 2, failed: 2 }), 0, 'all failed')
})
