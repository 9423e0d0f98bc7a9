// A timeline as bytes for the shared cache tier: a versioned head with what the cache notes beside it, then the packed
// columns, compressed, all under one checksum. Bytes of another version, damaged, cut off or with something behind them
// count as absent: decoding answers undefined and never throws.

import { brotliCompressSync, brotliDecompressSync, constants, crc32 } from 'node:zlib'
import { mostBytes, packColumn, unpackColumn } from './packed-column.ts'
import { layOut, type Series, type Span, type Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './variables.ts'

/** What the cache notes beside a timeline when it is loaded. */
export type Marks = {
  /** How many purges were known: a whole number from 0 on. */
  readonly generation: number
  /** When the newest model run known became available, in ms since the epoch; null when none is followed. */
  readonly run: number | null
}

// The head: version, fetchedAt, checksum, generation, run, then start and length of each series.
const version = 2
const checksumAt = 9
const marksAt = checksumAt + 4
const spansAt = marksAt + 16
const spanBytes = 8 + 4
const headBytes = spansAt + 3 * spanBytes

// Beyond this quality time grows and bytes hardly shrink; the window needs to hold one timeline, not megabytes.
const compression = { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 16 }

/** The bytes of a timeline, to be read by `decodeTimeline` alone. */
export const encodeTimeline = (timeline: Timeline, marks: Marks): Buffer => {
  const columns = columnsOf(timeline)
  const packed = new Uint8Array(columns.reduce((sum, { length }) => sum + mostBytes(length), 0))
  const end = columns.reduce((at, column) => packColumn(column, packed, at), 0)
  const body = brotliCompressSync(packed.subarray(0, end), { params: compression })

  // Not from Node's pool, which a buffer that is kept would keep whole.
  const bytes = Buffer.alloc(headBytes + body.length)
  bytes.writeUInt8(version, 0)
  bytes.writeDoubleLE(timeline.fetchedAt, 1)
  bytes.writeDoubleLE(marks.generation, marksAt)
  bytes.writeDoubleLE(marks.run ?? Number.NaN, marksAt + 8)
  seriesOf(timeline).forEach(({ start, length }, i) => {
    bytes.writeDoubleLE(start, spansAt + i * spanBytes)
    bytes.writeUInt32LE(length, spansAt + i * spanBytes + 8)
  })
  bytes.set(body, headBytes)
  bytes.writeUInt32LE(checksumOf(bytes), checksumAt)
  return bytes
}

/** What stands before the columns, or undefined for bytes that are not wholly an `encodeTimeline`'s. */
export const readHead = (bytes: Buffer): { fetchedAt: number; marks: Marks } | undefined => {
  if (bytes.length <= headBytes || bytes.readUInt8(0) !== version) return undefined
  if (bytes.readUInt32LE(checksumAt) !== checksumOf(bytes)) return undefined
  const run = bytes.readDoubleLE(marksAt + 8)
  const generation = bytes.readDoubleLE(marksAt)
  return { fetchedAt: bytes.readDoubleLE(1), marks: { generation, run: Number.isNaN(run) ? null : run } }
}

/** The timeline and marks that `encodeTimeline` was given, or undefined for bytes that are not wholly its own. */
export const decodeTimeline = (bytes: Buffer): { timeline: Timeline; marks: Marks } | undefined => {
  const head = readHead(bytes)
  if (!head) return undefined
  try {
    const packed = brotliDecompressSync(bytes.subarray(headBytes))
    const timeline = layOut(head.fetchedAt, spanAt(bytes, 0), spanAt(bytes, 1), spanAt(bytes, 2))
    const end = columnsOf(timeline).reduce((at, column) => unpackColumn(packed, at, column), 0)
    return end === packed.length ? { timeline, marks: head.marks } : undefined
  } catch {
    return undefined
  }
}

const spanAt = (bytes: Buffer, i: number): Span => ({
  start: bytes.readDoubleLE(spansAt + i * spanBytes),
  length: bytes.readUInt32LE(spansAt + i * spanBytes + 8),
})

// Of everything but itself.
const checksumOf = (bytes: Buffer): number =>
  crc32(bytes.subarray(marksAt), crc32(bytes.subarray(0, checksumAt)))

const seriesOf = ({ quarterHours, hours, days }: Timeline): Series[] => [quarterHours, hours, days]

const columnCounts = [currentUnits, hourlyUnits, dailyUnits].map(units => Object.keys(units).length)

const columnsOf = (timeline: Timeline): Float32Array[] =>
  seriesOf(timeline).flatMap(({ offset, length }, i) =>
    Array.from({ length: columnCounts[i] ?? 0 }, (_, column) =>
      timeline.values.subarray(offset + column * length, offset + (column + 1) * length),
    ),
  )
