// The histograms of a run: as they are recorded, as text, added up, and as percentiles. report/histogram.ts reads those of a
// result.

import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js'
import type { Latency } from '../report/result.ts'

/** Three significant digits, from 1 up; of microseconds or seconds. */
export const fine = (): Histogram =>
  build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits: 3, highestTrackableValue: 2 })
// One of a hundred steps: two digits take a tenth of the memory.
export const coarse = (): Histogram =>
  build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits: 2, highestTrackableValue: 2 })

export const encoded = (histogram: Histogram): string => encodeIntoCompressedBase64(histogram)
export const decoded = (text: string): Histogram => decodeFromCompressedBase64(text)

/** Those of several senders as one. */
export const sumOf = (histograms: readonly string[]): Histogram => {
  const sum = coarse()
  for (const histogram of histograms) sum.add(decoded(histogram))
  return sum
}

/** In ms, of a histogram of microseconds: three digits, so that the maximum too is rounded up by up to 0.1 %. */
export const latencyIn = (histogram: Histogram): Latency => {
  const at = (percent: number): number => histogram.getValueAtPercentile(percent) / 1000
  return {
    count: histogram.totalCount,
    mean: histogram.mean / 1000,
    p50: at(50),
    p90: at(90),
    p99: at(99),
    p999: at(99.9),
    max: at(100),
  }
}

/**
 * The percentile distribution of all latencies in ms, as wrk2 and the plotters of HdrHistogram have it (`.hgrm`).
 * @param histogram that of a result
 */
export const percentileDistribution = (histogram: string): string =>
  decoded(histogram).outputPercentileDistribution(5, 1000)
