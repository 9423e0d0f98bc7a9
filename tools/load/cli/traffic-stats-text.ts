// The figures of traffic as text for a terminal, with plots of the rate and the miss-ratio curve, and as JSON.

import { factsText, indented, tableOf } from 'abohawa/command-line/tables.ts'
import { counted, percentText } from 'abohawa/command-line/terminal.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import { printable } from 'abohawa/common/outside-text.ts'
import type { TrafficSummary } from '../traffic/read-traffic.ts'
import type { PopularityReport } from '../traffic/stats/popularity.ts'
import type { TrafficStats } from '../traffic/stats/traffic-stats.ts'
import { factsOfReading, formatsOf, jsonOfGaps, spanText } from './traffic-reading.ts'

export const jsonOfStats = (stats: TrafficStats, summary: TrafficSummary) => {
  const { from, to, gaps, rate } = stats
  return {
    ...stats,
    from: from === null ? null : isoOf(from),
    to: to === null ? null : isoOf(to),
    rate: {
      ...rate,
      peak: rate.peak === null ? null : { requests: rate.peak.requests, at: isoOf(rate.peak.at) },
    },
    gaps: jsonOfGaps(gaps),
    read: summary,
  }
}

export const textOfStats = (stats: TrafficStats, summary: TrafficSummary, columns: number): string => {
  const { requests, from, to } = stats
  if (from === null || to === null) return `There are no requests.\n${factsText(readFacts(stats, summary))}`
  const width = Math.max(20, Math.min(columns - 12, 100))
  return [
    `${counted(requests)} requests from ${isoOf(from)}, for ${spanText(to - from)}`,
    factsText([...readFacts(stats, summary), ...answerFacts(stats)]),
    '',
    ...rateText(stats, width),
    ...topText('places', stats.places),
    ...topText('cells', stats.cells),
    ...topText('keys', stats.keys),
    ...reuseText(stats, width),
  ].join('\n')
}

const readFacts = (stats: TrafficStats, summary: TrafficSummary) =>
  [
    ['format', formatsOf(summary)],
    ['sha256', summary.sha256],
    ...factsOfReading(summary, stats.gaps),
  ] as const

const answerFacts = (stats: TrafficStats) => {
  const { requests, endpoints, statuses, outcomes, tiers, methods, conditional, compressed, bytes } = stats
  const mean = bytes.sum / bytes.requests
  return [
    ['endpoints', sharesText(endpoints)],
    ['methods', sharesText(methods)],
    ['statuses', sharesText(statuses)],
    ['outcomes', sharesText(outcomes)],
    ['tiers', sharesText(tiers)],
    ['conditional', percentText(conditional / requests)],
    ['compressed', `${percentText(compressed / requests)} take br or gzip`],
    ['bytes', bytes.requests === 0 ? undefined : `${counted(Math.round(mean))} a body on average`],
  ] as const
}

const sharesText = (counts: Readonly<Record<string, number>>): string | undefined => {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const shares = Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => `${printable(name)} ${percentText(count / total)}`)
    .join(', ')
  return shares || undefined
}

const bars = '▁▂▃▄▅▆▇█'

const rateText = ({ rate, from, to, requests }: TrafficStats, width: number): string[] => {
  const columns = resampled(rate.counts, width)
  const most = Math.max(...columns, 1e-9)
  const line = columns
    .map(value =>
      value === 0 ? ' ' : bars[Math.min(bars.length - 1, Math.floor((value / most) * bars.length))],
    )
    .join('')
  const seconds = Math.max(0.001, ((to ?? 0) - (from ?? 0)) / 1_000)
  return [
    'Rate',
    indented(line),
    factsText([
      // Requests of one instant have no rate.
      ['mean', to === from ? undefined : `${rateOf(requests / seconds)} requests a second`],
      [
        'peak',
        rate.peak === null ? '' : `${counted(rate.peak.requests)} in the second from ${isoOf(rate.peak.at)}`,
      ],
    ]),
    '',
  ]
}

const rateOf = (rate: number): string => (rate < 10 ? rate.toFixed(2) : counted(Math.round(rate)))

/** At most so many values: means of neighbours. */
const resampled = (values: readonly number[], most: number): number[] => {
  const each = Math.ceil(values.length / most)
  return Array.from({ length: Math.ceil(values.length / each) }, (_, i) => {
    const part = values.slice(i * each, (i + 1) * each)
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
}

const shownTop = 10

const topText = (
  name: string,
  { distinct, isExact, requests, top, topShares, zipf }: PopularityReport,
): string[] => {
  if (requests === 0) return []
  const skew = zipf === null ? '' : `, Zipf exponent ${zipf.toFixed(2)}`
  return [
    `${isExact ? '' : 'at least '}${counted(distinct)} ${name}${skew}; the top 1 has ${percentText(topShares[1])}, the top 10 ${percentText(topShares[10])}, the top 100 ${percentText(topShares[100])}`,
    rowsText(
      top
        .slice(0, shownTop)
        .map(each => [each.name, counted(each.requests), percentText(each.requests / requests)]),
      [1, 2],
    ),
    '',
  ]
}

const rowsText = (rows: readonly string[][], numbers: readonly number[]): string =>
  indented(tableOf(['', '', ''], rows, numbers).replace(/^.*\n/, ''))

const reuseText = ({ reuse }: TrafficStats, width: number): string[] => {
  const { by, objects, requests, first, distance, seconds, within, missRatios } = reuse
  if (requests === 0) return []
  const quantiles = (found: typeof distance, text: (value: number) => string) =>
    found ? `p50 ${text(found.p50)}, p90 ${text(found.p90)}, p99 ${text(found.p99)}` : undefined
  const facts = [
    ['first time', `${counted(first)}, ${percentText(first / requests)}`],
    [
      'distance',
      distance
        ? `${quantiles(distance, counted)}, max ${counted(distance.max)} others in between`
        : undefined,
    ],
    ['after', quantiles(seconds, value => spanText(value * 1_000))],
    [
      'again within',
      within.map(each => `${spanText(each.seconds * 1_000)} ${percentText(each.share)}`).join(', '),
    ],
  ] as const
  const longest = Math.max(10, width - 30)
  return [
    `Reuse by ${by}: ${counted(requests)} requests for ${counted(objects)}`,
    factsText(facts),
    '',
    `Miss ratio of an LRU cache without expiry, by the number it holds (${by})`,
    rowsText(
      missRatios.map(each => [
        counted(each.objects),
        percentText(each.missRatio),
        '█'.repeat(Math.round(each.missRatio * longest)),
      ]),
      [0, 1],
    ),
  ]
}
