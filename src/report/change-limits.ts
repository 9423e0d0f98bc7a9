// Limits of change for a comparison, such as `p99>+10%`: it fails where B is further from A than that, and not by noise.

import { InputError } from '../errors.ts'
import { quoted } from '../outside-text.ts'
import { type Difference, type MetricName, metricNames } from './comparison.ts'

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
  readonly passed: boolean
  /** Whether the change is beyond the limit, and noise. */
  readonly isNoise: boolean
}

/** A figure that is 0 in A and not in B has grown beyond every limit. A figure that is missing fails, because nobody has looked. */
export const limitVerdicts = (
  limits: readonly ChangeLimit[],
  differences: readonly Difference[],
): LimitVerdict[] =>
  limits.map(({ text, metric, isAbove, change: limit }) => {
    const found = differences.find(difference => difference.metric === metric)
    if (!found) return { limit: text, change: null, passed: false, isNoise: false }
    const change = found.change?.value ?? Number.POSITIVE_INFINITY
    const isBeyond = isAbove ? change > limit : change < limit
    const isNoise = isBeyond && found.verdict === 'noise'
    return { limit: text, change: found.change?.value ?? null, passed: !isBeyond || isNoise, isNoise }
  })
