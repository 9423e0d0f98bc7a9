// Statistics of traffic as text for a terminal, and as JSON.

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
  const { requests, from, to, gaps, places, cells, keys } = stats
  const read = { format: formatsOf(summary), sha256: summary.sha256, ...factsOfReading(summary, gaps) }
  if (from === null || to === null) return `No requests.\n${factsText(Object.entries(read))}`
  const width = Math.max(20, Math.min(columns - 18, 100))
  return [
    `${counted(requests)} requests from ${isoOf(from)}, for ${spanText(to - from)}`,
    factsText(
      Object.entries({
        ...read,
        ...answerFacts(stats),
        ...rateFacts(stats, width),
        places: popularityText(places),
        cells: popularityText(cells),
        keys: popularityText(keys),
        ...reuseFacts(stats),
      }),
    ),
    '',
    indented(topTable({ place: places, cell: cells, key: keys })),
  ].join('\n')
}

const answerFacts = (stats: TrafficStats) => {
  const { requests, endpoints, statuses, outcomes, tiers, methods, conditional, compressed, bytes } = stats
  return {
    endpoints: sharesText(endpoints),
    methods: sharesText(methods),
    statuses: sharesText(statuses),
    outcomes: sharesText(outcomes),
    tiers: sharesText(tiers),
    conditional: percentText(conditional / requests),
    compressed: `${percentText(compressed / requests)} accept br or gzip`,
    bytes:
      bytes.requests > 0 ? `${counted(Math.round(bytes.sum / bytes.requests))} a body on average` : undefined,
  }
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

const rateFacts = ({ rate, from, to, requests }: TrafficStats, width: number) => {
  const columns = resampled(rate.counts, width)
  const most = Math.max(...columns, 1e-9)
  const bar = (value: number): string =>
    value === 0 ? ' ' : (bars[Math.min(bars.length - 1, Math.floor((value / most) * bars.length))] ?? '')
  const mean = requests / Math.max(0.001, ((to ?? 0) - (from ?? 0)) / 1_000)
  return {
    rate: columns.map(bar).join(''),
    mean:
      to === from
        ? undefined
        : `${mean < 10 ? mean.toFixed(2) : counted(Math.round(mean))} requests a second`,
    peak: rate.peak ? `${counted(rate.peak.requests)} in the second from ${isoOf(rate.peak.at)}` : '',
  }
}

/** Averages neighbours, so that at most `most` values are left. */
const resampled = (values: readonly number[], most: number): number[] => {
  const each = Math.ceil(values.length / most)
  return Array.from({ length: Math.ceil(values.length / each) }, (_, i) => {
    const part = values.slice(i * each, (i + 1) * each)
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
}

const popularityText = (report: PopularityReport): string | undefined => {
  const { distinct, isExact, requests, topShares, zipf } = report
  if (requests === 0) return undefined
  const skew = zipf === null ? '' : `, Zipf exponent ${zipf.toFixed(2)}`
  return `${isExact ? '' : 'at least '}${counted(distinct)}${skew}; the top 1 has ${percentText(topShares[1])}, the top 10 ${percentText(topShares[10])}, the top 100 ${percentText(topShares[100])}`
}

const reuseFacts = ({ reuse }: TrafficStats) => {
  const { by, objects, requests, first, distance, seconds, within, missRatios } = reuse
  if (requests === 0) return {}
  const quantiles = (found: typeof distance, text: (value: number) => string) =>
    found ? `p50 ${text(found.p50)}, p90 ${text(found.p90)}, p99 ${text(found.p99)}` : undefined
  const times = within.map(each => `${spanText(each.seconds * 1_000)} ${percentText(each.share)}`)
  const misses = missRatios.map(each => `${counted(each.objects)}: ${percentText(each.missRatio)}`)
  return {
    [`reuse by ${by}`]: `${counted(requests)} requests for ${counted(objects)}, ${percentText(first / requests)} for the first time`,
    distance: distance
      ? `${quantiles(distance, counted)}, max ${counted(distance.max)} others in between`
      : undefined,
    after: quantiles(seconds, value => spanText(value * 1_000)),
    'again within': times.join(', '),
    'LRU misses': `by objects held: ${misses.join(', ')}`,
  }
}

const shownTop = 10

const topTable = (reports: Readonly<Record<string, PopularityReport>>): string => {
  const known = Object.entries(reports).filter(([, { requests }]) => requests > 0)
  const rows = Array.from({ length: shownTop }, (_, i) =>
    known.flatMap(([, { top, requests }]) => {
      const each = top[i]
      return each ? [each.name, counted(each.requests), percentText(each.requests / requests)] : ['', '', '']
    }),
  )
  return tableOf(
    known.flatMap(([name]) => [name, 'requests', 'share']),
    rows.filter(row => row.some(cell => cell !== '')),
    known.flatMap((_, i) => [3 * i + 1, 3 * i + 2]),
  )
}
