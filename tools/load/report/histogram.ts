// The histogram of a result, and the percentiles that are drawn of it. Recording is left to the replay. One from outside is checked before it is decoded: the library takes its lengths as they stand.

import { inflateSync } from 'node:zlib'
import { decodeFromCompressedBase64, type Histogram } from 'hdr-histogram-js'

/** In a histogram of microseconds, a request without a response: no response is so slow. A power of two, which no histogram rounds. */
export const unansweredMicros = 2 ** 40

/** Whether a latency in ms is that of a request without a response. */
export const isUnanswered = (ms: number): boolean => ms * 1000 >= unansweredMicros

/** A latency in ms; null where the requests at that percentile have no response. */
export const latencyAt = (histogram: Histogram, percent: number): number | null => {
  const ms = histogram.getValueAtPercentile(percent) / 1000
  return isUnanswered(ms) ? null : ms
}

/** @throws Error when the text is no compressed histogram in base64 */
export const histogramOf = (text: string): Histogram =>
  decodeFromCompressedBase64(text, 64) as unknown as Histogram

/**
 * The percentile distribution of all latencies in ms, as wrk2 and the plotters of HdrHistogram have it (`.hgrm`). It ends where
 * requests have no response.
 */
export const percentileDistribution = (text: string): string => {
  const histogram = histogramOf(text)
  const lines = histogram.outputPercentileDistribution(5, 1000).split('\n')
  if (!isUnanswered(histogram.maxValue / 1000)) return lines.join('\n')
  return lines.filter(line => !/^#\[M/.test(line) && !isUnanswered(Number.parseFloat(line))).join('\n')
}

/** In characters. */
export const maxHistogramText = 1_000_000
// Of three digits up to the largest exact number: 46,080 counts of up to nine bytes.
const maxBytes = 524_288
const maxCounts = 65_536
const maxDigits = 3
const [cookie, compressedCookie] = [0x1c849303, 0x1c849304]
const headBytes = 40

/**
 * How many values a text has, which `histogramOf` decodes in bounded time and memory then.
 * @throws Error with a reason for one that no recorder makes
 */
export const checkedCount = (text: string): number => {
  if (text.length > maxHistogramText || !/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw new Error('no compressed HdrHistogram in base64')
  const packed = Buffer.from(text, 'base64')
  if (packed.length < 8 || (packed.readInt32BE() & ~0xf0) !== compressedCookie)
    throw new Error('no compressed HdrHistogram in base64')
  let bytes: Buffer
  try {
    bytes = inflateSync(packed.subarray(8, 8 + packed.readInt32BE(4)), { maxOutputLength: maxBytes })
  } catch (cause) {
    throw new Error(`damaged, or of more than ${maxBytes} bytes`, { cause })
  }
  if (bytes.length < headBytes || bytes.readInt32BE() !== (cookie | 0x10)) throw new Error('no HdrHistogram')
  const [length, digits] = [bytes.readInt32BE(4), bytes.readInt32BE(12)]
  const [lowest, highest] = [bytes.readBigInt64BE(16), bytes.readBigInt64BE(24)]
  if (length !== bytes.length - headBytes) throw new Error('its length is wrong')
  if (digits < 1 || digits > maxDigits) throw new Error(`${digits} digits; allowed: 1 to ${maxDigits}`)
  if (lowest !== 1n || highest < 2n || highest > BigInt(Number.MAX_SAFE_INTEGER))
    throw new Error(`values from ${lowest} to ${highest}; allowed: from 1 to 9007199254740991 at most`)
  return sumOfCounts(bytes.subarray(headBytes))
}

/** Words of ZigZag LEB128, seven bits a byte: a count, or below zero so many counts that are 0. */
const sumOfCounts = (words: Buffer): number => {
  let [sum, counts] = [0, 0]
  for (let at = 0; at < words.length; ) {
    let [word, factor] = [0, 1]
    for (;;) {
      const byte = words[at++]
      if (byte === undefined) throw new Error('it ends within a count')
      word += (byte & 0x7f) * factor
      factor *= 128
      if (byte < 0x80) break
    }
    const isCount = word % 2 === 0
    counts += isCount ? 1 : (word + 1) / 2
    if (isCount) sum += word / 2
    if (counts > maxCounts || sum > Number.MAX_SAFE_INTEGER) throw new Error('too many counts')
  }
  return sum
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
