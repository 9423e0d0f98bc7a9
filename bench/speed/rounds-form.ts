// Rounds as a table, as bar charts, and how to read their columns.

import { bars } from '../bars.ts'
import { count, type Result } from '../row.ts'
import { connections } from './load.ts'
import { coreCount, pins } from './pinned.ts'
import { best, leastOf, type Measured, medianOf } from './rounds.ts'

const two = (one: number, other: number, digits: number): string =>
  `${one.toFixed(digits)} / ${other.toFixed(digits)}`

const isMeasured = ({ samples }: Measured): boolean => samples.length > 0

export const tableOfRounds = (
  measured: readonly Measured[],
  raw: Measured | undefined,
): NonNullable<Result['table']> => ({
  head: [
    'row',
    'what',
    'answers a second',
    'of raw',
    'p50 ms',
    'p99 ms',
    'CPU µs',
    'Redis µs',
    'Redis commands',
    'busy',
    'others',
  ],
  lines: measured
    .filter(isMeasured)
    .map(one => [
      one.contender.id,
      one.contender.name,
      `${count(best(one))} / ${count(medianOf(one, 'perSecond'))}`,
      raw ? two(best(one) / best(raw), medianOf(one, 'perSecond') / medianOf(raw, 'perSecond'), 2) : '—',
      two(leastOf(one, 'p50'), medianOf(one, 'p50'), 1),
      two(leastOf(one, 'p99'), medianOf(one, 'p99'), 1),
      two(leastOf(one, 'cpuMicros'), medianOf(one, 'cpuMicros'), 1),
      one.contender.usesRedis ? two(leastOf(one, 'redisMicros'), medianOf(one, 'redisMicros'), 1) : '—',
      one.contender.usesRedis ? medianOf(one, 'redisCommands').toFixed(2) : '—',
      `${(medianOf(one, 'busy') * 100).toFixed(0)} %`,
      `${(medianOf(one, 'others') * 100).toFixed(0)} %`,
    ]),
})

/** Sentences below the table. */
export const columnsOfRounds: readonly string[] = [
  'In a column with two figures, the first is the best round and the second the median. CPU is the processor time of the ' +
    'server alone for an answer, which other work on the machine moves least; "Redis µs" is the processor time of Redis for an answer, ' +
    'and "Redis commands" the number of commands for one, including those within scripts. "busy" is the share of its core that the ' +
    'server used and "others" the share of everything else there, both in the median round. Where the two are well below ' +
    '100 %, load and Redis on the other core were the limit; where "others" is high, the machine was not quiet and the ' +
    'CPU column says more than the answers a second.',
  ...(pins && coreCount === 2
    ? [
        'This machine has 2 cores, so load and Redis share one. The faster a server is and the more it needs Redis, the more ' +
          'they limit its figure; the CPU column excludes them. Redis runs before the load there (SCHED_FIFO): behind a sender ' +
          'that never pauses, it would wait 4 ms for each batch, whatever the server does.',
      ]
    : []),
  ...(pins ? [] : ['There is no taskset or but one core here: nothing was pinned.']),
]

type Drawings = NonNullable<Result['drawings']>

/** @param subject what the bars are of, such as `each row` */
const drawn = (
  file: string,
  measured: readonly Measured[],
  text: { readonly caption: string; readonly title: string },
  value: (one: Measured) => readonly [number, number],
  digits: number,
): Drawings => {
  const shown = measured.filter(isMeasured)
  if (shown.length === 0) return {}
  const pairs = shown.map(one => ({ name: one.contender.id, values: value(one) }))
  const kinds = ['best round', 'median'] as const
  return { [file]: { caption: text.caption, svg: bars({ title: text.title, kinds, bars: pairs, digits }) } }
}

export const shareBars = (
  file: string,
  of: string,
  measured: readonly Measured[],
  raw: Measured | undefined,
): Drawings =>
  raw
    ? drawn(
        file,
        measured,
        {
          caption: `Answers a second of ${of} as a share of raw node:http, best and median round`,
          title: 'Answers a second, as a share of raw node:http',
        },
        one => [best(one) / best(raw), medianOf(one, 'perSecond') / medianOf(raw, 'perSecond')],
        2,
      )
    : {}

export const p99Bars = (file: string, of: string, measured: readonly Measured[]): Drawings =>
  drawn(
    file,
    measured,
    {
      caption: `p99 of ${of} in ms, best and median round`,
      title: `p99 in ms with ${connections} connections that never rest`,
    },
    one => [leastOf(one, 'p99'), medianOf(one, 'p99')],
    1,
  )

export const cpuBars = (file: string, of: string, measured: readonly Measured[]): Drawings =>
  drawn(
    file,
    measured,
    {
      caption: `Processor time of the server for an answer of ${of} in µs, best and median round`,
      title: 'Processor time of the server for an answer, µs',
    },
    one => [leastOf(one, 'cpuMicros'), medianOf(one, 'cpuMicros')],
    1,
  )
