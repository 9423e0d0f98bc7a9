// Without this, a duration or size could be read or printed as another one.

import t from 'tap'
import { InputError } from '../../src/common/errors.ts'
import { parse, parseDuration, print, printDuration, sizes } from '../../src/config/units.ts'

const parseSize = (text: string) => parse(text, sizes)
const printSize = (bytes: number) => print(bytes, sizes)

t.test('a duration is counted in milliseconds', async t => {
  const table = {
    ...{ '0s': 0, '500ms': 500, '30s': 30_000, '10m': 600_000, '1h': 3_600_000, '1.5h': 5_400_000 },
    ...{ '0.1s': 100, '1.005s': 1005, '400d': 34_560_000_000, '2h20m': 8_400_000 },
    ...{ '1d2h3m4s5ms': 93_784_005, '1h1.5s': 3_601_500, '1m500ms': 60_500 },
  }
  for (const [text, ms] of Object.entries(table)) t.equal(parseDuration(text), ms, text)
})

t.test('a size is counted in bytes, binary and decimal multiples apart', async t => {
  const table = {
    ...{ '0B': 0, '512KiB': 524_288, '64MiB': 67_108_864, '1GiB': 1_073_741_824, '1.5GiB': 1_610_612_736 },
    ...{ '10MB': 10_000_000, '10kB': 10_000, '10KB': 10_000, '2GB': 2_000_000_000 },
  }
  for (const [text, bytes] of Object.entries(table)) t.equal(parseSize(text), bytes, text)
})

t.test('a quantity without its unit is refused, and the sentence says what is missing', async t => {
  type Refused = [(text: string) => number, string, RegExp]
  const table: Refused[] = [
    [parseDuration, '10', /^"10" has no unit: add ms, s, m, h or d, such as 500ms, 30s, 10m, 1h or 400d$/],
    [parseDuration, '1.5', /"1\.5" has no unit/],
    [
      parseDuration,
      '10min',
      /^"10min" is not a duration: write a number and its unit \(ms, s, m, h or d\), such as 500ms,/,
    ],
    ...['10S', '2h20min', '20m2h', '1h1h', '1.5h30m', '2h 20m', '2h20', '5constructor', '', '-1s', '1 s'].map(
      (text): Refused => [parseDuration, text, / is not a duration: /],
    ),
    ...['1e3s', '.5h', '1'.repeat(9_999)].map((text): Refused => [parseDuration, text, / (is not|has no)/]),
    [parseDuration, '999999999999d', /"999999999999d" is too large for a duration/],
    [parseSize, '64', /"64" has no unit: add B, KB, kB, KiB, MB, MiB, GB or GiB, such as 512KiB, 64MiB,/],
    ...['64mib', 'much'].map((text): Refused => [parseSize, text, /is not a size/]),
  ]
  for (const [parse, text, sentence] of table)
    t.throws(() => parse(text), { constructor: InputError, message: sentence }, text)
})

t.test('a quantity is printed in the largest unit that divides it', async t => {
  const durations = { '0ms': 0, '1500ms': 1500, '90s': 90_000, '90m': 5_400_000, '12h': 43_200_000 }
  for (const [text, ms] of Object.entries({ ...durations, '400d': 34_560_000_000 }))
    t.equal(printDuration(ms), text)
  const bytes = { '0B': 0, '1kB': 1000, '1025B': 1025, '64MiB': 67_108_864, '10MB': 10_000_000 }
  for (const [text, size] of Object.entries({ ...bytes, '1GiB': 1_073_741_824 }))
    t.equal(printSize(size), text)
})

t.test('a printed quantity is parsed as the same one', async t => {
  for (const value of [0, 1, 999, 1000, 1024, 61_000, 3_600_000, 1_572_864, 86_400_001, 5_000_000_000]) {
    t.equal(parseDuration(printDuration(value)), value)
    t.equal(parseSize(printSize(value)), value)
  }
})
