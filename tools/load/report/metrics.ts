// The metrics by which runs are compared, with their units and directions.

import type { Figures } from 'abohawa/common/page/figures.js'
import { histogramOf, isUnanswered, unansweredMicros } from './histogram.ts'
import type { ReplayResult } from './result.ts'
import { answeredRate, errorsOf, shareOf } from './run-figures.ts'

export type Unit = 'ms' | 'share' | 'perSecond' | 'count' | 'seconds' | 'bytes'

export const valueText = (value: number, unit: Unit, figures: Figures): string =>
  ({
    ms: () => latencyText(value, figures),
    share: () => figures.share(value),
    perSecond: () => `${figures.measured(value)}/s`,
    count: () => figures.count(value),
    seconds: () => figures.duration(value),
    bytes: () => figures.bytes(value),
  })[unit]()

/** @param ms null for requests without a response */
export const latencyText = (ms: number | null, figures: Figures): string =>
  ms === null || isUnanswered(ms) ? 'no response' : figures.latency(ms / 1000)

const mostTimes = 1_000

/** Percent, except for changes so large that percent is meaningless. */
export const changeText = (change: number, percents: (change: number) => string): string =>
  change < mostTimes ? percents(change) : `over ${mostTimes} times`

export type Metric = {
  readonly name: string
  readonly unit: Unit
  /** Null where the run has no such metric. */
  readonly of: (run: ReplayResult) => number | null
  readonly isBetterLarger?: true
  /** A smaller change is noise, relative to A: a tenth if not given. */
  readonly leastChange?: number
}

const percentile = (percent: number): Metric => ({
  name: `p${percent}`,
  unit: 'ms',
  of: run =>
    run.latency.count === 0 ? null : histogramOf(run.histogram).getValueAtPercentile(percent) / 1000,
})

export const metrics = {
  p50: percentile(50),
  p90: percentile(90),
  p99: percentile(99),
  'p99.9': percentile(99.9),
  max: {
    name: 'max',
    unit: 'ms',
    of: run => (run.latency.count === 0 ? null : (run.latency.max ?? unansweredMicros / 1000)),
  },
  errors: {
    name: 'errors',
    unit: 'share',
    of: run => (run.totals.due === 0 ? null : errorsOf(run) / run.totals.due),
  },
  rate: {
    name: 'response rate',
    unit: 'perSecond',
    of: run => answeredRate(run.totals),
    isBetterLarger: true,
  },
  hits: { name: 'hits', unit: 'share', of: run => shareOf(run, 'hit'), isBetterLarger: true },
  stale: { name: 'stale', unit: 'share', of: run => shareOf(run, 'stale') },
  // A hundredth matters, because weight is paid for.
  weight: {
    name: 'provider weight',
    unit: 'count',
    of: run => run.provider?.weight ?? null,
    leastChange: 0.01,
  },
  age: { name: 'weather age, median', unit: 'seconds', of: run => run.age?.p50 ?? null },
  cpu: {
    name: 'CPU per request',
    unit: 'ms',
    of: ({ gateway, totals }) =>
      gateway === null || totals.answered === 0 ? null : (gateway.cpuSeconds * 1000) / totals.answered,
  },
  memory: { name: 'gateway memory', unit: 'bytes', of: run => run.gateway?.memoryBytes ?? null },
} satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics
export const metricNames = Object.keys(metrics) as readonly MetricName[]
