// Axes of charts: every value lies between the ends, ticks are round, nines are as wide as each other, and the settings that no
// other beats are found.

import t from 'tap'
import { figuresIn } from '../../../src/load/report/page-frame.ts'
import { paretoOptimal } from '../../../src/load/report/pareto.ts'
import {
  durationScale,
  linearScale,
  logScale,
  ninesScale,
  rangeScale,
  type Scale,
  timeScale,
} from '../../../src/load/report/scale.ts'

const write = String
const texts = ({ ticks }: Scale): string[] => ticks.map(({ text }) => text)

t.test('durations have ticks of whole minutes, hours or days', async t => {
  const ticks = (seconds: number): string[] =>
    texts(durationScale([seconds], figuresIn('en', 'UTC').duration))
  t.strictSame(ticks(21_000), ['0 s', '1 h', '2 h', '3 h', '4 h', '5 h', '6 h'])
  t.strictSame(ticks(6_000), ['0 s', '30 min', '1 h', '1 h 30 min', '2 h'])
  t.strictSame(ticks(40), ['0 s', '10 s', '20 s', '30 s', '40 s'])
  t.strictSame(ticks(0), ['0 s', '1 s'])
  t.strictSame(ticks(9 * 86_400), ['0 s', '2 d', '4 d', '6 d', '8 d', '10 d'])
  t.strictSame(ticks(90), ['0 s', '1 min', '2 min'])
})

t.test('ticks are round and few, and values lie within', async t => {
  t.strictSame(texts(linearScale([3, 940], write)), ['0', '200', '400', '600', '800', '1000'])
  t.strictSame(texts(rangeScale([0.83, 0.897, 0.911], write)), [
    '0.82',
    '0.84',
    '0.86',
    '0.88',
    '0.9',
    '0.92',
  ])
  t.strictSame(texts(logScale([0.3, 120], write)), ['0.1', '1', '10', '100', '1000'])
  t.strictSame(texts(logScale([3, 40], write)), ['2', '5', '10', '20', '50'])
  t.strictSame(texts(ninesScale(99.95, write)), ['0', '50', '90', '99', '99.9'])
  const cases: [Scale, number[]][] = []
  for (const values of [[0], [0, 0], [1e-9], [5], [0.2, 1e7], [7, 7], [1e-6, 1e-5]])
    for (const scale of [linearScale, rangeScale, logScale]) cases.push([scale(values, write), values])
  for (const [scale, values] of cases) {
    t.ok(scale.ticks.length >= 2 && scale.ticks.length <= 16, `${values}: ${texts(scale)}`)
    for (const value of values) {
      const share = scale.shareOf(value)
      t.ok(share >= 0 && share <= 1, `${value} at ${share}`)
    }
    for (const { at } of scale.ticks) t.ok(Number.isFinite(scale.shareOf(at)))
  }
})

t.test('each nine is as wide as the one before', async t => {
  const { shareOf } = ninesScale(99.99, write)
  const widths = [shareOf(90) - shareOf(0), shareOf(99) - shareOf(90), shareOf(99.9) - shareOf(99)]
  for (const width of widths) t.ok(Math.abs(width - 0.25) < 1e-6)
  t.equal(shareOf(100), 1)
})

t.test('ticks of time are on round times of the zone', async t => {
  const day = timeScale({ from: 0, to: 86_400, offset: 1_800 }, write)
  t.strictSame(
    day.ticks.map(({ at }) => (at + 1_800) % 10_800),
    day.ticks.map(() => 0),
  )
  t.ok(day.ticks.length <= 9)
  const long = (seconds: number): string => `1 h ${seconds / 60} min`
  t.strictSame(
    timeScale({ from: 0, to: 7_200 }, long).ticks.map(({ at }) => at),
    [0, 1_800, 3_600, 5_400, 7_200],
    'fewer where the texts are long',
  )
  t.strictSame(texts(timeScale({ from: 0, to: 30 }, write)), ['0', '5', '10', '15', '20', '25', '30'])
})

t.test('no other beats them', async t => {
  t.strictSame(
    [
      ...paretoOptimal([
        [0.83, -34_068],
        [0.897, -18_660],
        [0.911, -14_532],
      ]),
    ],
    [2],
  )
  t.strictSame(
    [
      ...paretoOptimal([
        [0.8, -10],
        [0.9, -20],
        [0.7, -15],
      ]),
    ],
    [0, 1],
  )
  t.strictSame(
    [
      ...paretoOptimal([
        [1, 1],
        [1, 1],
      ]),
    ],
    [0, 1],
    'equal ones',
  )
  t.strictSame([...paretoOptimal([])], [])
})
