// The histograms of a run, and their percentiles.

import { build, decodeFromCompressedBase64, type Histogram } from 'hdr-histogram-js'
import { isUnanswered } from '../report/histogram.ts'
import type { Latency, LatencyOfAll } from '../report/result.ts'

const ofDigits = (numberOfSignificantValueDigits: 2 | 3) => (): Histogram =>
  build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits, highestTrackableValue: 2 })

/** Three significant digits, for microseconds or seconds. */
export const fine = ofDigits(3)
/** Two digits take a tenth of the memory. */
export const coarse = ofDigits(2)

/** Adds encoded histograms. */
export const addEncoded = (to: Histogram, ...texts: readonly string[]): Histogram => {
  for (const text of texts) if (text !== '') to.add(decodeFromCompressedBase64(text))
  return to
}

/** In ms, from a histogram of microseconds; values are rounded up by at most 0.1 %. */
export const latencyIn = (histogram: Histogram): Latency => {
  const at = (percent: number): number => histogram.getValueAtPercentile(percent) / 1000
  const [p50, p90, p99, p999, max] = [at(50), at(90), at(99), at(99.9), at(100)]
  return { count: histogram.totalCount, mean: histogram.mean / 1000, p50, p90, p99, p999, max }
}

/** The same, with null for a figure of requests without a response. */
export const latencyOfAll = (histogram: Histogram): LatencyOfAll => {
  const { count, mean, max, ...percentiles } = latencyIn(histogram)
  const known = (ms: number): number | null => (isUnanswered(ms) ? null : ms)
  const { p50, p90, p99, p999 } = percentiles
  return {
    ...{ count, mean: isUnanswered(max) ? null : mean, p50: known(p50), p90: known(p90) },
    ...{ p99: known(p99), p999: known(p999), max: known(max) },
  }
}
