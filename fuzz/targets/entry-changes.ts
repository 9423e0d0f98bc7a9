// Changes of the bytes of a cached entry, as data: bits, bytes, lengths, numbers of its head, its compressed part, and
// whole entries under the names of others. The checksum can be recomputed, as an attacker who knows it would.

import { brotliCompressSync, brotliDecompressSync, constants, crc32 } from 'node:zlib'
import fc, { type Arbitrary } from 'fast-check'
import { indexAt, itemAt, shares } from '../target.ts'

export type Tampering = { readonly kind: string; readonly at: readonly number[]; readonly repairs: boolean }

/** The layout of entries, as derived from a valid one. */
export type Layout = {
  /** Where the compressed part begins; undefined when none is found. */
  readonly bodyAt: number | undefined
  /** Recomputes the checksum, of the entry of a cell; undefined when none is found. */
  readonly repair: ((bytes: Buffer, cell: string) => void) | undefined
}

const longestHead = 200

/** @param entry a valid entry @param names of its cell, and those of itself, which contain that of the cell */
export const layoutOf = (entry: Buffer, names: readonly string[]): Layout => ({
  bodyAt: bodyIn(entry),
  repair: repairFor(entry, names),
})

const bodyIn = (entry: Buffer): number | undefined => {
  for (let at = 0; at < Math.min(longestHead, entry.length); at++)
    try {
      if (brotliDecompressSync(entry.subarray(at)).length > entry.length / 2) return at
    } catch {
      // No compressed part begins here.
    }
  return undefined
}

/** Looks for a CRC-32 over all other bytes, possibly seeded with a name of the entry. */
const repairFor = (entry: Buffer, names: readonly string[]): Layout['repair'] => {
  const [own = ''] = names
  for (let at = 0; at + 4 <= Math.min(longestHead, entry.length); at++)
    for (const name of ['', ...names]) {
      const sumOf = (bytes: Buffer, seed: string): number =>
        crc32(bytes.subarray(at + 4), crc32(bytes.subarray(0, at), crc32(seed)))
      if (sumOf(entry, name) !== entry.readUInt32LE(at)) continue
      return (bytes, cell) => {
        if (bytes.length >= at + 4) bytes.writeUInt32LE(sumOf(bytes, name.replace(own, cell)), at)
      }
    }
  return undefined
}

type Parts = { readonly bytes: Buffer; readonly other: Buffer; readonly layout: Layout; readonly now: number }
/** Returns other bytes, or changes those that it is given, which are a copy. */
type Tamper = (parts: Parts, at: readonly number[]) => Buffer

let bomb: Buffer | undefined
const zeros = (megabytes: number): Buffer =>
  brotliCompressSync(Buffer.alloc(megabytes * 1024 * 1024), {
    params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
  })

const headLength = ({ layout, bytes }: Parts): number => Math.min(layout.bodyAt ?? 64, bytes.length)
const headOf = (parts: Parts): Buffer => parts.bytes.subarray(0, headLength(parts))
const flip = (bytes: Buffer, length: number, ...places: number[]): Buffer => {
  for (const place of places) {
    const i = indexAt(length, place)
    bytes[i] = (bytes[i] ?? 0) ^ (1 << (Math.floor(place * 2 ** 20) % 8))
  }
  return bytes
}

/** The compressed part with other content. */
const withBody = (parts: Parts, change: (content: Buffer) => Buffer): Buffer => {
  try {
    const content = brotliDecompressSync(parts.bytes.subarray(headLength(parts)))
    return Buffer.concat([headOf(parts), brotliCompressSync(change(content))])
  } catch {
    return parts.bytes
  }
}

const [quarterHourMs, hourMs, dayMs] = [900_000, 3_600_000, 86_400_000]
const numbers = (now: number, before: number): number[] => [
  ...[0, 1, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, 2 ** 32 - 1, 2 ** 53, 1e308, before * 2],
  ...[1, -1, quarterHourMs, -quarterHourMs, hourMs, dayMs, -dayMs].map(ms => before + ms),
  ...[now + dayMs, now * 1_000],
]
const isLength = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < 2 ** 32

/** What leaves the weather as it is, whatever the checksum says. */
const ofHeadOrOwner: Readonly<Record<string, Tamper>> = {
  'a flipped bit of the head': (parts, [place = 0]) => flip(parts.bytes, headLength(parts), place),
  'a double of the head': (parts, [place, which]) => {
    const i = indexAt(headLength(parts) - 8, place)
    parts.bytes.writeDoubleLE(itemAt(numbers(parts.now, parts.bytes.readDoubleLE(i)), which) ?? 0, i)
    return parts.bytes
  },
  'a length of the head': (parts, [place, which]) => {
    const i = indexAt(headLength(parts) - 4, place)
    const all = numbers(parts.now, parts.bytes.readUInt32LE(i)).filter(isLength)
    parts.bytes.writeUInt32LE(itemAt(all, which) ?? 0, i)
    return parts.bytes
  },
  'cut off': ({ bytes }, [place]) => bytes.subarray(0, indexAt(bytes.length, place)),
  'the head alone': headOf,
  nothing: () => Buffer.alloc(0),
  'something behind': ({ bytes }, [place]) => Buffer.concat([bytes, Buffer.alloc(1 + indexAt(1_000, place))]),
  'something before': ({ bytes }, [place]) => Buffer.concat([Buffer.alloc(1 + indexAt(16, place)), bytes]),
  twice: ({ bytes }) => Buffer.concat([bytes, bytes]),
  'another version': ({ bytes }, [place]) =>
    Buffer.concat([Buffer.of(indexAt(256, place)), bytes.subarray(1)]),
  'of another cell': ({ other }) => other,
  'a large value': ({ bytes }) => Buffer.concat([bytes, Buffer.alloc(8 * 1024 * 1024, 7)]),
  'a bomb': parts => {
    bomb ??= zeros(512)
    return Buffer.concat([headOf(parts), bomb])
  },
}

/** What makes weather up, where the checksum is right. */
const ofWeather: Readonly<Record<string, Tamper>> = {
  'flipped bits': ({ bytes }, at) => flip(bytes, bytes.length, ...at),
  'the body of another cell': parts =>
    Buffer.concat([headOf(parts), parts.other.subarray(headLength(parts))]),
  'the head of another cell': parts =>
    Buffer.concat([parts.other.subarray(0, headLength(parts)), parts.bytes.subarray(headLength(parts))]),
  'other content': (parts, at) => withBody(parts, content => flip(content, content.length, ...at)),
  'content too short': (parts, [place]) =>
    withBody(parts, content => content.subarray(0, indexAt(content.length, place))),
  'content too long': (parts, [place]) =>
    withBody(parts, content => Buffer.concat([content, Buffer.alloc(1 + indexAt(5_000, place), 1)])),
  noise: ({ bytes }, at) =>
    Buffer.from(Array.from(bytes, (_, i) => (i * 31 + Math.floor((at[i % at.length] ?? 0) * 256)) & 255)),
}

const bombKind = 'a bomb'
export const isBomb = ({ kind }: Tampering): boolean => kind === bombKind
export const makesUpWeather = ({ kind }: Tampering): boolean => kind in ofWeather

const tamperingsOf = (kinds: readonly string[]): Arbitrary<Tampering> =>
  fc.record({ kind: fc.constantFrom(...kinds), at: shares(4), repairs: fc.boolean() })
const ways = { ...ofHeadOrOwner, ...ofWeather }
export const tamperings = tamperingsOf(Object.keys(ways).filter(kind => kind !== bombKind))
export const bombTamperings = tamperingsOf([bombKind])

/** The tampered bytes. @param cell the name of the cell under which they are stored */
export const tampered = ({ kind, at, repairs }: Tampering, parts: Parts, cell: string): Buffer => {
  const changed = Buffer.from(ways[kind]?.({ ...parts, bytes: Buffer.from(parts.bytes) }, at) ?? parts.bytes)
  if (repairs) parts.layout.repair?.(changed, cell)
  return changed
}
