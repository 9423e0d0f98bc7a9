// Formats the cache report of a cell as text: both tiers side by side, times in local time and relative to now.

import { factsText, indented, tableOf } from '../../command-line/tables.ts'
import { type Calendar, hourMs, isoOf, minuteMs, utcDayMs } from '../../common/calendar.ts'
import { printable } from '../../common/outside-text.ts'
import type { CellReport, EntryReport } from '../../operate/reports/cell-report.ts'

/** @param gatewayUrl the gateway that reported it, or null when only the store was read */
export const cellText = (report: CellReport, gatewayUrl: string | null, calendar: Calendar): string => {
  const { place, cell, cellDegrees, shared, gateway } = report
  const now = Date.parse(report.at)
  const timeOf = (iso: string): string =>
    `${localSecond(Date.parse(iso), calendar)}, ${distance(Date.parse(iso) - now)}`
  const facts: [string, string][] = [
    ['cell', `${cell.id}, the centre of ${cellDegrees}° by ${cellDegrees}°`],
    ['source', gatewayUrl ? `the gateway at ${gatewayUrl}` : `only the shared tier (${shared.kind})`],
    ['times', `${calendar.zone}, now ${localSecond(now, calendar)}`],
  ]
  if (gateway) {
    const { freshness, newestRun, stretch, loading, lastRequestedAt, lastFailure } = gateway
    const run = newestRun ? `newest available ${timeOf(newestRun.availableAt)}` : 'none known yet, so by age'
    facts.push([
      'freshness',
      freshness === 'age' ? 'by age, model runs are not followed' : `by model run: ${run}`,
    ])
    if (stretch === null) facts.push(['', 'for as long as allowed, because nothing is left of the budget'])
    else if (stretch > 1)
      facts.push(['', `stretched ${Number(stretch.toFixed(1))} times, because the budget runs short`])
    facts.push(['last used', lastRequestedAt === null ? 'not recently' : timeOf(lastRequestedAt)])
    facts.push(['loading', loading ? 'yes, a load is under way in this gateway' : 'no'])
    if (!lastFailure)
      facts.push(['last error', gateway.memory || shared.entry ? 'none since the last load' : 'none'])
    else {
      const { code, message, failedAt, attempts, backoffUntil } = lastFailure
      const row = attempts > 1 ? `, ${attempts} in a row` : ''
      facts.push(['last error', `${timeOf(failedAt)}${row}`], ['', `${code}: ${message}`])
      facts.push([
        '',
        `${Date.parse(backoffUntil) > now ? 'not tried again before' : 'may be tried since'} ${timeOf(backoffUntil)}`,
      ])
    }
  }
  const title = printable(place ? `${place.name} (${place.type} ${place.id})` : `The point ${report.of}`)
  return [title, factsText(facts), '', tiersText(report, timeOf)].join('\n')
}

const tiersText = ({ shared, gateway }: CellReport, timeOf: (iso: string) => string): string => {
  const sharedName = printable(`shared tier (${shared.kind})`)
  const memory = gateway?.memory ?? null
  const absent: string[] = []
  if (gateway && !memory) absent.push('  Nothing is in the memory of the gateway.')
  if (shared.fault !== null)
    absent.push(`  Of the ${sharedName} nothing is known: ${printable(shared.fault)}.`)
  else if (!shared.entry) absent.push(`  Nothing is in the ${sharedName}.`)

  const columns: [string, EntryReport][] = []
  if (memory) columns.push(['memory of the gateway', memory])
  if (shared.entry) columns.push([sharedName, shared.entry])
  if (columns.length === 0) return absent.join('\n')
  const noRun =
    gateway === null ? 'none noted' : gateway.freshness === 'age' ? 'not followed' : 'none known then'
  // A purge ends these times.
  const time = (iso: string | undefined, ended: EntryReport['purged']) =>
    iso === undefined ? undefined : ended ? 'no more' : timeOf(iso)
  const rows: [string, (entry: EntryReport) => string | undefined][] = [
    ['state', ({ state }) => state],
    [
      'purged',
      ({ purged }) => (purged === null ? 'no' : purged === 'soft' ? 'softly: stale at any age' : 'yes: gone'),
    ],
    ['upstream', ({ upstream }) => upstream ?? undefined],
    ['fetched', ({ fetchedAt }) => timeOf(fetchedAt)],
    ['model run', ({ run }) => (run === null ? noRun : timeOf(run))],
    ['due', ({ purged, dueAt }) => time(dueAt, purged)],
    ['fresh until', ({ purged, freshUntil }) => time(freshUntil, purged)],
    ['expires', ({ purged, usableUntil }) => time(usableUntil, purged === 'hard' ? purged : null)],
    ['size', ({ bytes }) => `${bytes.toLocaleString('en-US')} bytes`],
  ]
  const lines = rows
    .map(([name, say]) => [name, ...columns.map(([, entry]) => say(entry))])
    .filter(line => !line.includes(undefined))
  return [indented(tableOf(['', ...columns.map(([name]) => name)], lines as string[][])), ...absent].join(
    '\n',
  )
}

/** The local time of an instant, to the second. */
export const localSecond = (instant: number, calendar: Calendar): string =>
  isoOf(instant + calendar.offsetSecondsAt(instant) * 1000)
    .slice(0, 19)
    .replace('T', ' ')

/** How far an instant is away, in the unit that keeps the number small; negative is past. */
export const distance = (ms: number): string => {
  const away = Math.abs(ms)
  const [unit, name] =
    away < 100_000
      ? [1_000, 's']
      : away < 100 * minuteMs
        ? [minuteMs, 'min']
        : away < 2 * utcDayMs
          ? [hourMs, 'h']
          : [utcDayMs, 'days']
  const count = Math.round(away / unit)
  if (count === 0) return 'now'
  return ms < 0 ? `${count} ${name} ago` : `in ${count} ${name}`
}
