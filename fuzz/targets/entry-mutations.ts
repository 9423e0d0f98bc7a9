// Mutations of the bytes of a cached entry, as data: bits, bytes, lengths, numbers of its head, its compressed part, and
// whole entries under the names of others. The checksum can be recomputed, as an attacker who knows it would.

import { brotliCompressSync, brotliDecompressSync, constants, crc32 } from 'node:zlib'
import type { Random } from '../random.ts'

export type Tampering = {
  readonly kind: string
  readonly at: readonly number[]
  readonly repairs: boolean
}

/** The layout of entries, as derived from valid ones. */
export type Layout = {
  /** Where the compressed part begins; undefined when none is found. */
  readonly bodyAt: number | undefined
  /** Recomputes the checksum; undefined when none is found. */
  readonly repair: ((bytes: Buffer, name: string) => void) | undefined
}

const longestHead = 200

/** @param entry a valid entry, and the names of it and of its cell */
export const layoutOf = (entry: Buffer, names: readonly string[]): Layout => ({
  bodyAt: bodyIn(entry),
  repair: repairFor(entry, names),
})

const bodyIn = (entry: Buffer): number | undefined => {
  for (let at = 0; at < Math.min(longestHead, entry.length); at++) {
    try {
      if (brotliDecompressSync(entry.subarray(at)).length > entry.length / 2) return at
    } catch {
      // No compressed part begins here.
    }
  }
  return undefined
}

/** Looks for a CRC-32 over all other bytes, possibly seeded with a name of the entry. */
const repairFor = (entry: Buffer, names: readonly string[]): Layout['repair'] => {
  for (let at = 0; at + 4 <= Math.min(longestHead, entry.length); at++)
    for (const [which] of ['', ...names].entries()) {
      const sumOf = (bytes: Buffer, all: readonly string[]): number =>
        crc32(bytes.subarray(at + 4), crc32(bytes.subarray(0, at), crc32(['', ...all][which] ?? '')))
      if (sumOf(entry, names) === entry.readUInt32LE(at))
        return (bytes, name) => {
          if (bytes.length >= at + 4) bytes.writeUInt32LE(sumOf(bytes, namesLike(names, name)), at)
        }
    }
  return undefined
}
// Every name of an entry ends in that of its cell.
const namesLike = (names: readonly string[], cell: string): string[] => {
  const own = names[0] ?? ''
  return names.map(name => name.replace(own, cell))
}

type Parts = { readonly bytes: Buffer; readonly other: Buffer; readonly layout: Layout; readonly now: number }
type Tamper = (parts: Parts, at: readonly number[]) => Buffer

const indexAt = (length: number, share = 0): number =>
  Math.min(Math.max(0, length - 1), Math.floor(share * length))
const copy = (bytes: Buffer): Buffer => Buffer.from(bytes)
const headLength = ({ layout, bytes }: Parts): number => Math.min(layout.bodyAt ?? 64, bytes.length)

const zeros = (megabytes: number): Buffer =>
  brotliCompressSync(Buffer.alloc(megabytes * 1024 * 1024), {
    params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
  })
let bomb: Buffer | undefined

/** The compressed part with other content. */
const withBody = ({ bytes, layout: { bodyAt } }: Parts, change: (content: Buffer) => Buffer): Buffer => {
  if (bodyAt === undefined) return copy(bytes)
  try {
    return Buffer.concat([
      bytes.subarray(0, bodyAt),
      brotliCompressSync(change(brotliDecompressSync(bytes.subarray(bodyAt)))),
    ])
  } catch {
    return copy(bytes)
  }
}

const numbers = (now: number, before: number): number[] => [
  0,
  1,
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 53,
  1e308,
  before + 1,
  before - 1,
  before * 2,
  before + 900_000,
  before - 900_000,
  before + 3_600_000,
  before + 86_400_000,
  before - 86_400_000,
  now + 86_400_000,
  now * 1_000,
]

const ways: Readonly<Record<string, Tamper>> = {
  'flipped bits': ({ bytes }, at) => {
    const changed = copy(bytes)
    for (const share of at) {
      const i = indexAt(changed.length, share)
      changed[i] = (changed[i] ?? 0) ^ (1 << (Math.floor(share * 1e6) % 8))
    }
    return changed
  },
  'a flipped bit of the head': (parts, [share = 0]) => {
    const changed = copy(parts.bytes)
    const i = indexAt(headLength(parts), share)
    changed[i] = (changed[i] ?? 0) ^ (1 << (Math.floor(share * 1e6) % 8))
    return changed
  },
  'a double of the head': (parts, [place, which]) => {
    const changed = copy(parts.bytes)
    const i = indexAt(headLength(parts) - 8, place)
    const all = numbers(parts.now, changed.readDoubleLE(i))
    changed.writeDoubleLE(all[indexAt(all.length, which)] ?? 0, i)
    return changed
  },
  'a length of the head': (parts, [place, which]) => {
    const changed = copy(parts.bytes)
    const i = indexAt(headLength(parts) - 4, place)
    const all = numbers(parts.now, changed.readUInt32LE(i)).filter(
      value => Number.isInteger(value) && value >= 0 && value < 2 ** 32,
    )
    changed.writeUInt32LE(all[indexAt(all.length, which)] ?? 0, i)
    return changed
  },
  'cut off': ({ bytes }, [share]) => copy(bytes.subarray(0, indexAt(bytes.length, share))),
  'the head alone': parts => copy(parts.bytes.subarray(0, headLength(parts))),
  nothing: () => Buffer.alloc(0),
  'something behind': ({ bytes }, [share]) => Buffer.concat([bytes, Buffer.alloc(1 + indexAt(1_000, share))]),
  'something before': ({ bytes }, [share]) => Buffer.concat([Buffer.alloc(1 + indexAt(16, share)), bytes]),
  twice: ({ bytes }) => Buffer.concat([bytes, bytes]),
  'another version': ({ bytes }, [share]) => {
    const changed = copy(bytes)
    changed[0] = indexAt(256, share)
    return changed
  },
  'of another cell': ({ other }) => copy(other),
  'the body of another cell': ({ bytes, other, layout: { bodyAt = 64 } }) =>
    Buffer.concat([bytes.subarray(0, bodyAt), other.subarray(bodyAt)]),
  'the head of another cell': ({ bytes, other, layout: { bodyAt = 64 } }) =>
    Buffer.concat([other.subarray(0, bodyAt), bytes.subarray(bodyAt)]),
  'other content': (parts, at) =>
    withBody(parts, content => {
      for (const share of at) content[indexAt(content.length, share)] = Math.floor(share * 1e6) % 256
      return content
    }),
  'content too short': (parts, [share]) =>
    withBody(parts, content => content.subarray(0, indexAt(content.length, share))),
  'content too long': (parts, [share]) =>
    withBody(parts, content => Buffer.concat([content, Buffer.alloc(1 + indexAt(5_000, share), 1)])),
  'a bomb': ({ bytes, layout: { bodyAt = 64 } }) => {
    bomb ??= zeros(512)
    return Buffer.concat([bytes.subarray(0, bodyAt), bomb])
  },
  noise: ({ bytes }, at) =>
    Buffer.from(Array.from(bytes, (_, i) => (i * 31 + Math.floor((at[i % at.length] ?? 0) * 256)) & 255)),
  'a large value': ({ bytes }) => Buffer.concat([bytes, Buffer.alloc(8 * 1024 * 1024, 7)]),
}

export const tamperingKinds = Object.keys(ways)
export const isBomb = ({ kind }: Tampering): boolean => kind === 'a bomb'
/** Whether the tampering can produce weather of its own; the other kinds change only the head's numbers or the owner. */
export const makesUpWeather = ({ kind }: Tampering): boolean =>
  [
    'flipped bits',
    'other content',
    'content too long',
    'content too short',
    'the body of another cell',
    'the head of another cell',
    'noise',
  ].includes(kind)

export const makeTampering = (random: Random, kind: string): Tampering => ({
  kind,
  at: Array.from({ length: random.between(1, 4) }, () => random.fraction()),
  repairs: random.chance(0.5),
})

/** The tampered bytes. @param cell the name of the cell under which they are stored */
export const tampered = (tampering: Tampering, parts: Parts, cell: string): Buffer => {
  const changed = ways[tampering.kind]?.(parts, tampering.at) ?? copy(parts.bytes)
  if (tampering.repairs) parts.layout.repair?.(changed, cell)
  return changed
}
