// The histogram of a result: its values by percentile, and how far a percentile may be off by chance. Recording is left to
// the replay.

import { decodeFromCompressedBase64, type Histogram } from 'hdr-histogram-js'
import type { Estimate } from './intervals.ts'

/** @throws Error when the text is no compressed histogram in base64 */
export const histogramOf = (text: string): Histogram =>
  decodeFromCompressedBase64(text, 64) as unknown as Histogram

const microsPerMs = 1000

/** In ms. @param percent from 0 to 100 */
export const percentileOf = (histogram: Histogram, percent: number): number =>
  histogram.getValueAtPercentile(percent) / microsPerMs

/**
 * A percentile with its interval by order statistics: of n values the one at rank np is off by at most 1.96 √(np(1−p)) ranks.
 * Null where the interval would reach past the largest value: too few were measured.
 */
export const percentileEstimate = (histogram: Histogram, percent: number): Estimate => {
  const value = percentileOf(histogram, percent)
  const n = histogram.totalCount
  const p = percent / 100
  const ranks = 1.96 * Math.sqrt(n * p * (1 - p))
  const [low, high] = [n * p - ranks, n * p + ranks]
  if (low < 1 || high >= n) return { value, low: null, high: null }
  return {
    value,
    low: percentileOf(histogram, (low / n) * 100),
    high: percentileOf(histogram, (high / n) * 100),
  }
}

/** The percentiles of a plot, with as many points for each nine. */
export const plottedPercentiles = (count: number): readonly number[] => {
  const highest = Math.max(1, Math.floor(Math.log10(Math.max(count, 10)) * 10) / 10)
  const perNine = 12
  const points = Array.from(
    { length: Math.round(highest * perNine) + 1 },
    (_, i) => 100 * (1 - 10 ** (-i / perNine)),
  )
  return points.map(percent => Number(percent.toPrecision(8)))
}
