// Without it requests without a response would make latencies look better than they are.

import { decodeFromCompressedBase64 } from 'hdr-histogram-js'
import t from 'tap'
import { createRecorder, type Observation, type Run } from '../../../../tools/load/replay/recorder.ts'
import { percentileDistribution } from '../../../../tools/load/report/histogram.ts'
import { replayResult } from '../../../../tools/load/report/result.ts'
import { drawnReplay } from '../report/drawn-results.ts'

const run: Run = { ...drawnReplay({ requests: 1 }), thresholds: [], seconds: 10 }

const hit = (more: Partial<Observation> = {}): Observation => ({
  endpoint: 'weather' as const,
  outcome: 'hit',
  status: 200,
  dueAt: 0,
  sentAt: 0,
  endedAt: 2,
  bytes: 100,
  ageSeconds: 60,
  ...more,
})

const unanswered = { endpoint: 'weather' as const }

t.test('latency counts from the due instant, not from the instant of sending', async t => {
  const recorder = createRecorder()
  recorder.record(hit({ dueAt: 0, sentAt: 500, endedAt: 502 }))
  const { latency, totals, steps } = recorder.result(run)
  t.equal(latency.count, 1)
  t.ok(Math.abs((latency.max ?? 0) - 502) < 1, `${latency.max} ms`)
  t.equal(totals.late, 1)
  t.equal(steps[0]?.late, 500)
})

t.test('what is due while a run warms up is not recorded, whatever became of it', async t => {
  const recorder = createRecorder(1, 2_000)
  for (const dueAt of [0, 1_999, 2_000, 2_500]) {
    const instants = { dueAt, sentAt: dueAt, endedAt: dueAt + (dueAt < 2_000 ? 900 : 1) }
    recorder.record(hit(instants))
    recorder.fail('timeout', { ...unanswered, ...instants })
    recorder.drop({ ...unanswered, dueAt, endedAt: dueAt + 1 })
  }
  const { latencies, totals, steps } = recorder.result(run)
  t.match(totals, { due: 6, sent: 4, answered: 2, dropped: 2, failed: { timeout: 2 } })
  for (const { max } of latencies) t.ok(max < 2, `${max} ms`)
  const dues = steps.map(({ due }) => due)
  t.strictSame(dues, [0, 0, 6])
})

t.test('the result has the form of a result, and its counts agree', async t => {
  const recorder = createRecorder()
  recorder.record(hit())
  recorder.record(hit({ dueAt: 1_000, sentAt: 1_000, endedAt: 1_020, outcome: 'miss', ageSeconds: 0 }))
  const unknown = { status: 404, outcome: 'none', endpoint: 'location', ageSeconds: undefined } as const
  recorder.record(hit({ dueAt: 1_500, sentAt: 1_500, endedAt: 1_501, ...unknown }))
  recorder.fail('timeout', { ...unanswered, dueAt: 2_000, sentAt: 2_001, endedAt: 12_000 })
  recorder.drop({ ...unanswered, dueAt: 2_500, endedAt: 7_500 })
  const result = recorder.result(run)
  replayResult.parse(result)
  const totals = { due: 5, sent: 4, answered: 3, failed: { timeout: 1 }, dropped: 1, late: 0, bytes: 300 }
  t.match(result.totals, totals)
  t.strictSame(result.statuses, { 200: 2, 404: 1 })
  t.strictSame(result.outcomes, { hit: 1, miss: 1, none: 1 })
  const counts = result.latencies.map(({ endpoint, outcome, count }) => `${endpoint} ${outcome} ${count}`)
  const ofWeather = ['dropped', 'failed', 'hit', 'miss'].map(outcome => `weather ${outcome} 1`)
  t.strictSame(counts, ['location none 1', ...ofWeather])
  t.match(result.steps, [
    { at: 0, due: 1, answered: 1, hits: 1, age50: 60, ageMax: 60 },
    { at: 1, due: 2, misses: 1, age50: 0 },
    { at: 2, due: 2, sent: 1, failed: 1, answered: 0 },
  ])
  t.strictSame(result.age, { p50: 0, p95: 60, max: 60 })
  t.equal(decodeFromCompressedBase64(result.histogram).totalCount, 5, 'all that were due')
  t.match(percentileDistribution(result.histogram), /Value\s+Percentile\s+TotalCount/)
})

t.test('the forms of two workers make the same result as one recorder', async t => {
  const [one, left, right] = [createRecorder(), createRecorder(), createRecorder()]
  for (let i = 0; i < 2_000; i++) {
    const observation = hit({ dueAt: i, sentAt: i + (i % 30), endedAt: i + 40 + (i % 50), ageSeconds: i })
    one.record(observation)
    const recorder = i % 3 === 0 ? left : right
    recorder.record(observation)
  }
  one.fail('reset', { ...unanswered, dueAt: 5, sentAt: 5, endedAt: 9 })
  left.fail('reset', { ...unanswered, dueAt: 5, sentAt: 5, endedAt: 9 })
  const merged = createRecorder()
  for (const part of [left, right]) merged.add(structuredClone(part.form()))
  const { histogram, ...expected } = one.result(run)
  const { histogram: found, ...rest } = merged.result(run)
  // The same counts may be encoded in two ways.
  const withoutHistograms = ({ steps, ...others }: typeof rest) => ({
    ...others,
    steps: steps.map(step => ({ ...step, histogram: undefined })),
  })
  t.strictSame(withoutHistograms(rest), withoutHistograms(expected))
  t.equal(decodeFromCompressedBase64(found).totalCount, decodeFromCompressedBase64(histogram).totalCount)
})

t.test('a request without a response is slower than every response', async t => {
  const recorder = createRecorder()
  for (let i = 0; i < 90; i++) recorder.record(hit({ dueAt: i, sentAt: i, endedAt: i + 2 }))
  for (let i = 90; i < 95; i++)
    recorder.fail('timeout', { ...unanswered, dueAt: i, sentAt: i, endedAt: i + 2_000 })
  for (let i = 95; i < 100; i++) recorder.drop({ ...unanswered, dueAt: i, endedAt: i + 5_000 })
  const { latency, latencies, steps } = recorder.result(run)
  t.equal(latency.count, 100)
  t.match(
    [latency.p50, latency.p90].map(ms => Math.round(ms ?? 0)),
    [2, 2],
  )
  t.match(latency, { mean: null, p99: null, p999: null, max: null })
  const atTheirTime = latencies.map(
    ({ outcome, count, p50 }) => `${outcome} ${count} ${Math.round(p50 / 100)}`,
  )
  t.strictSame(atTheirTime, ['dropped 5 50', 'failed 5 20', 'hit 90 0'])
  t.match(steps[0], { p99: null }, 'in the steps too')
  t.match(recorder.latency(90), { isAnswered: true })
  t.match(recorder.latency(91), { isAnswered: false })
  t.match(recorder.latency('mean'), { isAnswered: false })
  t.match(recorder.latency(100, { endpoint: 'weather' }), { isAnswered: false })
  t.match(recorder.latency(100, { outcome: 'hit' }), { isAnswered: true })
  // Refused at once, and still no answer: it does not make room for those before it.
  for (let i = 0; i < 900; i++) recorder.fail('refused', { ...unanswered, dueAt: i, sentAt: i, endedAt: i })
  t.match(recorder.latency(50), { isAnswered: false })
})

t.test('an answer counts in the step in which it came, so that a silent second shows', async t => {
  const recorder = createRecorder()
  // Of ten seconds the target says nothing in the fourth and fifth, then all at once.
  for (let ms = 0; ms < 10_000; ms += 100) {
    const endedAt = ms >= 3_000 && ms < 5_000 ? 5_050 : ms + 5
    recorder.record(hit({ dueAt: ms, sentAt: ms, endedAt }))
  }
  const { steps } = recorder.result(run)
  const bySecond = steps.map(({ answered }) => answered)
  t.strictSame(bySecond, [10, 10, 10, 0, 0, 30, 10, 10, 10, 10])
  t.strictSame(new Set(steps.map(({ due }) => due)), new Set([10]))
})

t.test('a long run keeps a bounded number of steps, and loses nothing', async t => {
  const recorder = createRecorder()
  for (let second = 0; second < 86_400; second += 10)
    recorder.record(hit({ dueAt: second * 1_000, sentAt: second * 1_000, endedAt: second * 1_000 + 1 }))
  const { steps, stepSeconds } = recorder.result(run)
  t.ok(steps.length <= 600 && steps.length > 300, `${steps.length} steps of ${stepSeconds} s`)
  t.equal(
    steps.reduce((sum, { answered }) => sum + answered, 0),
    8_640,
  )
  t.equal(steps.at(-1)?.at, (steps.length - 1) * stepSeconds)
})

t.test('by a moved clock the step is of that clock, the latency of the machine', async t => {
  const recorder = createRecorder(60)
  recorder.record(hit({ at: 3_600_000 }))
  recorder.record(hit({ at: 3_600_000, movedEnd: 3_660_000 }))
  const { steps, latency } = recorder.result(run)
  t.equal(steps.length, 62)
  t.strictSame([steps[60]?.due, steps[60]?.answered, steps[61]?.answered], [2, 1, 1])
  t.ok((latency.max ?? 9) < 2.01, `${latency.max} ms`)
})
