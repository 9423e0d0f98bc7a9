// Limits of change for a comparison, such as `p99>+10%`: it fails where B is further from A than that with its whole interval, and
// is not decided where the limit lies within the interval.

import { InputError } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import type { Difference } from './comparison.ts'
import { type MetricName, metricNames } from './metrics.ts'

export type ChangeLimit = {
  /** As it was given. */
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

/** A figure that is 0 in A and not in B has grown beyond every limit. A figure that is missing fails, because nobody has looked. */
export const limitVerdicts = (
  limits: readonly ChangeLimit[],
  differences: readonly Difference[],
): LimitVerdict[] =>
  limits.map(({ text, metric, isAbove, change: limit }) => {
    const found = differences.find(difference => difference.metric === metric)
    if (!found) return { limit: text, change: null, verdict: 'failed' }
    const range = rangeOf(found)
    const isBeyond = (change: number): boolean => (isAbove ? change > limit : change < limit)
    const [low, high] = range?.map(isBeyond) ?? []
    return {
      limit: text,
      change: found.change?.value ?? null,
      verdict: low === undefined || low !== high ? 'undecided' : low ? 'failed' : 'passed',
    }
  })

/** Where the change lies for sure; undefined where that is not known. */
const rangeOf = ({
  a,
  b,
  change,
  verdict,
  isReproducible,
}: Difference): readonly [number, number] | undefined => {
  if (a.value === b.value) return [0, 0]
  if (verdict === 'unclear') return undefined
  const value = change?.value ?? Number.POSITIVE_INFINITY
  if (change && change.low !== null && change.high !== null) return [change.low, change.high]
  if (verdict === 'noise') return isReproducible ? [Math.min(0, value), Math.max(0, value)] : undefined
  return isReproducible || change === null ? [value, value] : undefined
}
