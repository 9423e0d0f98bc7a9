// Results of runs that no run writes: histograms with heads and words of their own, packed as the library packs them, and
// figures and lists beyond measure.

import { deflateSync } from 'node:zlib'
import type { Random } from '../random.ts'

const inBase64 = (bytes: Buffer, length: (packed: number) => number): string => {
  const body = deflateSync(bytes)
  const head = Buffer.alloc(8)
  head.writeInt32BE(0x1c849314, 0)
  head.writeInt32BE(length(body.length), 4)
  return Buffer.concat([head, body]).toString('base64')
}

const words: readonly Buffer[] = [
  Buffer.alloc(0),
  Buffer.from([2, 2]),
  Buffer.from([0x80]),
  Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
  Buffer.from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
  Buffer.alloc(100_000, 2),
  Buffer.alloc(50_000_000),
]
const numbers = [-1, 0, 1, 3, 5, 2 ** 30, 2 ** 31 - 1]
const ends = [-1n, 0n, 1n, 2n, 1_000_000n, 2n ** 53n, 2n ** 62n]

/** A compressed histogram whose parts do not fit each other. */
const hostileHistogram = (random: Random): string => {
  const body = random.pick(words)
  const head = Buffer.alloc(40)
  head.writeInt32BE(random.chance(0.9) ? 0x1c849313 : random.pick(numbers), 0)
  head.writeInt32BE(random.chance(0.7) ? body.length : random.pick(numbers), 4)
  head.writeInt32BE(random.chance(0.6) ? 3 : random.pick(numbers), 12)
  head.writeBigInt64BE(random.chance(0.6) ? 1n : random.pick(ends), 16)
  head.writeBigInt64BE(random.chance(0.5) ? 1_000_000n : random.pick(ends), 24)
  const wrong = random.chance(0.1) ? random.pick(numbers) : undefined
  return inBase64(Buffer.concat([head, body]), length => wrong ?? length)
}

const figures = ['1e15', '1e308', '1e999', '-1', '5e-324', '1e10', '9007199254740993', 'null', '"1"']

/** One change of a result's text. */
export const mutatedReport = (random: Random, text: string): string => {
  const kind = random.between(0, 3)
  if (kind === 0) return text.replace(/"histogram":"[^"]*"/, `"histogram":"${hostileHistogram(random)}"`)
  if (kind === 1) {
    const found = [...text.matchAll(/"([a-zA-Z0-9]+)":[\d.]+/g)]
    const name = found[random.between(0, Math.max(0, found.length - 1))]?.[1] ?? 'at'
    return text.replaceAll(new RegExp(`"${name}":[\\d.]+`, 'g'), `"${name}":${random.pick(figures)}`)
  }
  if (kind === 2) {
    const begin = `"${random.pick(['steps', 'latencies', 'thresholds', 'files'])}":[`
    const entry = random.pick(['{},', '[],', '1,'])
    return text.replace(begin, begin + entry.repeat(random.pick([1, 2_000, 600_000])))
  }
  const entry = random.pick(['{}', '[]', '0', '""', text.trim()])
  return `[${Array(random.pick([2, 300, entry.length < 5 ? 600_000 : 20]))
    .fill(entry)
    .join(',')}]\n`
}
