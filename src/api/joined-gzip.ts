// Joins the gzip of a body from parts that were compressed separately, such as a place and the weather of its cell. Raw deflate streams
// may follow each other where the first ends at a whole byte and the second refers to nothing before it (RFC 1951); the checksum of
// both follows from those of each.

import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { Chunks } from './connection/connection.ts'

/** The beginning of a gzip: its header, and the first part of a body as blocks that are not the last ones. */
export type GzipStart = { readonly bytes: Buffer; readonly crc: number; readonly length: number }

/** A part between others, as blocks that are not the last ones and end at a whole byte. */
export type GzipPart = GzipEnd

/** The rest of it: the second part, compressed by itself. */
export type GzipEnd = {
  readonly bytes: Buffer
  readonly crc: number
  readonly length: number
  /** The checksum of what stands before, times this, is its share in that of the whole. */
  readonly shift: number
}

// RFC 1952: deflate, no flags, no time, an unknown system.
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const trailerBytes = 8
const longestStoredBlock = 65_535
const storedHeaderBytes = 5

/** Without compression, for a part that is sent once: setting up a compressor costs more than a whole response. */
export const storedStart = (part: Buffer): GzipStart => {
  if (part.length > longestStoredBlock) return deflatedStart(part)
  const bytes = storedBlock(part, header.length)
  bytes.set(header)
  return { bytes, crc: crc32(part), length: part.length }
}

/** A stored block that is not the last one, from an offset on: a byte of bits, the length, and its complement. */
const storedBlock = (part: Buffer, at: number): Buffer => {
  const bytes = Buffer.allocUnsafe(at + storedHeaderBytes + part.length)
  bytes[at] = 0
  bytes.writeUInt16LE(part.length, at + 1)
  bytes.writeUInt16LE(part.length ^ 0xffff, at + 3)
  bytes.set(part, at + storedHeaderBytes)
  return bytes
}

/** The level of every gzip, joined or whole. */
export const gzipOptions = { level: constants.Z_DEFAULT_COMPRESSION }
/**
 * For a part of a body, which is joined with others. V8 keeps the piece of memory that it is written to until it collects old
 * objects, so that piece is hardly larger than what is written.
 */
export const partOptions = { ...gzipOptions, chunkSize: 4 * 1024 }
// The flush ends the last block at a whole byte.
export const openPartOptions = { ...partOptions, finishFlush: constants.Z_SYNC_FLUSH }

/** Compressed, for a part that is sent repeatedly. */
export const deflatedStart = (part: Buffer): GzipStart => ({
  bytes: Buffer.concat([header, deflateRawSync(part, openPartOptions)]),
  crc: crc32(part),
  length: part.length,
})

/** @param deflated the part as a whole raw deflate stream */
export const gzipEnd = (part: Buffer, deflated: Buffer): GzipEnd => ({
  bytes: deflated,
  crc: crc32(part),
  length: part.length,
  shift: shiftOver(part.length),
})

/** The end of a gzip of any number of parts: the checksum and the length of what they hold. */
export const trailerOfParts = (parts: readonly GzipPart[]): Buffer => {
  let crc = 0
  let length = 0
  for (const part of parts) {
    crc = joinedCrc(crc, part)
    length += part.length
  }
  return trailerOf(crc, length)
}

/** A gzip of any number of parts, each compressed before; the last one ends it. @param trailer where it is known */
export const gzipOfParts = (parts: readonly GzipPart[], trailer = trailerOfParts(parts)): Chunks => {
  const chunks: [Buffer, ...Buffer[]] = [header]
  for (const { bytes } of parts) chunks.push(bytes)
  chunks.push(trailer)
  return chunks
}

/** A few bytes without compression. @param isLast whether the gzip ends with it */
export const storedPart = (part: Buffer, isLast = false): GzipPart => {
  const bytes = storedBlock(part, 0)
  bytes[0] = isLast ? 1 : 0
  return gzipEnd(part, bytes)
}

/** The beginning of another gzip as a part after a few bytes. */
export const partBehind = (before: Buffer, start: GzipStart): GzipPart => {
  const { bytes, crc } = storedPart(before)
  const length = before.length + start.length
  return {
    bytes: Buffer.concat([bytes, start.bytes.subarray(header.length)]),
    crc: joinedCrc(crc, { crc: start.crc, shift: shiftOver(start.length) }),
    length,
    shift: shiftOver(length),
  }
}

export const joinedGzip = (start: GzipStart, end: GzipEnd): Chunks => [
  start.bytes,
  end.bytes,
  trailerOf(joinedCrc(start.crc, end), start.length + end.length),
]

const trailerOf = (crc: number, length: number): Buffer => {
  const trailer = Buffer.allocUnsafe(trailerBytes)
  trailer.writeUInt32LE(crc, 0)
  trailer.writeUInt32LE(length >>> 0, 4)
  return trailer
}

/** The checksum of a text that goes on with this end, without reading it again. */
export const joinedCrc = (before: number, { shift, crc }: Pick<GzipEnd, 'shift' | 'crc'>): number =>
  (multiplied(shift, before) ^ crc) >>> 0

// A checksum is a remainder of polynomials over GF(2), with the highest power in the lowest bit. Text that follows multiplies
// the text before it by x to the power of its bits.
const polynomial = 0xedb88320
const one = 0x80000000

const multiplied = (a: number, b: number): number => {
  let [product, power] = [0, b]
  // Without branches, which the processor could not predict: each bit is a mask of all ones or none.
  for (let bits = a; bits !== 0; bits <<= 1) {
    product ^= power & (bits >> 31)
    power = (power >>> 1) ^ (polynomial & -(power & 1))
  }
  return product
}

const shiftOver = (bytes: number): number => {
  // x to the power of 8, squared for each binary digit of the length.
  let [shift, square] = [one, one >>> 8]
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) shift = multiplied(shift, square)
    square = multiplied(square, square)
  }
  return shift
}
