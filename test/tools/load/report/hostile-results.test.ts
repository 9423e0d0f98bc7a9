// Without it a crafted result file could exhaust the memory of `replay report`.

import { closeSync, ftruncateSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import t from 'tap'
import { checkedCount, histogramOf } from '../../../../tools/load/report/histogram.ts'
import { commandServerIn, type Ended, withoutPrlimit } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { drawnRehearsal } from './drawn-results.ts'

const result = drawnRehearsal()
const [step] = result.steps

/** A packed histogram with a head of its own and words as they stand. */
const packed = (
  words: Buffer,
  { digits = 3, lowest = 1n, highest = 1_000_000n, length = words.length } = {},
): string => {
  const head = Buffer.alloc(40)
  head.writeInt32BE(0x1c849313, 0)
  head.writeInt32BE(length, 4)
  head.writeInt32BE(digits, 12)
  head.writeBigInt64BE(lowest, 16)
  head.writeBigInt64BE(highest, 24)
  return inBase64(Buffer.concat([head, words]))
}
const inBase64 = (bytes: Buffer): string => {
  const body = deflateSync(bytes)
  const head = Buffer.alloc(8)
  head.writeInt32BE(0x1c849314, 0)
  head.writeInt32BE(body.length, 4)
  return Buffer.concat([head, body]).toString('base64')
}

// 2 is one value; nine bytes are so many zeros as no row of counts has.
const one = Buffer.from([2])
const zeros = Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])
const bomb = inBase64(Buffer.alloc(200_000_000))

const histograms: [name: string, text: string, reason: RegExp][] = [
  ['nothing', '', /not a compressed HdrHistogram/],
  ['no base64', '€'.repeat(1_000), /not a compressed HdrHistogram/],
  ['other bytes', Buffer.alloc(100).toString('base64'), /not a compressed HdrHistogram/],
  ['a bomb', bomb, /more than 524288 bytes/],
  ['damage', packed(one).replace(/.{12}$/, 'AAAAAAAAAAA='), /damaged/],
  ['a length beyond its end', packed(one, { length: 2 ** 31 - 1 }), /its length is wrong/],
  ['digits without end', packed(one, { digits: 2 ** 30 }), /digits must be 1 to 3, got 1073741824/],
  ['no digits', packed(one, { digits: 0 }), /got 0$/],
  ['values from nothing', packed(one, { lowest: 0n }), /got 0 to 1000000$/],
  ['values without end', packed(one, { highest: 2n ** 62n }), /got 1 to 4611686018427387904$/],
  ['values below zero', packed(one, { highest: -1n }), /got 1 to -1$/],
  ['zeros without end', packed(Buffer.concat([zeros, one])), /too many counts/],
  ['counts without end', packed(Buffer.alloc(400_000)), /too many counts/],
  ['half a count', packed(Buffer.from([0x82])), /it ends within a count/],
]

t.test('a histogram that no run has is not decoded', async t => {
  for (const [name, text, reason] of histograms) t.throws(() => checkedCount(text), { message: reason }, name)
  t.equal(checkedCount(result.histogram), result.latency.count, 'that of a run is')
  t.equal(histogramOf(packed(one)).totalCount, checkedCount(packed(one)))
})

// One process for all: what one command leaves behind counts for those after it.
const commands = commandServerIn(t, t.testdir(), 1_073_741_824)
const run = (args: readonly string[]): Promise<Ended> =>
  until(`${args.join(' ')} has ended`, () => commands.run(['replay', ...args]))

t.test('a hostile result is one sentence in bounded memory', { skip: withoutPrlimit }, async t => {
  const folder = t.testdir()
  const text = JSON.stringify(result)
  const withValue = (name: string, value: string): string =>
    text.replace(new RegExp(`"${name}":(?:"[^"]*"|[\\d.]+|null|\\[)`), found =>
      found.endsWith('[') ? `"${name}":${value},"_":[` : `"${name}":${value}`,
    )
  const steps = (entry: string, count: number): string =>
    withValue('steps', `[${Array(Math.floor(count)).fill(entry).join(',')}]`)
  const big = 16_000_000
  const names = Array.from({ length: 400_000 }, (_, i) => `"name${i}":""`).join(',')
  const texts: [name: string, text: string, reason: RegExp][] = [
    ['steps', steps(JSON.stringify({ ...step, at: 0 }), 60_000), /steps: Too big/],
    ['faulty steps', steps('{}', 450_000), /steps: Too big/],
    ['faulty steps without end', steps('{}', big / 3), /must have at most 1,000,000 commas/],
    ['faulty counts', text.replace('"failed":{}', `"failed":{${names}}`), /at most 1000 names/],
    ['results', `[${'{},'.repeat(300)}{}]`, /must have 1 to 200 results, got 301/],
    ['results without end', `[${'{},'.repeat(big / 3)}{}]`, /must have at most 1,000,000 commas/],
    ['nesting', '['.repeat(big), /must have at most 1,000,000 commas/],
    ['closed nesting', '['.repeat(990_000) + ']'.repeat(990_000), /is not a result/],
    ['nesting in a value', withValue('format', '['.repeat(500_000) + ']'.repeat(500_000)), /format/],
    ['one line', `"${'x'.repeat(big)}"`, /is not a result/],
    ['no number', withValue('p50', 'NaN'), /is not JSON/],
    ['infinity', withValue('p50', '1e999'), /p50/],
    ['1e308', withValue('p50', '1e308'), /p50: Too big/],
    ['below zero', withValue('p50', '-1'), /p50: Too small/],
    ['an instant beyond all', withValue('at', '1e300'), /at: Too big/],
    ['a count beyond all', withValue('requests', '1e20'), /requests/],
    ['controls', text.replace('"failed":{}', '"failed":{"\\u001b[2J":-1}'), /\\u001b\[2J: Too small/],
    ['another count', withValue('histogram', `"${packed(one)}"`), /it has 1 values, but latency.count is/],
    ['a bomb', withValue('histogram', `"${bomb}"`), /histogram: damaged, or more than/],
  ]
  const file = join(folder, 'result.json')
  for (const [name, text, reason] of texts) {
    writeFileSync(file, text)
    const { code, stderr } = await run(['report', file, file])
    t.equal(code, 1, `${name}: ${stderr.slice(0, 300)}`)
    t.match(stderr, reason, name)
    t.ok(stderr.length < 1_000 && !/^ {4}at |FATAL/m.test(stderr), name)
  }
  const sparse = openSync(file, 'w')
  ftruncateSync(sparse, 20_000_000_000)
  closeSync(sparse)
  const { code, stderr } = await run(['report', file])
  t.equal(code, 1)
  t.match(stderr, /is larger than 16,777,216 bytes/)
})

t.test('what a run may have at most is a page and a comparison', { skip: withoutPrlimit }, async t => {
  const folder = t.testdir()
  const extremes = { p50: 1e15, p99: 5e-324, weight: 1e15 }
  const most = {
    ...result,
    steps: Array.from({ length: 1_000 }, (_, i) => ({ ...step, ...extremes, at: 1e10 - i })),
    stepSeconds: 1e10,
    traffic: { ...result.traffic, from: '9999-12-31T23:59:59.999Z', spanSeconds: 1e15 },
    latency: { ...result.latency, mean: 1e15, max: 1e15 },
  }
  const file = join(folder, 'most.json')
  writeFileSync(file, JSON.stringify(most))
  for (const args of [
    ['report', file, file, '--out', join(folder, 'page.html')],
    ['report', file, '--out', join(folder, 'page.html'), '--force'],
  ]) {
    const { code, stderr } = await run(args)
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  }
})
