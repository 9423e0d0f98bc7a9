// The figures by which runs are compared: what each is in a run and in some of its steps, its unit, and which way is better.
// comparison.ts decides whether two of them differ.

import type { Figures } from 'abohawa/common/page/figures.js'
import { histogramOf, isUnanswered, unansweredMicros } from './histogram.ts'
import { bootstrap, type Drawn, type Estimate, shareEstimate } from './intervals.ts'
import type { ReplayResult, Step } from './result.ts'
import { answeredRate, errorsOf, shareOf } from './run-figures.ts'

/** How the values of a metric are written. */
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

/** @param ms null where it is of requests without a response */
export const latencyText = (ms: number | null, figures: Figures): string =>
  ms === null || isUnanswered(ms) ? 'no response' : figures.latency(ms / 1000)

const mostTimes = 1_000

/** A change so large that its percents say nothing, as from a latency to no response; otherwise by `percents`. */
export const changeText = (change: number, percents: (change: number) => string): string =>
  change < mostTimes ? percents(change) : `over ${mostTimes} times`

export type Metric = {
  readonly name: string
  readonly unit: Unit
  readonly of: (run: ReplayResult) => Estimate | null
  /** Of a percentile of latencies. */
  readonly percent?: number
  /** What a step adds to the numerator and to the denominator, where the figure is a ratio of sums over steps. */
  readonly ofStep?: (step: SideStep) => readonly [over: number, under: number]
  readonly isBetterLarger?: true
  /** A smaller change is noise, whatever its interval: a tenth if not given. */
  readonly leastChange?: number
  /** Whether it follows from traffic and settings alone where gateway and provider go by a moved clock. */
  readonly isReproducible?: true
}

const weatherOf = ({ hits, stale, misses }: Step): number => hits + stale + misses
const nothing = [0, 0] as const
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
  max: {
    name: 'max',
    unit: 'ms',
    of: run => (run.latency.count === 0 ? null : exact(run.latency.max ?? unansweredMicros / 1000)),
  },
  errors: {
    name: 'errors',
    unit: 'share',
    of: run => shareEstimate(errorsOf(run), run.totals.due),
    ofStep: ({ errors, due }) => [errors, due],
  },
  rate: {
    name: 'answered',
    unit: 'perSecond',
    of: run => exact(answeredRate(run.totals)),
    ofStep: ({ answered, seconds }) => [answered, seconds],
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
    ofStep: ({ weight }) => (weight === null ? nothing : [weight, 1]),
    leastChange: counted,
    isReproducible: true,
  },
  age: {
    name: 'age of the weather, median',
    unit: 'seconds',
    of: run => exact(run.age?.p50),
    // The medians of the steps, by their answers with weather.
    ofStep: step => (step.age50 === null ? nothing : [step.age50 * weatherOf(step), weatherOf(step)]),
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

/** What was measured in a step: latencies, ascending, by their places among those of all steps, with how often each was; and ratios. */
type Measured = {
  readonly places: readonly number[]
  readonly counts: readonly number[]
  readonly ratios: readonly (readonly [over: number, under: number])[]
}
/** `seconds`: how long it is. */
export type SideStep = Step & { readonly seconds: number }

// A tail that fewer steps have hangs on when they came: by draws from them it can't be known how many there might have been.
const leastTail = 5

/**
 * The figures of two sides with intervals by a bootstrap over their steps; those without one are missing. Latencies come in bursts:
 * a pause of a second makes hundreds of slow answers, which are one event and not hundreds.
 */
export const drawnFigures = (
  a: readonly SideStep[],
  b: readonly SideStep[],
  isPaired: boolean,
): ReadonlyMap<MetricName, Drawn> => {
  const latencies = [a, b].map(steps => steps.map(latenciesIn))
  const values = [...new Set(latencies.flat().flatMap(each => [...each.keys()]))].sort((x, y) => x - y)
  const places = new Map(values.map((value, place) => [value, place]))
  const measured = (steps: readonly SideStep[], side: number): Measured[] =>
    steps.map((step, i) => {
      const own = latencies[side]?.[i] ?? new Map<number, number>()
      return {
        places: [...own.keys()].map(value => places.get(value) as number),
        counts: [...own.values()],
        ratios: drawable.map(({ ofStep }) => ofStep?.(step) ?? nothing),
      }
    })
  const sums = new Float64Array(values.length)
  const figuresOf = (steps: readonly Measured[]): number[] => {
    sums.fill(0)
    let total = 0
    for (const { places: at, counts } of steps)
      for (let i = 0; i < at.length; i += 1) {
        const [place, count] = [at[i] as number, counts[i] as number]
        sums[place] = (sums[place] as number) + count
        total += count
      }
    let [place, below] = [0, sums[0] ?? 0]
    return drawable.map(({ percent }, i) => {
      if (percent === undefined) return ratioOf(steps, i)
      if (total === 0) return Number.NaN
      const rank = Math.max(1, Math.floor((percent / 100) * total + 0.5))
      while (below < rank && place + 1 < sums.length) below += sums[++place] as number
      return values[place] as number
    })
  }
  const [one, other] = [measured(a, 0), measured(b, 1)]
  const drawn = bootstrap(one, other, isPaired, figuresOf)
  const hasTail = (steps: readonly Measured[], percentile = Number.NaN): boolean =>
    steps.filter(({ places: at }) => (values[at.at(-1) ?? -1] ?? Number.NEGATIVE_INFINITY) >= percentile)
      .length >= leastTail
  const [ownA, ownB] = [figuresOf(one), figuresOf(other)]
  return new Map(
    drawable.flatMap(({ metric, percent }, i) => {
      const found = drawn[i]
      const isKnown = percent === undefined || (hasTail(one, ownA[i]) && hasTail(other, ownB[i]))
      return found && isKnown ? [[metric, found]] : []
    }),
  )
}

const drawable = metricNames
  .map(metric => ({ metric, ...(metrics[metric] as Metric) }))
  .filter(({ percent, ofStep }) => percent !== undefined || ofStep)

const ratioOf = (steps: readonly Measured[], figure: number): number => {
  let [over, under] = [0, 0]
  for (const { ratios } of steps) {
    const [above = 0, below = 0] = ratios[figure] ?? nothing
    over += above
    under += below
  }
  return under === 0 ? Number.NaN : over / under
}

/** The latencies of a step in ms, ascending, and how often each was. */
const latenciesIn = ({ histogram: text }: Step): ReadonlyMap<number, number> => {
  const found = new Map<number, number>()
  if (text === undefined) return found
  const histogram = histogramOf(text) as unknown as {
    readonly totalCount: number
    getCountAtIndex(index: number): number
    valueFromIndex(index: number): number
    highestEquivalentValue(value: number): number
  }
  for (let index = 0, left = histogram.totalCount; left > 0; index += 1) {
    const count = histogram.getCountAtIndex(index)
    if (count === 0) continue
    left -= count
    // One of 0 µs would make a change of it infinite.
    const micros = Math.max(1, histogram.highestEquivalentValue(histogram.valueFromIndex(index)))
    found.set(micros / 1000, (found.get(micros / 1000) ?? 0) + count)
  }
  return found
}
