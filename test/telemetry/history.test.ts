// Without it the dashboard could show wrong rates, shares or latencies.

import t, { type Test } from 'tap'
import { createHistory, percentileOf } from '../../src/telemetry/history.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const setUp = async (t: Test) => {
  const clock = manualClock()
  const metrics = createMetrics({ clock, store: 'redis' })
  let steps = 0
  const history = createHistory(metrics.totals, clock, () => {
    steps += 1
  })
  t.teardown(history.close)
  const step = async (ms = 10_000) => {
    const before = steps
    clock.advance(ms)
    await until('the step is over', () => steps > before)
  }
  return { clock, metrics, history, step }
}

t.test('a point has the rates, the tiers and the latencies of its ten seconds alone', async t => {
  const { clock, metrics, history, step } = await setUp(t)
  t.strictSame(history.newest().requestsPerSecond, null, 'nothing before the first step')
  for (let i = 0; i < 90; i++) metrics.requestAnswered('weather', 200, 0.0007)
  for (let i = 0; i < 10; i++) metrics.requestAnswered('locations', 500, 0.2)
  for (let i = 0; i < 6; i++) metrics.cacheRead('hit', 'memory', 0)
  metrics.cacheRead('stale', 'memory', 0)
  for (let i = 0; i < 2; i++) metrics.cacheRead('hit', 'redis', 0)
  metrics.cacheRead('miss', 'provider', 0)
  await step()
  t.match(history.newest(), {
    requestsPerSecond: 10,
    errorsPerSecond: 1,
    hitShare: { memory: 0.7, shared: 0.2, provider: 0.1 },
  })
  const { p50, p90, p99 } = history.newest()
  t.ok(p50 !== null && p50 > 0.0005 && p50 <= 0.001, `p50 is ${p50}`)
  t.equal(p90, 0.001, 'the end of the bucket of the ninetieth')
  t.ok(p99 !== null && p99 > 0.1 && p99 <= 0.25, `p99 is ${p99}`)
  t.equal(history.recentHitShare(), 0.9)

  metrics.requestAnswered('locations', 200, 4)
  await step()
  const { points, endsAt } = history.points()
  t.equal(points.length, 360)
  t.equal(endsAt, clock.now())
  t.match(points.at(-1), {
    requestsPerSecond: 0.1,
    errorsPerSecond: 0,
    hitShare: { memory: null, shared: null, provider: null },
  })
  t.match(points.at(-2), { requestsPerSecond: 10 })
  t.match(points.at(-3), { requestsPerSecond: null, p50: null, hitShare: { memory: null } })
  t.equal(history.recentHitShare(), 0.9, 'over a minute')
  for (let i = 0; i < 6; i++) await step()
  t.equal(history.recentHitShare(), null)
})

t.test('reads that find no weather are misses, and other failures are none', async t => {
  const { metrics, history, step } = await setUp(t)
  for (let i = 0; i < 6; i++) metrics.cacheRead('hit', 'memory', 0)
  for (let i = 0; i < 3; i++) metrics.cacheReadFailed()
  for (let i = 0; i < 2; i++) metrics.requestAnswered('weather', 500, 0.2)
  metrics.requestAnswered('forecast', 500, 0.2)
  metrics.requestAnswered('locations', 500, 0.2)
  await step()
  t.match(history.newest().hitShare, { memory: 6 / 9, shared: 0, provider: 0 })
  t.equal(history.recentHitShare(), 6 / 9)
  t.equal(history.recentErrors(), 4)
  await step()
  t.match(history.newest().hitShare, { memory: null })
})

t.test('after an hour the oldest point goes, and a pause leaves a gap', async t => {
  const { metrics, history, step } = await setUp(t)
  metrics.requestAnswered('weather', 200, 0.001)
  await step()
  t.equal(history.newest().requestsPerSecond, 0.1)
  metrics.requestAnswered('weather', 200, 0.001)
  await step(358 * 10_000)
  const rates = () => history.points().points.map(({ requestsPerSecond }) => requestsPerSecond)
  t.equal(rates()[1], 0.1)
  t.ok(
    rates()
      .slice(2, -1)
      .every(rate => rate === null),
  )
  t.equal(rates().at(-1), 1 / 3_580, 'what was counted over the gap is its mean')
  await step()
  t.equal(rates().length, 360)
  t.equal(rates()[0], 0.1)
  await step()
  t.equal(rates()[0], null)
  await step(100 * 3_600_000)
  t.equal(rates().length, 360, 'a leap of days makes no longer ring')
})

t.test('a clock that goes back leaves one point without values', async t => {
  const { metrics, history, step } = await setUp(t)
  metrics.requestAnswered('weather', 200, 0.001)
  await step(-3_600_000)
  t.equal(history.newest().requestsPerSecond, null)
  metrics.requestAnswered('weather', 200, 0.001)
  await step()
  t.equal(history.newest().requestsPerSecond, 0.1)
})

t.test('a percentile is interpolated within its bucket', async t => {
  const bounds = [1, 2, 4]
  t.equal(percentileOf({ bounds, counts: [0, 0, 0, 0] }, 0.5), null)
  t.equal(percentileOf({ bounds: [], counts: [] }, 0.5), null)
  t.equal(percentileOf({ bounds, counts: [10, 0, 0, 0] }, 0.5), 0.5)
  t.equal(percentileOf({ bounds, counts: [0, 0, 10, 0] }, 0.5), 3)
  t.equal(percentileOf({ bounds, counts: [5, 0, 5, 0] }, 0.5), 1, 'an empty bucket between is passed over')
  t.equal(percentileOf({ bounds, counts: [5, 0, 5, 0] }, 0.6), 2.4)
  t.equal(percentileOf({ bounds, counts: [1, 0, 0, 9] }, 0.99), 4, 'beyond the last bound there is no end')
  t.equal(percentileOf({ bounds, counts: [4, 3, 2, 1] }, 0.7), 2)
})
