// Which differences of two sides are real: equal runs differ by noise alone, slower ones by their latency, other settings by hits and
// weight; what can't be compared is said; limits of change hold against noise.

import t from 'tap'
import { createRecorder } from '../../../../tools/load/replay/recorder.ts'
import { warningsOf } from '../../../../tools/load/report/comparability.ts'
import { comparePage } from '../../../../tools/load/report/compare-page.ts'
import {
  changeLimitOf,
  type Difference,
  differences as differencesOf,
  limitVerdicts,
} from '../../../../tools/load/report/comparison.ts'
import { percentileDistribution } from '../../../../tools/load/report/histogram.ts'
import { bootstrap, medianEstimate, shareEstimate } from '../../../../tools/load/report/intervals.ts'
import type { ReplayResult } from '../../../../tools/load/report/result.ts'
import { createRandom } from '../../../../tools/load/traffic/generate/random.ts'
import { type Drawn, drawnRehearsal, drawnReplay } from '../../../support/replay-results.ts'

/** Makes each result once: the same options give the same one, and the same object. */
const once = <T>(make: () => T, ...key: readonly unknown[]): T => {
  const text = JSON.stringify(key)
  if (!made.has(text)) made.set(text, make())
  return made.get(text) as T
}
const made = new Map<string, unknown>()

const numbers = new WeakMap<ReplayResult, number>()
let runs = 0
const numberOf = (run: ReplayResult): number => {
  if (!numbers.has(run)) numbers.set(run, ++runs)
  return numbers.get(run) as number
}
/** Compares each two sides once. */
const differences = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Difference[] =>
  once(() => differencesOf(a, b), 'differences', a.map(numberOf), b.map(numberOf))

// A run of minutes has some sixty steps, and their number is what drawing a run and comparing two cost.
const stepSeconds = 86_400 / 60

/** A replay of which the provider and the gateway are known, with hits of a third of a millisecond. */
const drawnQuick = (options: Drawn, changes: Partial<ReplayResult> = {}): ReplayResult =>
  once(() => drawnRehearsal({ stepSeconds, ...options }, { kind: 'replay', ...changes }), options, changes)
/** The same with latencies that are long beside what a machine is slower at one moment than at another. */
const drawn = ({ slow = 1, ...options }: Drawn, changes: Partial<ReplayResult> = {}): ReplayResult =>
  drawnQuick({ ...options, slow: 10 * slow }, changes)

const requests = 8_000
const base = drawn({ seed: 3, requests })

const verdicts = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Record<string, string> =>
  Object.fromEntries(differences(a, b).map(({ metric, verdict }) => [metric, verdict]))

/** The figures that differ by more than noise. */
const realOf = (a: ReplayResult, b: ReplayResult): string[] =>
  Object.entries(verdicts([a], [b])).flatMap(([metric, verdict]) =>
    verdict === 'better' || verdict === 'worse' ? `${metric} is ${verdict}` : [],
  )

t.test('runs that differ by chance alone differ by noise', async t => {
  // One interval of twenty may miss; there are some sixty.
  const real = [2, 3, 4, 5, 6, 7].flatMap(seed =>
    realOf(drawn({ seed: seed + 100, requests }), drawn({ seed, requests })),
  )
  t.ok(real.length <= 5, real.join(', '))
})

/** A minute of 100 requests a second to a target that stands still now and then, as a collector of garbage or a neighbour makes it. */
const withPauses = (seed: number, { slow = 1, pauses = 3 } = {}): ReplayResult =>
  once(() => drawnWithPauses(seed, slow, pauses), 'pauses', seed, slow, pauses)

const drawnWithPauses = (seed: number, slow: number, pauses: number): ReplayResult => {
  const random = createRandom(seed, 'pauses')
  const standstill = () => ({ from: random() * 60_000, ms: 50 + random() * 750 })
  const standstills = Array.from({ length: 2 * pauses }, standstill).filter(() => random() < 0.5)
  const recorder = createRecorder()
  for (let i = 0; i < 6_000; i += 1) {
    const dueAt = i * 10
    const own = slow * (3 - 2 * Math.log(1 - random()) + (random() < 0.02 ? 5 * random() : 0))
    const waits = standstills.map(({ from, ms }) =>
      dueAt >= from && dueAt < from + ms ? from + ms - dueAt : 0,
    )
    recorder.record({
      endpoint: 'weather',
      outcome: random() < 0.9 ? 'hit' : 'miss',
      status: 200,
      dueAt,
      sentAt: dueAt,
      endedAt: dueAt + Math.max(0, ...waits) + own,
      bytes: 3_000,
    })
  }
  return recorder.result({ ...drawnReplay({ requests: 1 }), seconds: 60 })
}

t.test('of twenty pairs of equal runs with pauses at most one has a verdict', async t => {
  const pairs = Array.from({ length: 20 }, (_, pair) =>
    realOf(withPauses(2 * pair), withPauses(2 * pair + 1)),
  )
  const real = pairs.flat()
  t.ok(real.length <= 1, real.join(', '))
  // Each side has its own pauses, and they hide nothing that lasts.
  const [a, b] = [withPauses(1), withPauses(2, { slow: 1.3 })]
  t.match(verdicts([a], [b]), { p50: 'worse', p90: 'worse' })
  t.match(verdicts([withPauses(1, { pauses: 0 })], [withPauses(2, { pauses: 20 })]), { p99: 'worse' })
})

t.test("one run can't tell a difference as small as that of two moments of a machine", async t => {
  const [a, b] = [drawnQuick({ seed: 3, requests }), drawnQuick({ seed: 2, requests, slow: 1.4 })]
  t.match(verdicts([a], [b]), { p50: 'noise', p90: 'noise' })
  t.match(limitVerdicts([changeLimitOf('p50>+5%')], differences([a], [b])), [{ verdict: 'undecided' }])
  t.match(verdicts([a], [drawnQuick({ seed: 2, requests, slow: 2.5 })]), { p50: 'worse', p90: 'worse' })
  const side = (slow: number, from: number) =>
    Array.from({ length: 5 }, (_, i) => drawnQuick({ seed: from + i, requests, slow }))
  t.match(verdicts(side(1, 10), side(1.4, 20)), { p50: 'worse', p90: 'worse' })
})

t.test('responses that come after the sending make the rate no better, in all figures of it', async t => {
  /** A minute of 100 requests a second to a target that does so many of them a second. */
  const doing = (perSecond: number): ReplayResult => {
    const recorder = createRecorder()
    for (let i = 0; i < 6_000; i += 1) {
      const [dueAt, endedAt] = [i * 10, ((i + 1) * 1_000) / perSecond]
      recorder.record({
        ...{ endpoint: 'weather', outcome: 'hit', status: 200, bytes: 3_000 },
        ...{ dueAt, sentAt: dueAt, endedAt: Math.max(endedAt, dueAt + 1) },
      })
    }
    const [seconds, sendingSeconds] = [6_000 / Math.min(perSecond, 100), 60]
    return recorder.result({ ...drawnReplay({ requests: 1 }), seconds, sendingSeconds })
  }
  const found = differences([doing(200)], [doing(25)]).find(({ metric }) => metric === 'rate')
  t.match(found, { a: { value: 100 }, b: { value: 25 }, change: { value: -0.75 }, verdict: 'worse' })
  t.ok((found?.change?.high ?? 0) < -0.7, JSON.stringify(found))
})

t.test(
  'requests that are reset make all percentiles that they reach worse, however soon they end',
  async t => {
    /** A minute of 100 requests a second, of which a share is reset in a tenth of the time of a response. */
    const resetting = (share: number): ReplayResult => {
      const recorder = createRecorder()
      for (let i = 0; i < 6_000; i += 1) {
        const instants = { dueAt: i * 10, sentAt: i * 10, endedAt: i * 10 + 5 }
        const of = { endpoint: 'weather', ...instants } as const
        if (i % 10 < 10 * share) recorder.fail('reset', { ...of, endedAt: i * 10 + 0.5 })
        else recorder.record({ ...of, outcome: 'hit', status: 200, bytes: 3_000 })
      }
      return recorder.result({ ...drawnReplay({ requests: 1 }), seconds: 60 })
    }
    const [whole, most] = [resetting(0), resetting(0.6)]
    t.match(verdicts([whole], [most]), { p50: 'worse', p99: 'worse', errors: 'worse' })
    t.match(limitVerdicts([changeLimitOf('p99>+10%')], differences([whole], [most])), [{ verdict: 'failed' }])
    t.match(verdicts([whole], [resetting(0.1)]), { p50: 'noise', p99: 'worse' })
    t.match(verdicts([most], [most]), { p50: 'noise', p99: 'noise' })
    const page = comparePage(
      { a: [whole], b: [most], warnings: [], differences: differences([whole], [most]), limits: [] },
      'UTC',
    )
    t.match(page, /no response/)
    t.notMatch(percentileDistribution(most.histogram), /1099511/)
  },
)

t.test('a side that was disturbed or saturated is unclear', async t => {
  const [a, b] = [withPauses(1), withPauses(2, { slow: 1.5 })]
  t.match(verdicts([a], [b]), { p50: 'worse' })
  const { generator } = b
  for (const changes of [
    { interrupted: true },
    { generator: { ...generator, saturated: true, reason: 'its core was full' } },
    { generator: { ...generator, loopDelayP99: 25 } },
  ]) {
    const disturbed = { ...b, ...changes }
    for (const found of [verdicts([a], [disturbed]), verdicts([disturbed], [a])])
      t.notOk(Object.values(found).some(verdict => verdict === 'worse' || verdict === 'better'))
    t.match(verdicts([a], [disturbed]), { p50: 'unclear' })
    const [limit] = limitVerdicts([changeLimitOf('p50>+10%')], differences([a], [disturbed]))
    t.match(limit, { verdict: 'undecided' })
    t.match(verdicts([a, a, a], [b, disturbed, b]), { p50: 'worse' }, 'one of three moves no median')
  }
})

t.test('what a run of seconds shows is unclear', async t => {
  const short = (run: ReplayResult): ReplayResult => ({ ...run, steps: run.steps.slice(0, 9) })
  t.match(verdicts([short(withPauses(1))], [short(withPauses(2, { slow: 1.5 }))]), { p50: 'unclear' })
})

t.test('in old results latencies are not better where more requests are refused at once', async t => {
  const refusing = withPauses(1, { slow: 0.5 })
  const failing = {
    ...refusing,
    totals: { ...refusing.totals, failed: { refused: 3_000 }, sendingSeconds: undefined },
    steps: refusing.steps.map(step => ({ ...step, errors: 50 })),
    latencies: refusing.latencies.slice(0, 1).map(each => ({ ...each, p50: 0.1, outcome: 'failed' })),
  }
  t.match(verdicts([withPauses(2)], [failing]), { errors: 'worse', p50: 'unclear', p90: 'unclear' })
  const slowly = { ...failing, latencies: failing.latencies.map(each => ({ ...each, p50: 1e4 })) }
  t.match(verdicts([withPauses(2)], [slowly]), { errors: 'worse', p50: 'better' })
  // Since then requests without a response are slower than every response: nothing makes the others look better.
  const present = { ...failing, totals: { ...failing.totals, sendingSeconds: failing.totals.seconds } }
  t.match(verdicts([withPauses(2)], [present]), { errors: 'worse', p50: 'better' })
})

t.test('every interval holds its own figure', async t => {
  const wrong: string[] = []
  for (let seed = 0; seed < 6; seed += 1) {
    const a = drawn({ seed, requests: 3_000, failing: 0.002 })
    const b = drawn({ seed: seed + 50, requests: 3_000 })
    for (const { metric, ...estimates } of differences([a], [b]))
      for (const each of [estimates.a, estimates.b, estimates.change]) {
        if (!each || each.low === null || each.high === null) continue
        if (each.low <= each.value && each.value <= each.high) continue
        wrong.push(`${metric}: ${each.value} from ${each.low} to ${each.high}`)
      }
  }
  t.strictSame(wrong, [])
})

t.test('what is really slower, better or dearer is found, in the right direction', async t => {
  const slower = drawn({ seed: 2, requests, slow: 1.3 })
  const latencies = { p50: 'worse', p90: 'worse', p99: 'worse' }
  t.match(verdicts([base], [slower]), { ...latencies, hits: 'noise', weight: 'noise' })
  t.match(verdicts([slower], [base]), { p50: 'better', p90: 'better', p99: 'better' })

  const longer = drawn({ seed: 2, requests, hitShare: 0.93 })
  t.match(verdicts([base], [longer]), { p50: 'noise', hits: 'better', weight: 'better' })
  t.match(verdicts([longer], [base]), { hits: 'worse', weight: 'worse' })

  t.match(verdicts([base], [drawn({ seed: 2, requests, failing: 0.01 })]), { errors: 'worse' })
})

t.test('what rehearsals of the same traffic count is reproducible, what they time is not', async t => {
  const a = drawnRehearsal({ requests, stepSeconds })
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
  t.match(verdicts([a], [{ ...fewer, interrupted: true }]), { weight: 'unclear' }, 'nor of a part of it')
})

t.test('of a share near one, what is left of it counts', async t => {
  const [most, more] = [0.955, 0.965].map(hitShare => drawn({ seed: 3, hitShare, requests: 40_000 }))
  t.match(verdicts([most as ReplayResult], [more as ReplayResult]), { hits: 'better' })
})

t.test('a gap under a tenth is noise, however sure it is', async t => {
  const [a, b] = [1, 1.1].map(slow => drawn({ seed: 4, slow, requests: 50_000 }))
  const [p50] = differences([a as ReplayResult], [b as ReplayResult])
  t.ok((p50?.change?.low ?? 0) > 0, 'it is no chance')
  t.equal(p50?.verdict, 'noise')
})

t.test('of several runs a side the medians are compared, with the range of the runs', async t => {
  const runs = (slow: number, seeds: readonly number[]) => seeds.map(seed => drawn({ seed, slow, requests }))
  const a = runs(1, [1, 2, 3])
  const found = differences(a, runs(1.3, [4, 5, 6]))
  const p99 = found.find(({ metric }) => metric === 'p99')
  const own = a.map(({ latency }) => latency.p99 ?? 0).sort((one, other) => one - other)
  t.strictSame(p99?.a, { value: own[1], low: own[0], high: own[2] })
  t.equal(p99?.verdict, 'worse')
  const equal = verdicts(a, runs(1, [4, 5, 6]))
  for (const metric of ['p50', 'p90', 'p99', 'max', 'hits']) t.equal(equal[metric], 'noise', metric)
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
  const failing = { ...one, totals: { ...one.totals, failed: { timeout: 1 } } }
  const old = (run: ReplayResult) => ({ ...run, totals: { ...run.totals, sendingSeconds: undefined } })
  t.strictSame(warningsOf([old(failing)], [one]), [
    { obstacle: 'unanswered', a: 'by the time until they failed', b: 'behind all responses' },
  ])
  t.strictSame(warningsOf([old(one)], [failing]), [], 'with a response to every request they are the same')
  t.strictSame(warningsOf([old(failing)], [old(one)]), [])
  const moved = [345, 600].map(speed => drawnRehearsal({ requests: 100 }, { pace: { ...one.pace, speed } }))
  t.strictSame(warningsOf(moved.slice(0, 1), moved.slice(1)), [], 'a moved clock is as fast as it can be')
})

t.test('limits of change: broken only by what is real, and by figures that are missing', async t => {
  const verdictOf = (text: string, b: ReplayResult) =>
    limitVerdicts([changeLimitOf(text)], differences([base], [b]))[0]
  const slower = drawn({ seed: 2, requests, slow: 1.3 })
  t.match(verdictOf('p50>+5%', slower), { verdict: 'failed' })
  t.match(verdictOf('p50 > 50%', slower), { verdict: 'passed' })
  t.match(verdictOf('p50<-5%', slower), { verdict: 'passed' })
  t.match(verdictOf('p50>25%', slower), { verdict: 'undecided' }, 'the limit lies within the interval')
  const equal = drawn({ seed: 2, requests })
  t.match(verdictOf('p99.9>+1%', equal), { verdict: 'undecided' })
  t.match(verdictOf('p999>+1000%', equal), { verdict: 'passed' })
  t.match(verdictOf('memory>+1%', drawn({ seed: 2, requests })), { verdict: 'passed' }, 'as much as in A')
  const more = { cpuSeconds: 30, memoryBytes: 3e8, loopDelayP50: 1, loopDelayP99: 6 }
  const larger = drawn({ seed: 2, requests }, { gateway: more })
  t.match(verdictOf('memory>+1%', larger), { verdict: 'undecided' }, 'one run says nothing of how it differs')
  // Under a tenth no difference is called real, and a limit holds all the same.
  const [five, ten] = [1, 1.1].map(slow => drawn({ seed: 4, slow, requests: 50_000 }))
  const found = differences([five as ReplayResult], [ten as ReplayResult])
  t.match(found[0], { metric: 'p50', verdict: 'noise' })
  t.match(limitVerdicts([changeLimitOf('p50>+3%'), changeLimitOf('p50>+20%')], found), [
    { verdict: 'failed' },
    { verdict: 'passed' },
  ])
  const failing = drawn({ seed: 2, requests, failing: 0.01 })
  t.match(verdictOf('errors>+1000%', failing), { verdict: 'failed', change: null })
  t.match(verdictOf('weight>+5%', drawnReplay({ seed: 2 })), { verdict: 'failed', change: null })
  for (const text of ['p98>10%', 'p99', 'p99>10', 'p99=10%', '__proto__>1%', ''])
    t.throws(() => changeLimitOf(text), /^--fail-if is ".*"; allowed: .*p99>\+10%.* provider-?|weight/, text)
})

t.test('intervals hold what they promise', async t => {
  t.equal(shareEstimate(0, 0), null)
  t.match(shareEstimate(0, 1000), { value: 0, low: 0 })
  t.match(shareEstimate(1000, 1000), { value: 1, high: 1 })
  const half = shareEstimate(500, 1000)
  t.ok(Math.abs((half?.low ?? 0) - 0.459) < 0.001 && Math.abs((half?.high ?? 0) - 0.541) < 0.001)

  t.strictSame(medianEstimate([3, 1, 2]), { value: 2, low: 1, high: 3 })
  const many = medianEstimate(Array.from({ length: 101 }, (_, i) => i))
  t.strictSame(many, { value: 50, low: 37, high: 63 })

  // Two days of one shape, the second a fifth lower: paired, the shape is no noise.
  const day = Array.from({ length: 96 }, (_, i) => 100 + 90 * Math.sin(i / 8))
  const lower = day.map(figure => figure * 0.8)
  const drawn = (a: readonly number[], b: readonly number[], isPaired: boolean) =>
    bootstrap(a, b, isPaired, steps => [steps.reduce((sum, step) => sum + step, 0) / steps.length])[0]
  const [paired, free] = [drawn(day, lower, true), drawn(day, lower, false)]
  const of = (found: typeof paired) => found?.change ?? { low: Number.NaN, high: Number.NaN }
  t.ok(Math.abs(of(paired).low + 0.2) < 1e-9 && Math.abs(of(paired).high + 0.2) < 1e-9)
  t.ok(of(free).low < -0.3 && of(free).high > 0)
  t.strictSame(drawn(day, lower, false), free, 'the same draws each time')
  t.equal(drawn(day.slice(0, 9), lower.slice(0, 9), true), undefined, 'too few steps')
})
