// Which differences of two sides are real: equal runs differ by noise alone, slower ones by their latency, other settings by hits and
// weight; what can't be compared is said; limits of change hold against noise.

import t from 'tap'
import { changeLimitOf, limitVerdicts } from '../../src/report/change-limits.ts'
import { warningsOf } from '../../src/report/comparability.ts'
import { differences } from '../../src/report/comparison.ts'
import { histogramOf, percentileEstimate } from '../../src/report/histogram.ts'
import { changeByBootstrap, medianEstimate, type Ratio, shareEstimate } from '../../src/report/intervals.ts'
import type { ReplayResult } from '../../src/report/result.ts'
import { type Drawn, drawnRehearsal, drawnReplay } from '../support/replay-results.ts'

/** A replay of which the provider and the gateway are known. */
const drawn = (options: Drawn, changes: Partial<ReplayResult> = {}): ReplayResult =>
  drawnRehearsal(options, { kind: 'replay', ...changes })

const requests = 8_000
const base = drawn({ seed: 3, requests })

const verdicts = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Record<string, string> =>
  Object.fromEntries(differences(a, b).map(({ metric, verdict }) => [metric, verdict]))

t.test('runs that differ by chance alone differ by noise', async t => {
  // One interval of twenty may miss; there are some sixty.
  const real: string[] = []
  for (let seed = 2; seed < 8; seed += 1)
    for (const [metric, verdict] of Object.entries(
      verdicts([drawn({ seed: seed + 100, requests })], [drawn({ seed, requests })]),
    ))
      if (verdict === 'better' || verdict === 'worse') real.push(`seed ${seed}: ${metric} is ${verdict}`)
  t.ok(real.length <= 5, real.join(', '))
})

t.test('a run equals itself', async t => {
  for (const { metric, verdict, change } of differences([base], [base])) {
    t.equal(verdict, 'noise', metric)
    t.equal(change?.value, 0, metric)
  }
})

t.test('what is really slower, better or dearer is found, in the right direction', async t => {
  const slower = drawn({ seed: 2, requests, slow: 1.3 })
  t.match(verdicts([base], [slower]), {
    p50: 'worse',
    p90: 'worse',
    p99: 'worse',
    hits: 'noise',
    weight: 'noise',
  })
  t.match(verdicts([slower], [base]), { p50: 'better', p90: 'better', p99: 'better' })

  const longer = drawn({ seed: 2, requests, hitShare: 0.93 })
  t.match(verdicts([base], [longer]), { p50: 'noise', hits: 'better', weight: 'better' })
  t.match(verdicts([longer], [base]), { hits: 'worse', weight: 'worse' })

  t.match(verdicts([base], [drawn({ seed: 2, requests, failing: 0.01 })]), { errors: 'worse' })
})

t.test('what rehearsals of the same traffic count is reproducible, what they time is not', async t => {
  const a = drawnRehearsal({ requests })
  const fewer = { ...a, provider: { requests: 1, weight: (a.provider?.weight ?? 0) * 0.95, windows: [] } }
  t.match(verdicts([a], [fewer]), { weight: 'better', hits: 'noise', p50: 'noise' })
  const same = { ...a, provider: { requests: 1, weight: (a.provider?.weight ?? 0) * 0.995, windows: [] } }
  t.match(verdicts([a], [same]), { weight: 'noise' })
  const { hit = 0, stale = 0 } = a.outcomes
  const staler = { ...a, outcomes: { ...a.outcomes, hit: hit - 100, stale: stale + 100 } }
  t.match(verdicts([a], [staler]), { hits: 'worse', stale: 'worse' })
  t.match(verdicts([staler], [a]), { hits: 'better', stale: 'better' })
  const other = { ...fewer, traffic: { ...a.traffic, sha256: 'f'.repeat(64) } }
  t.match(verdicts([a], [other]), { weight: 'noise' }, 'of other traffic nothing is')
  t.match(verdicts([a], [{ ...fewer, interrupted: true }]), { weight: 'noise' }, 'nor of a part of it')
})

t.test('of a share near one, what is left of it counts', async t => {
  const [most, more] = [0.955, 0.965].map(hitShare => drawn({ seed: 3, hitShare, requests: 40_000 }))
  t.match(verdicts([most as ReplayResult], [more as ReplayResult]), { hits: 'better' })
})

t.test('a gap under a tenth is noise, however sure it is', async t => {
  const [a, b] = [1, 1.05].map(slow => drawn({ seed: 4, slow, requests: 50_000 }))
  const [p50] = differences([a as ReplayResult], [b as ReplayResult])
  t.ok(p50?.a.high && p50.b.low && p50.a.high < p50.b.low, 'the intervals lie apart')
  t.equal(p50?.verdict, 'noise')
})

t.test('of several runs a side the medians are compared, with the range of the runs', async t => {
  const runs = (slow: number, seeds: readonly number[]) => seeds.map(seed => drawn({ seed, slow, requests }))
  const a = runs(1, [1, 2, 3])
  const found = differences(a, runs(1.3, [4, 5, 6]))
  const p99 = found.find(({ metric }) => metric === 'p99')
  const own = a.map(({ latency }) => latency.p99).sort((one, other) => one - other)
  t.strictSame(p99?.a, { value: own[1], low: own[0], high: own[2] })
  t.equal(p99?.verdict, 'worse')
  t.match(verdicts(a, runs(1, [4, 5, 6])), {
    p50: 'noise',
    p90: 'noise',
    p99: 'noise',
    max: 'noise',
    hits: 'noise',
  })
})

t.test('figures that a side lacks are left out', async t => {
  const found = verdicts([base], [drawnReplay({ seed: 2 })])
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
    [{ interrupted: true }, ['interrupted']],
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

t.test('limits of change: broken only by what is real, and by figures that are missing', async t => {
  const verdictOf = (text: string, b: ReplayResult) => {
    const [verdict] = limitVerdicts([changeLimitOf(text)], differences([base], [b]))
    return verdict
  }
  const slower = drawn({ seed: 2, requests, slow: 1.3 })
  t.match(verdictOf('p90>+10%', slower), { passed: false, isNoise: false })
  t.match(verdictOf('p90 > 50%', slower), { passed: true, isNoise: false })
  t.match(verdictOf('p90<-5%', slower), { passed: true })
  const equal = drawn({ seed: 2, requests })
  t.match(verdictOf('p99.9>-50%', equal), { passed: true, isNoise: true })
  t.match(verdictOf('p999>-50%', equal), { passed: true, isNoise: true })
  t.match(verdictOf('errors>+1000%', drawn({ seed: 2, requests, failing: 0.01 })), {
    passed: false,
    change: null,
  })
  t.match(verdictOf('weight>+5%', drawnReplay({ seed: 2 })), { passed: false, change: null })
  for (const text of ['p98>10%', 'p99', 'p99>10', 'p99=10%', '__proto__>1%', ''])
    t.throws(
      () => changeLimitOf(text),
      { message: /^--fail-if is ".*"; allowed: .*p99>\+10%.* provider-?|weight/ },
      text,
    )
})

t.test('intervals hold what they promise', async t => {
  const histogram = histogramOf(base.histogram)
  const { value, low, high } = percentileEstimate(histogram, 99)
  t.ok(low !== null && high !== null && low < value && value < high)
  t.match(percentileEstimate(histogram, 99.999), { low: null, high: null }, 'too few values')

  t.equal(shareEstimate(0, 0), null)
  t.match(shareEstimate(0, 1000), { value: 0, low: 0 })
  t.match(shareEstimate(1000, 1000), { value: 1, high: 1 })
  const half = shareEstimate(500, 1000)
  t.ok(Math.abs((half?.low ?? 0) - 0.469) < 0.001 && Math.abs((half?.high ?? 0) - 0.531) < 0.001)

  t.strictSame(medianEstimate([3, 1, 2]), { value: 2, low: 1, high: 3 })
  const many = medianEstimate(Array.from({ length: 101 }, (_, i) => i))
  t.strictSame(many, { value: 50, low: 40, high: 60 })

  // Two days of one shape, the second a fifth lower: paired, the shape is no noise.
  const day: Ratio[] = Array.from({ length: 96 }, (_, i) => [100 + 90 * Math.sin(i / 8), 1])
  const lower: Ratio[] = day.map(([over, under]) => [over * 0.8, under])
  const paired = changeByBootstrap(day, lower, true)
  const free = changeByBootstrap(day, lower, false)
  t.ok(paired && Math.abs(paired.change.low + 0.2) < 1e-9 && Math.abs(paired.change.high + 0.2) < 1e-9)
  t.ok(free && free.change.low < -0.3 && free.change.high > 0)
  t.strictSame(changeByBootstrap(day, lower, false), free, 'the same draws each time')
  t.equal(changeByBootstrap(day.slice(0, 4), lower.slice(0, 4), true), undefined, 'too few steps')
})
