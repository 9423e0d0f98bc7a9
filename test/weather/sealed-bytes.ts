// An entry of the shared tier as an attacker who knows the format writes it: any head, any columns, and correct checksums.
// Written after the description of the format, independently of the encoder.

import { brotliCompressSync, constants, crc32 } from 'node:zlib'
import { dayNumber } from '../../src/common/calendar.ts'
import type { Expectation } from '../../src/weather/timeline-bytes.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../src/weather/weather-variables.ts'

export type SealedHead = {
  readonly version: number
  readonly fetchedAt: number
  readonly generation: number
  readonly run: number
  readonly quarterHours: number
  readonly hours: number
  readonly days: number
}

/** As of noon of 2026-11-21 in Dhaka. */
export const plainHead: SealedHead = {
  version: 3,
  fetchedAt: Date.parse('2026-11-21T06:00Z'),
  generation: 0,
  run: Number.NaN,
  quarterHours: Date.parse('2026-11-21T06:00Z'),
  hours: Date.parse('2026-11-20T18:00Z'),
  days: dayNumber('2026-11-21'),
}

/** Columns of these lengths with 0 everywhere: a byte for the form, and 1 for "as before". */
export const plainColumns = ({ quarterHours, hours, days }: Expectation['lengths']): Buffer =>
  Buffer.concat(
    [
      [currentUnits, quarterHours] as const,
      [hourlyUnits, hours] as const,
      [dailyUnits, days] as const,
    ].flatMap(([units, length]) =>
      Object.keys(units).map(() => Buffer.concat([Buffer.from([0]), Buffer.alloc(length, 1)])),
    ),
  )

/** Compressed with the window size of entries. */
export const compressed = (packed: Uint8Array, windowBits = 16): Buffer =>
  brotliCompressSync(packed, { params: { [constants.BROTLI_PARAM_LGWIN]: windowBits } })

export const sealedBytes = (key: string, head: Partial<SealedHead>, body: Buffer): Buffer => {
  const { version, fetchedAt, generation, run, quarterHours, hours, days } = { ...plainHead, ...head }
  const bytes = Buffer.alloc(57 + body.length)
  bytes.writeUInt8(version, 0)
  bytes.writeDoubleLE(fetchedAt, 1)
  bytes.writeUInt32LE(crc32(key), 13)
  ;[generation, run, quarterHours, hours, days].forEach((value, i) => {
    bytes.writeDoubleLE(value, 17 + 8 * i)
  })
  bytes.set(body, 57)
  return sealed(bytes)
}

/** The same bytes with a correct checksum. */
export const sealed = (bytes: Buffer): Buffer => {
  const copy = Buffer.from(bytes)
  copy.writeUInt32LE(crc32(copy.subarray(13), crc32(copy.subarray(0, 9))), 9)
  return copy
}
