// The figures by which runs are compared: what each is in a run and in a step, its unit, and which way is better. comparison.ts
// decides whether two of them differ.

import type { Figures } from '../../common/page/figures.js'
import { histogramOf } from './histogram.ts'
import { type Estimate, type Ratio, shareEstimate } from './intervals.ts'
import type { ReplayResult, Step } from './result.ts'
import { errorsOf, shareOf } from './run-figures.ts'

/** How the values of a metric are written. */
export type Unit = 'ms' | 'share' | 'perSecond' | 'count' | 'seconds' | 'bytes'

/** A value for people. */
export const valueText = (value: number, unit: Unit, figures: Figures): string =>
  ({
    ms: () => figures.latency(value / 1000),
    share: () => figures.share(value),
    perSecond: () => `${figures.measured(value)}/s`,
    count: () => figures.count(value),
    seconds: () => figures.duration(value),
    bytes: () => figures.bytes(value),
  })[unit]()

export type Metric = {
  /** As it is shown. */
  readonly name: string
  readonly unit: Unit
  /** Null where a run does not have it. */
  readonly of: (run: ReplayResult) => Estimate | null
  /** Of a percentile of latencies. */
  readonly percent?: number
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
  name: `p${percent}`,
  unit: 'ms',
  percent,
  of: run =>
    run.latency.count === 0 ? null : exact(histogramOf(run.histogram).getValueAtPercentile(percent) / 1000),
})
// For counts, a hundredth is a difference.
export const counted = 0.01
// An answer may be stale or a hit depending on which of two simultaneous requests was first.
export const sharedOut = 0.03

export const metrics = {
  p50: percentile(50),
  p90: percentile(90),
  p99: percentile(99),
  'p99.9': percentile(99.9),
  max: { name: 'max', unit: 'ms', of: run => (run.latency.count === 0 ? null : exact(run.latency.max)) },
  errors: {
    name: 'errors',
    unit: 'share',
    of: run => shareEstimate(errorsOf(run), run.totals.due),
    ofStep: ({ errors, due }) => [errors, due],
  },
  rate: {
    name: 'answered',
    unit: 'perSecond',
    of: run => exact(run.totals.answered / Math.max(run.totals.seconds, 1e-9)),
    ofStep: (step, seconds) => [step.answered, seconds],
    isBetterLarger: true,
  },
  hits: {
    name: 'hits',
    unit: 'share',
    of: run => exact(shareOf(run, 'hit')),
    ofStep: step => [step.hits, weatherOf(step)],
    isReproducible: true,
    isBetterLarger: true,
  },
  stale: {
    name: 'stale',
    unit: 'share',
    of: run => exact(shareOf(run, 'stale')),
    ofStep: step => [step.stale, weatherOf(step)],
    isReproducible: true,
  },
  weight: {
    name: 'provider weight',
    unit: 'count',
    of: run => exact(run.provider?.weight),
    ofStep: step => (step.weight === null ? null : [step.weight, 1]),
    leastChange: counted,
    isReproducible: true,
  },
  age: {
    name: 'age of the weather, median',
    unit: 'seconds',
    of: run => exact(run.age?.p50),
    // The medians of the steps, by their answers with weather.
    ofStep: step => (step.age50 === null ? null : [step.age50 * weatherOf(step), weatherOf(step)]),
    isReproducible: true,
  },
  cpu: {
    name: 'CPU for each request',
    unit: 'ms',
    of: run =>
      run.gateway === null || run.totals.answered === 0
        ? null
        : exact((run.gateway.cpuSeconds * 1000) / run.totals.answered),
  },
  memory: { name: 'memory of the gateway', unit: 'bytes', of: run => exact(run.gateway?.memoryBytes) },
} satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics
export const metricNames = Object.keys(metrics) as readonly MetricName[]
