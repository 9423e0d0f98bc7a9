// Joins the gzip of a body from two parts that are compressed by themselves: the part of a place, which is the same at all times,
// and the weather, which all places of a cell share. Raw deflate streams may follow each other where the first one ends at a
// whole byte and the second one refers to nothing before it (RFC 1951); the checksum of both follows from those of each.
// rendered-weather.ts decides which bodies are sent so.

import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { Chunks } from './connection/ready-response.ts'
import { partOptions } from './content-coding.ts'

/** The beginning of a gzip: its header, and the first part of a body as blocks that are not the last ones. */
export type GzipStart = { readonly bytes: Buffer; readonly crc: number; readonly length: number }

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
  const bytes = Buffer.allocUnsafe(header.length + storedHeaderBytes + part.length)
  bytes.set(header)
  // A stored block that is not the last one: a byte of bits, the length, and its complement.
  bytes[header.length] = 0
  bytes.writeUInt16LE(part.length, header.length + 1)
  bytes.writeUInt16LE(part.length ^ 0xffff, header.length + 3)
  bytes.set(part, header.length + storedHeaderBytes)
  return { bytes, crc: crc32(part), length: part.length }
}

/** Compressed, for a part that is sent repeatedly. */
export const deflatedStart = (part: Buffer): GzipStart => ({
  // The flush ends the last block at a whole byte.
  bytes: Buffer.concat([
    header,
    deflateRawSync(part, { ...partOptions, finishFlush: constants.Z_SYNC_FLUSH }),
  ]),
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

/** The gzip of both parts. */
export const joinedGzip = (start: GzipStart, end: GzipEnd): Chunks => {
  const trailer = Buffer.allocUnsafe(trailerBytes)
  trailer.writeUInt32LE(joinedCrc(start.crc, end), 0)
  trailer.writeUInt32LE((start.length + end.length) >>> 0, 4)
  return [start.bytes, end.bytes, trailer]
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
  for (let bits = a; bits !== 0; bits <<= 1) {
    if (bits & one) product ^= power
    power = power & 1 ? (power >>> 1) ^ polynomial : power >>> 1
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
