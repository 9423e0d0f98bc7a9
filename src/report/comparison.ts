// Compares two sides of one or several runs each: every figure with its interval, how far B is from A, and whether that is real
// or noise. Percentiles have intervals by order statistics, figures of steps by a bootstrap with a fixed seed (intervals.ts).

import { histogramOf, percentileEstimate } from './histogram.ts'
import { changeByBootstrap, type Estimate, medianEstimate, type Ratio, shareEstimate } from './intervals.ts'
import type { ReplayResult, Step } from './result.ts'
import { errorsOf, hitShareOf, shareOf } from './run-figures.ts'

/** How the values of a metric are written. */
export type Unit = 'ms' | 'share' | 'perSecond' | 'count' | 'seconds' | 'bytes'

/** `unclear`: one run has no interval for it. */
type Verdict = 'better' | 'worse' | 'noise' | 'unclear'

export type Difference = {
  readonly metric: MetricName
  readonly unit: Unit
  readonly a: Estimate
  readonly b: Estimate
  /** B against A: 0.1 is ten percent more. Null where A is 0. */
  readonly change: Estimate | null
  readonly verdict: Verdict
}

type Metric = {
  readonly unit: Unit
  /** Null where a run does not have it. */
  readonly of: (run: ReplayResult) => Estimate | null
  /** The figure as a ratio of sums over steps, where it can be had so. */
  readonly ofStep?: (step: Step, seconds: number) => Ratio | null
  readonly isBetterLarger?: true
  /** A smaller change is noise, whatever its interval: a tenth if not given. */
  readonly leastChange?: number
  /** Whether it follows from traffic and settings alone where gateway and provider go by a moved clock. */
  readonly isReproducible?: true
}

const weatherOf = ({ hits, stale, misses }: Step): number => hits + stale + misses
const exact = (value: number | null | undefined): Estimate | null =>
  value === null || value === undefined ? null : { value, low: null, high: null }
const percentile = (percent: number): Metric => ({
  unit: 'ms',
  of: run => (run.latency.count === 0 ? null : percentileEstimate(histogramOf(run.histogram), percent)),
})
// What is counted and not timed: a hundredth more is more.
const counted = 0.01
// Whether an answer is stale or a hit may hang on which of two requests of one instant was first.
const sharedOut = 0.03

const metrics = {
  p50: percentile(50),
  p90: percentile(90),
  p99: percentile(99),
  'p99.9': percentile(99.9),
  max: { unit: 'ms', of: run => (run.latency.count === 0 ? null : exact(run.latency.max)) },
  errors: { unit: 'share', of: run => shareEstimate(errorsOf(run), run.totals.due) },
  rate: {
    unit: 'perSecond',
    of: run => exact(run.totals.answered / Math.max(run.totals.seconds, 1e-9)),
    ofStep: (step, seconds) => [step.answered, seconds],
    isBetterLarger: true,
  },
  hits: {
    unit: 'share',
    of: run => exact(hitShareOf(run)),
    ofStep: step => [step.hits, weatherOf(step)],
    isReproducible: true,
    isBetterLarger: true,
  },
  stale: {
    unit: 'share',
    of: run => {
      const share = shareOf(run, 'stale')
      return share === null ? null : exact(share)
    },
    ofStep: step => [step.stale, weatherOf(step)],
    isReproducible: true,
  },
  weight: {
    unit: 'count',
    of: run => exact(run.provider?.weight),
    ofStep: step => (step.weight === null ? null : [step.weight, 1]),
    leastChange: counted,
    isReproducible: true,
  },
  age: {
    unit: 'seconds',
    of: run => exact(run.age?.p50),
    // The medians of the steps, by their answers with weather.
    ofStep: step => (step.age50 === null ? null : [step.age50 * weatherOf(step), weatherOf(step)]),
    isReproducible: true,
  },
  cpu: {
    unit: 'ms',
    of: run =>
      run.gateway === null || run.totals.answered === 0
        ? null
        : exact((run.gateway.cpuSeconds * 1000) / run.totals.answered),
  },
  memory: { unit: 'bytes', of: run => exact(run.gateway?.memoryBytes) },
} satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics
export const metricNames = Object.keys(metrics) as readonly MetricName[]

/** In the order of `metricNames`, those that both sides have. @param a one run or more */
export const differences = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Difference[] =>
  metricNames.flatMap(name => {
    const metric: Metric = metrics[name]
    const [ofA, ofB] = [sideEstimate(a, metric), sideEstimate(b, metric)]
    if (ofA === null || ofB === null) return []
    if (metric.isReproducible && areReproducible([...a, ...b])) return [reproducible(name, metric, ofA, ofB)]
    const stepwise = bootstrapped(a, b, metric)
    // What was counted is exact: only a share of it might have come out otherwise.
    const [left, right] =
      stepwise && metric.unit === 'share'
        ? [
            { ...ofA, low: stepwise.a.low, high: stepwise.a.high },
            { ...ofB, low: stepwise.b.low, high: stepwise.b.high },
          ]
        : [ofA, ofB]
    const change = changeOf(left, right, stepwise?.change)
    return [
      {
        metric: name,
        unit: metric.unit,
        a: left,
        b: right,
        change,
        verdict: verdictOf(metric, left, right, change),
      },
    ]
  })

/** Whether runs are rehearsals of the same traffic: then another run of one gives what it gave. */
const areReproducible = (runs: readonly ReplayResult[]): boolean =>
  runs.every(({ kind, interrupted }) => kind === 'rehearsal' && !interrupted) &&
  new Set(runs.map(({ traffic }) => traffic.sha256)).size === 1

const reproducible = (
  metric: MetricName,
  { unit, isBetterLarger }: Metric,
  a: Estimate,
  b: Estimate,
): Difference => {
  const least = unit === 'share' ? sharedOut : counted
  const isNoise = Math.abs(b.value - a.value) <= least * restOf(unit, a.value)
  return {
    metric,
    unit,
    a: { ...a, low: null, high: null },
    b: { ...b, low: null, high: null },
    change: a.value === 0 ? null : { value: b.value / a.value - 1, low: null, high: null },
    verdict: isNoise ? 'noise' : b.value > a.value === (isBetterLarger ?? false) ? 'better' : 'worse',
  }
}

/** Of a share near one, what is left of it counts: 98.0 to 98.5 % hits are a quarter fewer misses. */
const restOf = (unit: Unit, value: number): number => (unit === 'share' ? Math.min(value, 1 - value) : value)

const sideEstimate = (runs: readonly ReplayResult[], metric: Metric): Estimate | null => {
  const known = runs.flatMap(run => metric.of(run) ?? [])
  const [only] = known
  if (only === undefined || known.length < runs.length) return null
  return known.length === 1 ? only : medianEstimate(known.map(({ value }) => value))
}

/** Only for one run a side: of several, their own differences say more. */
const bootstrapped = (a: readonly ReplayResult[], b: readonly ReplayResult[], { ofStep }: Metric) => {
  const [one, other] = [a[0], b[0]]
  if (!ofStep || !one || !other || a.length > 1 || b.length > 1) return undefined
  const ratios = ({ steps, stepSeconds }: ReplayResult) =>
    steps.flatMap(step => {
      const ratio = ofStep(step, stepSeconds)
      return ratio === null ? [] : [ratio]
    })
  const isPaired =
    one.traffic.sha256 === other.traffic.sha256 &&
    one.stepSeconds === other.stepSeconds &&
    one.steps.length === other.steps.length
  return changeByBootstrap(ratios(one), ratios(other), isPaired)
}

const changeOf = (
  a: Estimate,
  b: Estimate,
  stepwise: Pick<Estimate, 'low' | 'high'> | undefined,
): Estimate | null => {
  if (a.value === 0) return b.value === 0 ? { value: 0, low: 0, high: 0 } : null
  const value = b.value / a.value - 1
  if (stepwise) return { value, ...stepwise }
  const isBounded = a.low !== null && a.high !== null && b.low !== null && b.high !== null
  if (!isBounded || a.low <= 0) return { value, low: null, high: null }
  return { value, low: b.low / a.high - 1, high: b.high / a.low - 1 }
}

const verdictOf = (
  { unit, isBetterLarger, leastChange = 0.1 }: Metric,
  a: Estimate,
  b: Estimate,
  change: Estimate | null,
): Verdict => {
  if (a.value === b.value) return 'noise'
  const gap = Math.abs(b.value - a.value)
  if (gap < leastChange * restOf(unit, a.value)) return 'noise'
  const isApart =
    change !== null && change.low !== null && change.high !== null
      ? change.low > 0 || change.high < 0
      : a.low === null || a.high === null || b.low === null || b.high === null
        ? undefined
        : a.high < b.low || b.high < a.low
  if (isApart === undefined) return 'unclear'
  if (!isApart) return 'noise'
  return b.value > a.value === (isBetterLarger ?? false) ? 'better' : 'worse'
}
