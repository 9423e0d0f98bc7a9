// Compares two sides of one or several runs: the median of each figure, and the change from A to B. From five runs a side on it says
// whether the change is a difference or noise; fewer runs have numbers and no verdict, because two moments of one machine
// differ by more than a run shows. Also checks limits of change, such as `p99>+10%`.

import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { median, permutationTest } from 'simple-statistics'
import { createRandom } from '../traffic/generate/random.ts'
import { isDisturbed } from './comparability.ts'
import { type Metric, type MetricName, metricNames, metrics, type Unit } from './metrics.ts'
import type { ReplayResult } from './result.ts'

type Verdict = 'better' | 'worse' | 'noise'

/** A figure of a side: the median of its runs, and the smallest and the largest of them. */
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
  /** Whether chance alone would move the runs so far apart in less than one of a hundred comparisons; null as for the verdict. */
  readonly isSignificant: boolean | null
}

/** So few runs can differ by chance alone more often than once in a hundred comparisons. */
export const leastRuns = 5

/** In the order of `metricNames`, those that all runs of both sides have. @param a one run or more */
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

/** Of several runs the median is compared, which half of them makes. */
const areDisturbed = (runs: readonly ReplayResult[]): boolean =>
  runs.filter(isDisturbed).length * 2 >= runs.length

const figureOf = (values: readonly number[]): SideFigure => ({
  value: median(values),
  low: Math.min(...values),
  high: Math.max(...values),
})

/** By ranks, so that one run with a long pause weighs no more than any other. The same runs give the same answer every time. */
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
  // Of a share near one, what is left of it counts: 98.0 to 98.5 % hits are a quarter fewer misses.
  const whole = unit === 'share' ? Math.min(a, 1 - a) : a
  if (!isSignificant || a === b || Math.abs(b - a) < leastChange * whole) return 'noise'
  return b > a === (isBetterLarger ?? false) ? 'better' : 'worse'
}

export type ChangeLimit = {
  readonly text: string
  readonly metric: MetricName
  readonly isAbove: boolean
  /** Of A's figure: 0.1 is ten percent. */
  readonly change: number
}

/** @throws InputError with what is allowed */
export const changeLimitOf = (text: string): ChangeLimit => {
  const [, name = '', sign, number] =
    /^\s*([a-z][a-z0-9.-]*)\s*([<>])\s*([+-]?\d{1,6}(?:\.\d{1,6})?)\s*%\s*$/.exec(text) ?? []
  const metric = metricNames.find(each => each === (name === 'p999' ? 'p99.9' : name))
  if (metric === undefined || number === undefined)
    throw new InputError(
      `--fail-if is ${quoted(text)}; allowed: a figure, < or >, and a change in percent, such as p99>+10% or hits<-2%; figures are ${metricNames.join(', ')}`,
    )
  return { text: text.trim(), metric, isAbove: sign === '>', change: Number(number) / 100 }
}

export type LimitVerdict = {
  readonly limit: string
  /** Null where a side does not have the figure, or A is 0. */
  readonly change: number | null
  /** `undecided`: the change is beyond the limit, and several runs a side say that it may be chance. */
  readonly verdict: 'passed' | 'failed' | 'undecided'
}

/**
 * A limit fails by the numbers: the change of the medians is beyond it. From five runs a side on, such a change must be significant
 * too. A figure that is 0 in A and not in B has grown beyond every limit. A figure that is missing fails, because nobody has looked.
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
