// Without it a forged entry in the shared tier could exhaust the memory of every gateway.

import { execFileSync } from 'node:child_process'
import { constants, crc32, createBrotliCompress } from 'node:zlib'
import t from 'tap'
import { stepsWithin } from '../../src/weather/horizon.ts'
import { withoutPrlimit } from '../support/process.ts'
import { patienceMs } from '../support/until.ts'
import { compressed, plainColumns, plainHead, sealedBytes } from './sealed-bytes.ts'

const key = 'q:23.7,90.4'
const lengths = stepsWithin({ quarterHours: 98, days: 9 })
const now = plainHead.fetchedAt
const driver = new URL('./decode-entries.ts', import.meta.url).pathname
// Node's own memory, and 300 MB.
const dataBytes = 900_000_000

/** Compresses zeros chunk by chunk, because all of them together do not fit into memory. */
const zeros = async (bytes: number, quality: number, windowBits = 16): Promise<Buffer> => {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: quality,
    [constants.BROTLI_PARAM_LGWIN]: windowBits,
    [constants.BROTLI_PARAM_LGBLOCK]: 24,
  }
  const compressor = createBrotliCompress({ params })
  const piece = Buffer.alloc(1 << 20)
  const writing = (async () => {
    for (let sent = 0; sent < bytes; sent += piece.length)
      if (!compressor.write(piece)) await new Promise(resolve => compressor.once('drain', resolve))
    compressor.end()
  })()
  const out = await Array.fromAsync(compressor as AsyncIterable<Buffer>)
  await writing
  return Buffer.concat(out)
}

/** An entry of the previous version, which declared its lengths: any number of quarter-hours, and no data. */
const formerEntry = (quarterHours: number, bytes: number): Buffer => {
  const copy = Buffer.alloc(bytes, 1)
  copy.writeUInt8(2, 0)
  copy.writeDoubleLE(now, 1)
  copy.fill(0, 13, 65)
  copy.writeUInt32LE(quarterHours, 37)
  copy.writeUInt32LE(crc32(copy.subarray(13), crc32(copy.subarray(0, 9))), 9)
  return copy
}

const decode = (entries: readonly Buffer[]): { outcome: string; peakMiB: number }[] => {
  const args = [`--data=${dataBytes}`, process.execPath, driver, JSON.stringify({ key, lengths, now })]
  const input = entries.map(bytes => `${bytes.toString('base64')}\n`).join('')
  const lines = execFileSync('prlimit', args, { input, timeout: patienceMs, maxBuffer: 8_000_000 })
  return JSON.parse(`[${lines.toString().trim().replaceAll('\n', ',')}]`)
}

t.test('no entry takes memory by what it says of itself', { skip: withoutPrlimit }, async t => {
  const bomb = await zeros(600 << 20, 5)
  const cases: [string, string, Buffer][] = [
    ['an entry as it should be', 'read', sealedBytes(key, {}, compressed(plainColumns(lengths)))],
    ['1.7 KB that declare 400 million quarter-hours', 'version', formerEntry(400_000_000, 1_700)],
    ['94 bytes that declare 20 million', 'version', formerEntry(20_000_000, 94)],
    ['114 KB that swell to 600 MiB', 'too_large', sealedBytes(key, {}, await zeros(600 << 20, 1, 24))],
    [`${bomb.length} bytes that swell to 600 MiB`, 'too_large', sealedBytes(key, {}, bomb)],
    ['64 MiB that are no entry', 'too_large', Buffer.alloc(64 << 20, 3)],
  ]
  t.ok(bomb.length < 12_000, 'one of them is as small as an entry')
  const [first, ...others] = decode(cases.map(([, , bytes]) => bytes).slice(0, -1))
  const large = decode(cases.slice(-1).map(([, , bytes]) => bytes))
  for (const [i, [what, outcome]] of cases.entries())
    t.equal([first, ...others, ...large][i]?.outcome, outcome, what)
  const grown = Math.max(...others.map(({ peakMiB }) => peakMiB)) - (first?.peakMiB ?? 0)
  t.ok(grown < 40, `${grown.toFixed(1)} MiB more than with the first`)
})

t.test('thousands of refused entries in a row leave nothing behind', { skip: withoutPrlimit }, async t => {
  const whole = compressed(plainColumns(lengths))
  const kinds = [
    ['read', sealedBytes(key, {}, whole)],
    ['too_large', sealedBytes(key, {}, await zeros(64 << 20, 5))],
    ['length', sealedBytes(key, {}, whole.subarray(0, -3))],
    ['malformed', sealedBytes(key, {}, compressed(plainColumns(lengths).fill(255)))],
  ] as const
  const entries = Array.from({ length: 12_000 }, (_, i) => kinds[i % kinds.length] ?? kinds[0])
  const outcomes = decode(entries.map(([, bytes]) => bytes))
  t.strictSame(
    outcomes.map(({ outcome }) => outcome),
    entries.map(([outcome]) => outcome),
  )
  const grown = (outcomes.at(-1)?.peakMiB ?? Number.NaN) - (outcomes[6_000]?.peakMiB ?? 0)
  t.ok(grown < 60, `${grown.toFixed(1)} MiB more in the second half`)
})
