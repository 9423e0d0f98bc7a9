// Rounds as a table, as bar charts, and how to read their columns.

import { bars } from '../bars.ts'
import { count, median, type Result } from '../row.ts'
import { connections } from './load.ts'
import { coreCount, pins } from './pinned.ts'
import { type Measured, medianOf, rangeOf, type Sample } from './rounds.ts'

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
      count(medianOf(one, 'perSecond')),
      raw ? (medianOf(one, 'perSecond') / medianOf(raw, 'perSecond')).toFixed(2) : '—',
      medianOf(one, 'p50').toFixed(1),
      rangeOf(one, 'p99', 1),
      rangeOf(one, 'cpuMicros', 1),
      one.contender.usesRedis ? medianOf(one, 'redisMicros').toFixed(1) : '—',
      one.contender.usesRedis ? medianOf(one, 'redisCommands').toFixed(2) : '—',
      `${(medianOf(one, 'busy') * 100).toFixed(0)} %`,
      `${(medianOf(one, 'others') * 100).toFixed(0)} %`,
    ]),
})

/** Sentences below the table. */
export const columnsOfRounds: readonly string[] = [
  'Each round is a fresh process, because processes of one build differ; figures are medians, those of p99 and CPU with the smallest and ' +
    'the largest process. CPU is the processor time of the ' +
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

/** A value of each process of a row: its median, smallest and largest. */
const drawn = (
  file: string,
  measured: readonly Measured[],
  text: { readonly caption: string; readonly title: string },
  value: (sample: Sample, at: number) => number,
  digits: number,
): Drawings => {
  const shown = measured.filter(isMeasured)
  if (shown.length === 0) return {}
  const rows = shown.map(({ contender, samples }) => {
    const values = samples.map(value)
    return { name: contender.id, values: [median(values), Math.min(...values), Math.max(...values)] }
  })
  const kinds = ['median', 'smallest', 'largest'] as const
  return { [file]: { caption: text.caption, svg: bars({ title: text.title, kinds, bars: rows, digits }) } }
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
          caption: `Answers a second of ${of} as a share of raw node:http, round by round`,
          title: 'Answers a second, as a share of raw node:http',
        },
        ({ perSecond }, at) => perSecond / (raw.samples[at]?.perSecond ?? Number.NaN),
        2,
      )
    : {}

export const p99Bars = (file: string, of: string, measured: readonly Measured[]): Drawings =>
  drawn(
    file,
    measured,
    {
      caption: `p99 of ${of} in ms, over fresh processes`,
      title: `p99 in ms with ${connections} connections that never rest`,
    },
    ({ p99 }) => p99,
    1,
  )

export const cpuBars = (file: string, of: string, measured: readonly Measured[]): Drawings =>
  drawn(
    file,
    measured,
    {
      caption: `Processor time of the server for an answer of ${of} in µs, over fresh processes`,
      title: 'Processor time of the server for an answer, µs',
    },
    ({ cpuMicros }) => cpuMicros,
    1,
  )
