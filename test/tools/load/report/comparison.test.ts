// Without it noise could be reported as a difference, or a slower gateway pass.

import t from 'tap'
import { createRecorder } from '../../../../tools/load/replay/recorder.ts'
import { warningsOf } from '../../../../tools/load/report/comparability.ts'
import { comparePage } from '../../../../tools/load/report/compare-page.ts'
import { changeLimitOf, differences, limitVerdicts } from '../../../../tools/load/report/comparison.ts'
import { percentileDistribution } from '../../../../tools/load/report/histogram.ts'
import type { ReplayResult } from '../../../../tools/load/report/result.ts'
import { type Drawn, drawnRehearsal, drawnReplay } from './drawn-results.ts'

/** Five runs of one target, each with its own seed. */
const side = (from: number, drawn: Drawn = {}, changes: Partial<ReplayResult> = {}): ReplayResult[] =>
  Array.from({ length: 5 }, (_, i) =>
    drawnRehearsal({ requests: 2_000, seed: 100 * from + i, ...drawn }, { kind: 'replay', ...changes }),
  )
const base = side(10)

const verdicts = (a: readonly ReplayResult[], b: readonly ReplayResult[]) =>
  Object.fromEntries(differences(a, b).map(({ metric, verdict }) => [metric, verdict]))

t.test('of five runs a side real differences are found, and equal runs differ by noise', async t => {
  const slower = side(20, { slow: 1.4 })
  t.hasStrict(verdicts(base, slower), {
    p50: 'worse',
    p90: 'worse',
    hits: 'noise',
    weight: 'noise',
    cpu: 'noise',
  })
  t.hasStrict(verdicts(slower, base), { p50: 'better', p90: 'better' })
  const longer = side(20, { hitShare: 0.93 })
  t.hasStrict(verdicts(base, longer), { p50: 'noise', hits: 'better', weight: 'better' })
  t.hasStrict(verdicts(base, side(20, { failing: 0.05 })), { errors: 'worse', p99: 'worse', max: 'worse' })
  const real = [30, 40, 50, 60].flatMap(from =>
    Object.values(verdicts(base, side(from))).filter(verdict => verdict !== 'noise'),
  )
  t.strictSame(real, [])
})

t.test('medians are compared, and one run with a pause moves none', async t => {
  const [p50] = differences(base, base)
  const own = base.map(({ histogram, latency }) => [histogram, latency.p50 ?? 0] as const)
  const sorted = own.map(([, ms]) => ms).sort((a, b) => a - b)
  t.hasStrict(p50, { metric: 'p50', a: { value: sorted[2], low: sorted[0], high: sorted[4] }, change: 0 })
  const paused = [...side(20, { slow: 1.4 }).slice(0, 4), drawnRehearsal({ slow: 1e4 }, { kind: 'replay' })]
  t.hasStrict(verdicts(base, paused), { p50: 'worse' })
  t.hasStrict(verdicts(base, [...side(20).slice(0, 4), ...paused.slice(4)]), { p50: 'noise' })
})

t.test('a significant gap under a tenth is noise; of provider weight a hundredth', async t => {
  const by = (factor: number) =>
    base.map(run => ({
      ...run,
      provider: { requests: 1, weight: (run.provider?.weight ?? 0) * factor, windows: [] },
    }))
  const equal = base.map((run, i) => ({
    ...run,
    provider: { requests: 1, weight: 1_000 + i / 10, windows: [] },
  }))
  const weighing = (factor: number) =>
    equal.map(run => ({ ...run, provider: { ...run.provider, weight: run.provider.weight * factor } }))
  t.hasStrict(verdicts(equal, weighing(1.005)), { weight: 'noise' })
  t.hasStrict(verdicts(equal, weighing(1.02)), { weight: 'worse' })
  t.hasStrict(verdicts(base, by(0.5)), { weight: 'better' })
  const used = (bytes: number) =>
    base.map((run, i) => ({
      ...run,
      gateway: { cpuSeconds: 1, memoryBytes: bytes + i, loopDelayP50: 1, loopDelayP99: 1 },
    }))
  t.hasStrict(verdicts(used(1e8), used(1.05e8)), { memory: 'noise' })
  t.hasStrict(verdicts(used(1e8), used(1.2e8)), { memory: 'worse' })
  const hitting = (hit: number) =>
    base.map((run, i) => ({ ...run, outcomes: { hit: hit + i, miss: 1_000 - hit - i } }))
  t.hasStrict(verdicts(hitting(955), hitting(970)), { hits: 'better' })
})

t.test('fewer runs, or disturbed ones, have numbers and no verdict', async t => {
  const slower = side(20, { slow: 1.4 })
  const none = (a: readonly ReplayResult[], b: readonly ReplayResult[]) =>
    t.strictSame([...new Set(Object.values(verdicts(a, b)))], [null])
  none(base.slice(0, 1), slower.slice(0, 1))
  none(base.slice(0, 4), slower)
  const [one] = slower as [ReplayResult]
  for (const changes of [
    { interrupted: true },
    { generator: { ...one.generator, saturated: true, reason: 'its core was full' } },
    { generator: { ...one.generator, loopDelayP99: 25 } },
  ]) {
    const disturbed = slower.map(run => ({ ...run, ...changes }))
    none(base, disturbed)
    none(disturbed, base)
    t.has(verdicts(base, [...slower.slice(0, 3), ...disturbed.slice(3)]), { p50: 'worse' }, 'two of five')
  }
})

t.test('requests that are reset make percentiles longer, however soon they end', async t => {
  /** Of 1,000 requests a share is reset in a tenth of the time of a response. */
  const resetting = (share: number): ReplayResult => {
    const recorder = createRecorder()
    for (let i = 0; i < 1_000; i += 1) {
      const of = { endpoint: 'weather', dueAt: i * 10, sentAt: i * 10, endedAt: i * 10 + 5 } as const
      if (i % 10 < 10 * share) recorder.fail('reset', { ...of, endedAt: i * 10 + 0.5 })
      else recorder.record({ ...of, outcome: 'hit', status: 200, bytes: 3_000 })
    }
    return recorder.result({ ...drawnReplay({ requests: 1 }), seconds: 10 })
  }
  const [whole, most] = [[resetting(0)], [resetting(0.6)]]
  const found = differences(whole, most)
  t.hasStrict(limitVerdicts([changeLimitOf('p99>+10%')], found), [{ verdict: 'failed' }])
  t.hasStrict(limitVerdicts([changeLimitOf('p50>+5%')], differences(whole, [resetting(0.1)])), [
    { verdict: 'passed' },
  ])
  const page = comparePage({ a: whole, b: most, warnings: [], differences: found, limits: [] }, 'UTC')
  t.match(page, /no response/)
  t.notMatch(percentileDistribution(most[0]?.histogram ?? ''), /1099511/)
})

t.test('figures that a side lacks are left out', async t => {
  const found = verdicts(base, [drawnReplay({ seed: 2 })])
  t.notOk('weight' in found || 'memory' in found)
  t.ok('p50' in found && 'hits' in found)
  const nothing = drawnReplay({ requests: 0 })
  t.strictSame(Object.keys(verdicts([nothing], [nothing])), ['rate'])
})

t.test('what stands in the way of a comparison is said', async t => {
  const one = drawnReplay({ requests: 100 })
  t.strictSame(warningsOf([one], [drawnReplay({ seed: 2, requests: 100 })]), [])
  const changes: [Partial<ReplayResult>, string[]][] = [
    [{ traffic: { ...one.traffic, sha256: 'f'.repeat(64) } }, ['traffic']],
    [{ kind: 'rehearsal' }, ['kind', 'pace']],
    [{ pace: { ...one.pace, speed: 10 } }, ['pace']],
    [{ pace: { ...one.pace, workers: 2 } }, ['connections']],
    [{ machine: { ...one.machine, cores: 64 } }, ['machine']],
    [{ generator: { ...one.generator, saturated: true, reason: 'its core was full' } }, ['saturated']],
    [{ totals: { ...one.totals, due: 2 * one.totals.due, sendingSeconds: 500 } }, ['length']],
    [{ totals: { ...one.totals, due: 2 * one.totals.due } }, []],
    [{ totals: { ...one.totals, sendingSeconds: 500 } }, []],
    [{ totals: { ...one.totals, due: 2 * one.totals.due, seconds: 500 } }, []],
    [{ interrupted: true }, ['interrupted']],
    [{ generator: { ...one.generator, loopDelayP99: 25 } }, ['disturbed']],
    [{ totals: { ...one.totals, dropped: one.totals.due / 20 } }, ['late']],
  ]
  for (const [change, obstacles] of changes) {
    const other = drawnReplay({ requests: 100 }, change)
    const found = (a: readonly ReplayResult[], b: readonly ReplayResult[]) =>
      warningsOf(a, b).map(({ obstacle }) => obstacle)
    t.strictSame(found([one], [other]), obstacles)
    t.strictSame(found([one, other], [one]), obstacles, 'within a side')
  }
  const moved = [345, 600].map(speed => drawnRehearsal({ requests: 100 }, { pace: { ...one.pace, speed } }))
  t.strictSame(warningsOf(moved.slice(0, 1), moved.slice(1)), [], 'a moved clock is as fast as it can be')
})

t.test('limits of change: broken by the numbers, of five runs a side by what is significant', async t => {
  const verdictOf = (text: string, a: readonly ReplayResult[], b: readonly ReplayResult[]) =>
    limitVerdicts([changeLimitOf(text)], differences(a, b))[0]
  const slower = side(20, { slow: 1.4 })
  for (const [a, b] of [
    [base, slower],
    [base.slice(0, 1), slower.slice(0, 1)],
  ] as const) {
    t.match(verdictOf('p50>+5%', a, b), { verdict: 'failed', change: Number })
    t.hasStrict(verdictOf('p50 > 90%', a, b), { verdict: 'passed' })
    t.hasStrict(verdictOf('p50<-5%', a, b), { verdict: 'passed' })
    t.hasStrict(verdictOf('memory>+1%', a, b), { verdict: 'passed', change: 0 }, 'as much as in A')
  }
  const undecided = side(30, { requests: 500 })
  const p999 = differences(undecided, side(40, { requests: 500 })).find(({ metric }) => metric === 'p99.9')
  t.equal(p999?.isSignificant, false)
  const limit = `p999${(p999?.change ?? 0) > 0 ? '>+' : '<-'}0.1%`
  t.hasStrict(verdictOf(limit, undecided, side(40, { requests: 500 })), { verdict: 'undecided' })
  t.has(verdictOf('errors>+1000%', base, side(20, { failing: 0.05 })), { verdict: 'failed', change: null })
  t.hasStrict(verdictOf('weight>+5%', base, [drawnReplay({ seed: 2 })]), { verdict: 'failed', change: null })
  for (const text of ['p98>10%', 'p99', 'p99>10', 'p99=10%', '__proto__>1%', ''])
    t.throws(() => changeLimitOf(text), /^--fail-if is ".*"; allowed: .*p99>\+10%.* provider-?|weight/, text)
})
