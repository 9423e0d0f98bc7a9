// The histogram of a result, and the percentiles of its chart. A histogram from a file is checked before it is decoded, because the
// library trusts its lengths.

import { inflateSync } from 'node:zlib'
import { decodeFromCompressedBase64, type Histogram } from 'hdr-histogram-js'

/** Stands for a request without a response, in microseconds. A power of two, which no histogram rounds. */
export const unansweredMicros = 2 ** 40

export const isUnanswered = (ms: number): boolean => ms * 1000 >= unansweredMicros

/** In ms; null where the percentile is a request without a response. */
export const latencyAt = (histogram: Histogram, percent: number): number | null => {
  const ms = histogram.getValueAtPercentile(percent) / 1000
  return isUnanswered(ms) ? null : ms
}

/** @throws Error for an invalid histogram */
export const histogramOf = (text: string): Histogram =>
  decodeFromCompressedBase64(text, 64) as unknown as Histogram

/** The percentile distribution in ms, as wrk2 and HdrHistogram plotters have it (`.hgrm`), without requests that have no response. */
export const percentileDistribution = (text: string): string => {
  const histogram = histogramOf(text)
  const lines = histogram.outputPercentileDistribution(5, 1000).split('\n')
  if (!isUnanswered(histogram.maxValue / 1000)) return lines.join('\n')
  return lines.filter(line => !/^#\[M/.test(line) && !isUnanswered(Number.parseFloat(line))).join('\n')
}

/** In characters. */
export const maxHistogramText = 1_000_000
// 46,080 counts of up to nine bytes: three digits up to the largest exact number.
const maxBytes = 524_288
const maxCounts = 65_536
const maxDigits = 3
const [cookie, compressedCookie] = [0x1c849303, 0x1c849304]
const headBytes = 40

/** The number of values in a histogram that can be decoded in bounded time and memory. @throws Error for any other text */
export const checkedCount = (text: string): number => {
  if (text.length > maxHistogramText || !/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw new Error('not a compressed HdrHistogram in base64')
  const packed = Buffer.from(text, 'base64')
  if (packed.length < 8 || (packed.readInt32BE() & ~0xf0) !== compressedCookie)
    throw new Error('not a compressed HdrHistogram in base64')
  let bytes: Buffer
  try {
    bytes = inflateSync(packed.subarray(8, 8 + packed.readInt32BE(4)), { maxOutputLength: maxBytes })
  } catch (cause) {
    throw new Error(`damaged, or more than ${maxBytes} bytes`, { cause })
  }
  if (bytes.length < headBytes || bytes.readInt32BE() !== (cookie | 0x10))
    throw new Error('not an HdrHistogram')
  const [length, digits] = [bytes.readInt32BE(4), bytes.readInt32BE(12)]
  const [lowest, highest] = [bytes.readBigInt64BE(16), bytes.readBigInt64BE(24)]
  if (length !== bytes.length - headBytes) throw new Error('its length is wrong')
  if (digits < 1 || digits > maxDigits) throw new Error(`digits must be 1 to ${maxDigits}, got ${digits}`)
  if (lowest !== 1n || highest < 2n || highest > BigInt(Number.MAX_SAFE_INTEGER))
    throw new Error(`values must be from 1 to 9007199254740991 at most, got ${lowest} to ${highest}`)
  return sumOfCounts(bytes.subarray(headBytes))
}

/** Words of ZigZag LEB128: a count, or a negative number of counts that are 0. */
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

/** The percentiles of a chart, with equally many points for each nine. */
export const plottedPercentiles = (count: number): readonly number[] => {
  const highest = Math.max(1, Math.floor(Math.log10(Math.max(count, 10)) * 10) / 10)
  const perNine = 12
  const points = Array.from(
    { length: Math.round(highest * perNine) + 1 },
    (_, i) => 100 * (1 - 10 ** (-i / perNine)),
  )
  return points.map(percent => Number(percent.toPrecision(8)))
}
