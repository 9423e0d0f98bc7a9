// Compares two sides of one or several runs each: every metric with its interval, the change from A to B, and whether that is
// a difference or noise; and limits of change, such as `p99>+10%`. What follows from steps has intervals from a bootstrap over
// blocks of them with a fixed seed (metrics.ts, intervals.ts). All differences of a disturbed side are unclear.
// Longer than 300 lines, because verdicts and limits go by the same intervals.

import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { isDisturbed } from './comparability.ts'
import { type Drawn, type Estimate, type Interval, medianEstimate } from './intervals.ts'
import {
  counted,
  drawnFigures,
  type Metric,
  type MetricName,
  metricNames,
  metrics,
  type SideStep,
  sharedOut,
  type Unit,
} from './metrics.ts'
import type { ReplayResult } from './result.ts'
import { ranksUnansweredByTime } from './run-figures.ts'

/** `unclear`: it has no interval, or a side was disturbed. */
type Verdict = 'better' | 'worse' | 'noise' | 'unclear'

export type Difference = {
  readonly metric: MetricName
  readonly unit: Unit
  readonly a: Estimate
  readonly b: Estimate
  /** B against A: 0.1 is ten percent more. Null where A is 0. */
  readonly change: Estimate | null
  readonly verdict: Verdict
  /** Follows from traffic and settings alone, so that it has no interval. */
  readonly isReproducible?: true
}

/** In the order of `metricNames`, those that both sides have. @param a one run or more */
export const differences = (a: readonly ReplayResult[], b: readonly ReplayResult[]): Difference[] => {
  const sides = { a: sideOf(a), b: sideOf(b), isPaired: arePaired(a, b) }
  const drawn = drawnFigures(sides.a.steps, sides.b.steps, sides.isPaired)
  const [disturbed, reproducible] = [[a, b].some(areDisturbed), areReproducible([...a, ...b])]
  const found = metricNames.flatMap((name): Difference[] => {
    const metric: Metric = metrics[name]
    const [ofA, ofB] = [sideEstimate(a, metric), sideEstimate(b, metric)]
    if (ofA === null || ofB === null) return []
    const isReproducible = metric.isReproducible && reproducible
    const difference = isReproducible
      ? reproduced(name, metric, ofA, ofB)
      : drawnDifference(name, metric, ofA, ofB, sides, drawn.get(name))
    const isUnclear = disturbed && !isReproducible && ofA.value !== ofB.value
    return [isUnclear ? { ...difference, verdict: 'unclear' } : difference]
  })
  return [...a, ...b].some(failsQuickly) ? withoutQuickErrors(found) : found
}

type Side = { readonly runs: number; readonly steps: readonly SideStep[] }
type Sides = { readonly a: Side; readonly b: Side; readonly isPaired: boolean }

const sideOf = (runs: readonly ReplayResult[]): Side => ({ runs: runs.length, steps: runs.flatMap(stepsOf) })

/** The steps from the first to the last in which requests were due; before is the warm-up. */
const stepsOf = ({ steps, stepSeconds, totals }: ReplayResult): SideStep[] => {
  const end = steps.findLastIndex(({ due }) => due > 0) + 1
  const own = steps
    .slice(
      steps.findIndex(({ due }) => due > 0),
      end,
    )
    .map(step => ({ ...step, seconds: stepSeconds }))
  const last = own.at(-1)
  const late = steps.slice(end).reduce((sum, { answered }) => sum + answered, 0)
  if (!last || late === 0) return own
  // Later responses, and the time in which they came, belong to the last one: together the steps have the rate of the run.
  const seconds = Math.max(stepSeconds, totals.seconds - (own.length - 1) * stepSeconds)
  return [...own.slice(0, -1), { ...last, answered: last.answered + late, seconds }]
}

/** Whether a step of one side is the same part of the same traffic as that of the other. */
const arePaired = (a: readonly ReplayResult[], b: readonly ReplayResult[]): boolean => {
  const [one, other] = [a[0], b[0]]
  if (!one || !other || a.length > 1 || b.length > 1) return false
  const begin = ({ steps }: ReplayResult): number => steps.findIndex(({ due }) => due > 0)
  return (
    one.traffic.sha256 === other.traffic.sha256 &&
    one.stepSeconds === other.stepSeconds &&
    begin(one) === begin(other) &&
    sideOf(a).steps.length === sideOf(b).steps.length
  )
}

/** Of several runs the median is compared, which half of them makes. */
const areDisturbed = (runs: readonly ReplayResult[]): boolean =>
  runs.filter(isDisturbed).length * 2 >= runs.length

/** Whether runs are rehearsals of the same traffic: then another run of one gives what it gave. */
const areReproducible = (runs: readonly ReplayResult[]): boolean =>
  runs.every(({ kind, interrupted }) => kind === 'rehearsal' && !interrupted) &&
  new Set(runs.map(({ traffic }) => traffic.sha256)).size === 1

const reproduced = (
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
    isReproducible: true,
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

const drawnDifference = (
  name: MetricName,
  metric: Metric,
  a: Estimate,
  b: Estimate,
  sides: Sides,
  drawn: Drawn | undefined,
): Difference => {
  const [left, right] = [widened(a, metric, sides.a, drawn?.a), widened(b, metric, sides.b, drawn?.b)]
  const change = betweenMoments(changeOf(left, right, drawn, sides), metric, left, sides)
  return {
    metric: name,
    unit: metric.unit,
    a: left,
    b: right,
    change,
    verdict: verdictOf(metric, left, right, change, sides, drawn !== undefined),
  }
}

/** The interval drawn from the steps; for shares and for several runs, no narrower than the interval known without steps. */
const widened = (
  own: Estimate,
  { unit, percent }: Metric,
  { runs }: Side,
  drawn: Interval | undefined,
): Estimate => {
  // The rate, weight and age of one run are as they were counted: only their change might have come out otherwise.
  if (!drawn || (runs === 1 && unit !== 'share' && percent === undefined)) return own
  const known = percent !== undefined && runs === 1 ? null : own
  return {
    value: own.value,
    low: Math.min(own.value, drawn.low, known?.low ?? own.value),
    high: Math.max(own.value, drawn.high, known?.high ?? own.value),
  }
}

const changeOf = (a: Estimate, b: Estimate, drawn: Drawn | undefined, sides: Sides): Estimate | null => {
  if (a.value === 0) return b.value === 0 ? { value: 0, low: 0, high: 0 } : null
  const value = b.value / a.value - 1
  const isSeveral = sides.a.runs > 1 || sides.b.runs > 1
  // Of several runs, what differs from run to run counts as well.
  const known = [...(drawn ? [drawn.change] : []), ...(isSeveral || !drawn ? [changeBetween(a, b)] : [])]
  const bounded = known.filter(interval => interval !== null)
  if (bounded.length === 0 || bounded.length < known.length) return { value, low: null, high: null }
  return {
    value,
    low: Math.min(value, ...bounded.map(({ low }) => low)),
    high: Math.max(value, ...bounded.map(({ high }) => high)),
  }
}

// The difference between two moments of a machine, in ms: eight equal runs on a quiet machine had a p50 from 0.23 to
// 0.35 and a p90 from 0.34 to 0.50. Nothing inside of a run shows it; from five runs a side on, their medians do.
const momentMs = 0.2

/** Widens the change of a percentile by the difference between two moments of a machine. */
const betweenMoments = (
  change: Estimate | null,
  { percent }: Metric,
  a: Estimate,
  sides: Sides,
): Estimate | null => {
  if (percent === undefined || isOfMany(sides) || !change || change.low === null || change.high === null)
    return change
  const moment = momentMs / a.value
  return { value: change.value, low: Math.max(-1, change.low - moment), high: change.high + moment }
}

/** From the ends of both intervals; null where one has none, or A may be 0. */
const changeBetween = (a: Estimate, b: Estimate): Interval | null => {
  if (a.low === null || a.high === null || b.low === null || b.high === null || a.low <= 0) return null
  return { low: b.low / a.high - 1, high: b.high / a.low - 1 }
}

// Of fewer runs the one side is above the other by chance more often than once in a hundred pairs.
const leastRuns = 5
const isOfMany = ({ a, b }: Sides): boolean => Math.min(a.runs, b.runs) >= leastRuns

const verdictOf = (
  { unit, isBetterLarger, leastChange = 0.1 }: Metric,
  a: Estimate,
  b: Estimate,
  change: Estimate | null,
  sides: Sides,
  /** Whether its intervals know of bursts. */
  isDrawn: boolean,
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
  if (!isDrawn && !isOfMany(sides)) return 'unclear'
  return b.value > a.value === (isBetterLarger ?? false) ? 'better' : 'worse'
}

/** Whether requests without an answer were given up sooner than others were answered, and make percentiles smaller. */
const failsQuickly = (run: ReplayResult): boolean =>
  ranksUnansweredByTime(run) &&
  run.latencies.some(({ outcome, p50 }) => outcome === 'failed' && p50 < (run.latency.p99 ?? 0))

/** A request that is refused at once has waited for little: latencies are no better where more requests have no answer. */
const withoutQuickErrors = (found: readonly Difference[]): Difference[] => {
  const errors = found.find(({ metric }) => metric === 'errors')?.verdict
  const opposite = errors === 'worse' ? 'better' : errors === 'better' ? 'worse' : undefined
  return found.map(difference =>
    difference.unit === 'ms' && difference.metric !== 'cpu' && difference.verdict === opposite
      ? { ...difference, verdict: 'unclear' }
      : difference,
  )
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
  /** `undecided`: the runs don't say on which side of the limit the change lies. */
  readonly verdict: 'passed' | 'failed' | 'undecided'
}

/**
 * A limit fails where B is further from A than that with its whole interval. A figure that is 0 in A and not in B has grown beyond
 * every limit. A figure that is missing fails, because nobody has looked.
 */
export const limitVerdicts = (limits: readonly ChangeLimit[], found: readonly Difference[]): LimitVerdict[] =>
  limits.map(({ text, metric, isAbove, change: limit }) => {
    const difference = found.find(each => each.metric === metric)
    if (!difference) return { limit: text, change: null, verdict: 'failed' }
    const [low, high] = rangeOf(difference)?.map(change => (isAbove ? change > limit : change < limit)) ?? []
    return {
      limit: text,
      change: difference.change?.value ?? null,
      verdict: low === undefined || low !== high ? 'undecided' : low ? 'failed' : 'passed',
    }
  })

/** Where the change lies for sure; undefined where that is not known. */
const rangeOf = ({ a, b, change, verdict, isReproducible }: Difference): [number, number] | undefined => {
  if (a.value === b.value) return [0, 0]
  if (verdict === 'unclear') return undefined
  const value = change?.value ?? Number.POSITIVE_INFINITY
  if (change && change.low !== null && change.high !== null) return [change.low, change.high]
  if (verdict === 'noise') return isReproducible ? [Math.min(0, value), Math.max(0, value)] : undefined
  return isReproducible || change === null ? [value, value] : undefined
}
