// Compares two sides of one or several runs by the median of each figure. With five runs per side it decides whether a change is real
// or noise; fewer runs have no verdict. Also checks limits of change, such as `p99>+10%`.

import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { median, permutationTest } from 'simple-statistics'
import { createRandom } from '../traffic/generate/random.ts'
import { isDisturbed } from './comparability.ts'
import { type Metric, type MetricName, metricNames, metrics, type Unit } from './metrics.ts'
import type { ReplayResult } from './result.ts'

type Verdict = 'better' | 'worse' | 'noise'

/** The median, the smallest and the largest of the runs of a side. */
export type SideFigure = { readonly value: number; readonly low: number; readonly high: number }

export type Difference = {
  readonly metric: MetricName
  readonly unit: Unit
  readonly a: SideFigure
  readonly b: SideFigure
  /** B against A: 0.1 is ten percent more. Null where A is 0 and B is not. */
  readonly change: number | null
  /** Null where a side has fewer than five runs, or half of its runs were disturbed. */
  readonly verdict: Verdict | null
  /** Whether p < 1 %; null as for the verdict. */
  readonly isSignificant: boolean | null
}

/** With fewer, p < 1 % is impossible. */
export const leastRuns = 5

/** The metrics that all runs of both sides have, in the order of `metricNames`. @param a at least one run */
export const differences = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Difference[] => {
  const canTell = [a, b].every(side => side.length >= leastRuns && !areDisturbed(side))
  return metricNames.flatMap((name): Difference[] => {
    const metric: Metric = metrics[name]
    const [valuesA, valuesB] = [a, b].map(side => side.flatMap(run => metric.of(run) ?? [])) as [
      number[],
      number[],
    ]
    if (valuesA.length < a.length || valuesB.length < b.length) return []
    const [ofA, ofB] = [figureOf(valuesA), figureOf(valuesB)]
    const isSignificant = canTell ? areApart(valuesA, valuesB) : null
    return [
      {
        metric: name,
        unit: metric.unit,
        a: ofA,
        b: ofB,
        change: ofA.value === 0 ? (ofB.value === 0 ? 0 : null) : ofB.value / ofA.value - 1,
        verdict: isSignificant === null ? null : verdictOf(metric, ofA.value, ofB.value, isSignificant),
        isSignificant,
      },
    ]
  })
}

/** From half of the runs on, the median may be a disturbed one. */
const areDisturbed = (runs: readonly ReplayResult[]): boolean =>
  runs.filter(isDisturbed).length * 2 >= runs.length

const figureOf = (values: readonly number[]): SideFigure => ({
  value: median(values),
  low: Math.min(...values),
  high: Math.max(...values),
})

/** By ranks, so that a run with a long pause has no more weight than others. Deterministic. */
const areApart = (a: readonly number[], b: readonly number[]): boolean => {
  const all = [...a, ...b].toSorted((one, other) => one - other)
  const ranks = (values: readonly number[]): number[] =>
    values.map(value => all.indexOf(value) + all.lastIndexOf(value))
  return permutationTest(ranks(a), ranks(b), 'two_side', permutations, createRandom(1, 'comparison')) < 0.01
}
const permutations = 10_000

const verdictOf = (
  { unit, isBetterLarger, leastChange = 0.1 }: Metric,
  a: number,
  b: number,
  isSignificant: boolean,
): Verdict => {
  // Near 100 %, the rest counts: from 98.0 to 98.5 % hits is a quarter fewer misses.
  const whole = unit === 'share' ? Math.min(a, 1 - a) : a
  if (!isSignificant || a === b || Math.abs(b - a) < leastChange * whole) return 'noise'
  return b > a === (isBetterLarger ?? false) ? 'better' : 'worse'
}

export type ChangeLimit = {
  readonly text: string
  readonly metric: MetricName
  readonly isAbove: boolean
  /** Relative to A: 0.1 is ten percent. */
  readonly change: number
}

/** @throws InputError for an invalid limit */
export const changeLimitOf = (text: string): ChangeLimit => {
  const [, name = '', sign, number] =
    /^\s*([a-z][a-z0-9.-]*)\s*([<>])\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%\s*$/.exec(text) ?? []
  const metric = metricNames.find(each => each === (name === 'p999' ? 'p99.9' : name))
  if (metric === undefined || number === undefined)
    throw new InputError(
      `--fail-if must be a change such as p99>+10% or hits<-2%, of ${metricNames.join(', ')}, got ${quoted(text)}`,
    )
  return { text: text.trim(), metric, isAbove: sign === '>', change: Number(number) / 100 }
}

export type LimitVerdict = {
  readonly limit: string
  /** Null where a side does not have the figure, or A is 0. */
  readonly change: number | null
  /** `undecided`: the change is beyond the limit, but may be chance. */
  readonly verdict: 'passed' | 'failed' | 'undecided'
}

/**
 * A limit fails if the change of the medians is beyond it; with five runs per side the change must also be significant. A figure that
 * grew from 0 is beyond every limit, and a missing figure fails.
 */
export const limitVerdicts = (limits: readonly ChangeLimit[], found: readonly Difference[]): LimitVerdict[] =>
  limits.map(({ text, metric, isAbove, change: limit }) => {
    const difference = found.find(each => each.metric === metric)
    if (!difference) return { limit: text, change: null, verdict: 'failed' }
    const change = difference.change ?? Number.POSITIVE_INFINITY
    const isBeyond = isAbove ? change > limit : change < limit
    return {
      limit: text,
      change: difference.change,
      verdict: !isBeyond ? 'passed' : difference.isSignificant === false ? 'undecided' : 'failed',
    }
  })
