// The byte format of a timeline in the shared tier: a header, then the packed columns, compressed, under one checksum. Version 3 has the
// usual lengths, which it does not contain; version 4 says its own. The store is not trusted: decoding never throws, and refuses bytes
// that `encodeTimeline` would not write for this key.

import { brotliCompressSync, brotliDecompressSync, constants, crc32 } from 'node:zlib'
import { type Calendar, quarterHourMs, utcDayMs } from '../common/calendar.ts'
import { clockToleranceMs } from '../common/clock.ts'
import { type Lengths, longestLengths, usualLengths } from './horizon.ts'
import { maxBytes, packColumn, unpackColumn } from './packed-column.ts'
import { columnCounts, layOut, type Series, type Span, type Timeline } from './timeline.ts'

/** The metadata of a load, stored with the timeline. */
export type LoadMetadata = {
  /** The number of the newest purge at the load: a whole number from 0 on. */
  readonly generation: number
  /** When the newest model run at the load became available, ms since the epoch; null when runs are not followed. */
  readonly run: number | null
}

/** The reader's expectations: the key, the zone of this gateway, and the instant of the read. */
export type Expectation = {
  readonly key: string
  /** Of bytes that do not say theirs. */
  readonly lengths: Lengths
  readonly now: number
  readonly calendar: Pick<Calendar, 'offsetSecondsAt'>
}

/**
 * Why bytes are refused. `length`: truncated, or with bytes after the end. `key`: written under another key. `instant`: an
 * impossible time. `malformed`: columns that the encoder never writes, or that have no value.
 */
export const bytesRefusals = [
  ...(['too_large', 'length', 'version', 'checksum', 'key', 'instant', 'malformed'] as const),
]
export type BytesRefusal = (typeof bytesRefusals)[number]

// The head: version, fetchedAt, checksum, the key's own checksum, generation, run, and the start of each series; then, where
// they are not the usual ones, the lengths of quarter-hours and days.
const usualVersion = 3
const version = 4
const checksumAt = 9
const keyAt = checksumAt + 4
const metadataAt = keyAt + 4
const startsAt = metadataAt + 16
const usualHeadBytes = startsAt + 3 * 8
const lengthsAt = usualHeadBytes
const headBytes = lengthsAt + 2 * 2

// Quality 4 saves 1.5 % of the bytes, and its tables of half a megabyte cost a quarter of a millisecond to get from the system and
// give back. The window needs to cover one timeline, not megabytes.
const windowBits = 16
const compression = {
  [constants.BROTLI_PARAM_QUALITY]: 3,
  [constants.BROTLI_PARAM_LGWIN]: windowBits,
}
// Most bodies are one chunk of it. The usual 16 KiB for each new cell would be collected all the time.
const compressedAtOnce = 2 * 1024
// The columns of one timeline before they are compressed; used again for the next.
let packed = new Uint8Array(0)

const maxPacked = ({ quarterHours, hours, days }: Lengths): number =>
  [quarterHours, hours, days].reduce((sum, length, i) => sum + (columnCounts[i] ?? 0) * maxBytes(length), 0)

/** The maximum bytes of an entry; incompressible data grows a little. */
const maxBytesWith = (lengths: Lengths): number =>
  headBytes + Math.floor(maxPacked(lengths) * (1 + 1 / 1024)) + 64
export const maxEncodedBytes = maxBytesWith(longestLengths)

/**
 * The bytes of a timeline under a key, for `decodeTimeline`.
 * @param unsaid lengths that readers know, so that the bytes omit them
 */
export const encodeTimeline = (
  key: string,
  timeline: Timeline,
  metadata: LoadMetadata,
  unsaid = usualLengths,
): Buffer => {
  const columns = columnsOf(timeline)
  const max = columns.reduce((sum, { length }) => sum + maxBytes(length), 0)
  if (packed.length < max) packed = new Uint8Array(max)
  const end = columns.reduce((at, column) => packColumn(column, packed, at), 0)
  const body = brotliCompressSync(packed.subarray(0, end), {
    params: compression,
    chunkSize: compressedAtOnce,
  })

  // Not from Node's pool, which a kept buffer would keep alive as a whole.
  const isUsual =
    timeline.quarterHours.length === unsaid.quarterHours &&
    timeline.hours.length === unsaid.hours &&
    timeline.days.length === unsaid.days
  const bodyAt = isUsual ? usualHeadBytes : headBytes
  const bytes = Buffer.alloc(bodyAt + body.length)
  bytes.writeUInt8(isUsual ? usualVersion : version, 0)
  bytes.writeDoubleLE(timeline.fetchedAt, 1)
  bytes.writeUInt32LE(crc32(key), keyAt)
  bytes.writeDoubleLE(metadata.generation, metadataAt)
  bytes.writeDoubleLE(metadata.run ?? Number.NaN, metadataAt + 8)
  for (const [i, { start }] of seriesOf(timeline).entries()) bytes.writeDoubleLE(start, startsAt + i * 8)
  if (!isUsual) {
    bytes.writeUInt16LE(timeline.quarterHours.length, lengthsAt)
    bytes.writeUInt16LE(timeline.days.length, lengthsAt + 2)
  }
  bytes.set(body, bodyAt)
  bytes.writeUInt32LE(checksumOf(bytes), checksumAt)
  return bytes
}

type Head = Pick<Timeline, 'fetchedAt'> &
  Readonly<Record<'quarterHours' | 'hours' | 'days', Span>> & { readonly metadata: LoadMetadata }

/** The header before the columns, or why the bytes are refused. */
export const readHead = (bytes: Buffer, expected: Expectation): Head | BytesRefusal => {
  if (bytes.length > maxEncodedBytes) return 'too_large'
  if (bytes.length <= usualHeadBytes) return 'length'
  const found = bytes.readUInt8(0)
  if (found !== usualVersion && found !== version) return 'version'
  if (bytes.length <= bodyAtOf(bytes)) return 'length'
  if (bytes.readUInt32LE(checksumAt) !== checksumOf(bytes)) return 'checksum'
  if (bytes.readUInt32LE(keyAt) !== crc32(expected.key)) return 'key'
  const fetchedAt = bytes.readDoubleLE(1)
  const generation = bytes.readDoubleLE(metadataAt)
  const run = bytes.readDoubleLE(metadataAt + 8)
  const isNow = isInstant(fetchedAt) && fetchedAt <= expected.now + clockToleranceMs
  const isRun = Number.isNaN(run) || (isInstant(run) && run <= fetchedAt + clockToleranceMs)
  const isCount = Number.isSafeInteger(generation) && generation >= 0
  const startAt = (i: number): number => bytes.readDoubleLE(startsAt + i * 8)
  const lengths = found === usualVersion ? expected.lengths : lengthsIn(bytes)
  if (!lengths) return 'malformed'
  if (bytes.length > maxBytesWith(lengths)) return 'too_large'
  const head = {
    fetchedAt,
    metadata: { generation, run: Number.isNaN(run) ? null : run },
    quarterHours: { start: startAt(0), length: lengths.quarterHours },
    hours: { start: startAt(1), length: lengths.hours },
    days: { start: startAt(2), length: lengths.days },
  }
  return isNow && isRun && isCount && areStarts(head, expected) ? head : 'instant'
}

const bodyAtOf = (bytes: Buffer): number => (bytes.readUInt8(0) === usualVersion ? usualHeadBytes : headBytes)

/** The lengths that bytes declare; undefined where no gateway writes them. */
const lengthsIn = (bytes: Buffer): Lengths | undefined => {
  const quarterHours = bytes.readUInt16LE(lengthsAt)
  const days = bytes.readUInt16LE(lengthsAt + 2)
  return quarterHours <= longestLengths.quarterHours && days <= longestLengths.days
    ? { quarterHours, hours: days * 24, days }
    : undefined
}

/** The timeline and metadata that `encodeTimeline` was given, or why the bytes are refused. */
export const decodeTimeline = (
  bytes: Buffer,
  expected: Expectation,
): { timeline: Timeline; metadata: LoadMetadata } | BytesRefusal => {
  const head = readHead(bytes, expected)
  if (typeof head === 'string') return head
  const { fetchedAt, quarterHours, hours, days } = head
  const max = maxPacked({ quarterHours: quarterHours.length, hours: hours.length, days: days.length })
  const packed = unpack(bytes.subarray(bodyAtOf(bytes)), max)
  if (typeof packed === 'string') return packed

  const timeline = layOut(fetchedAt, quarterHours, hours, days)
  let at = 0
  for (const column of columnsOf(timeline)) {
    at = unpackColumn(packed, at, column)
    if (at === -1) return 'malformed'
  }
  if (at !== packed.length) return 'length'
  return seriesOf(timeline).every((series, i) => holdsValue(timeline, series, columnCounts[i] ?? 0))
    ? { timeline, metadata: head.metadata }
    : 'malformed'
}

const unpack = (body: Buffer, max: number): Buffer | BytesRefusal => {
  // A first bit of 0 means a window of 2^16: a larger one is not ours, and may take 16 MiB to unpack.
  if (((body[0] ?? 0) & 1) !== 0) return 'malformed'
  try {
    // One byte more than possible, so that the output is one chunk.
    const options = { maxOutputLength: max, chunkSize: Math.max(max + 1, 64), info: true }
    // The types do not know the result with `info`: it has the number of input bytes read.
    const { buffer, engine } = brotliDecompressSync(body, options) as unknown as {
      readonly buffer: Buffer
      readonly engine: { readonly bytesWritten: number }
    }
    return engine.bytesWritten === body.length ? buffer : 'length'
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ERR_BUFFER_TOO_LARGE') return 'too_large'
    return code === 'Z_BUF_ERROR' ? 'length' : 'malformed'
  }
}

// False for NaN, infinities and instants that a Date can't have.
const lastInstant = 8.64e15
const isInstant = (value: number): boolean => value >= 0 && value <= lastInstant

// Quarter-hours and days must cover the instant of the load, and hours must begin with the first day, in local time.
const areStarts = (head: Head, { calendar }: Expectation): boolean => {
  const { fetchedAt } = head
  const [quarterHours, hours, days] = [head.quarterHours.start, head.hours.start, head.days.start]
  if (!isInstant(quarterHours) || quarterHours % quarterHourMs !== 0 || !Number.isSafeInteger(days))
    return false
  const offset = calendar.offsetSecondsAt(fetchedAt) * 1000
  const step = Math.floor((fetchedAt - quarterHours) / quarterHourMs)
  const day = Math.floor((fetchedAt + offset) / utcDayMs) - days
  return (
    step >= 0 &&
    step < head.quarterHours.length &&
    day >= 0 &&
    day < head.days.length &&
    hours === days * utcDayMs - offset
  )
}

const holdsValue = ({ values }: Timeline, { offset, length }: Series, columns: number): boolean => {
  // Nearly always the first value is present.
  for (let i = offset; i < offset + columns * length; i++) if (!Number.isNaN(values[i])) return true
  return length === 0
}

// Over all bytes but the checksum itself.
const checksumOf = (bytes: Buffer): number =>
  crc32(bytes.subarray(keyAt), crc32(bytes.subarray(0, checksumAt)))

const seriesOf = ({ quarterHours, hours, days }: Timeline): Series[] => [quarterHours, hours, days]

const columnsOf = (timeline: Timeline): Float32Array[] =>
  seriesOf(timeline).flatMap(({ offset, length }, i) =>
    Array.from({ length: columnCounts[i] ?? 0 }, (_, column) =>
      timeline.values.subarray(offset + column * length, offset + (column + 1) * length),
    ),
  )
