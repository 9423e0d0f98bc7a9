// The usage of a key as text and CSV: on a terminal one bar a day with the limit marked, elsewhere plain columns.

import { csvLine } from '../../catalogue/csv-text.ts'
import { tableOf } from '../../command-line/tables.ts'
import { counted, numbered } from '../../command-line/terminal.ts'
import { dayNumber, type LocalDay } from '../../common/calendar.ts'
import { printable } from '../../common/outside-text.ts'
import type { Usage, UsageOfKey } from '../../keys/administration.ts'

/** @param columns width of the terminal; undefined for other outputs */
export const usageText = (usage: Usage, columns: number | undefined): string =>
  [
    (columns === undefined ? undefined : drawnDays(usage, columns)) ?? plainDays(usage),
    ...(usage.today.length === 0 ? [] : ['', todayText(usage)]),
    ...(usage.cellsLoadedToday === 0 ? [] : ['', loadsText(usage)]),
  ].join('\n')

/** RFC 4180, oldest day first; the limit is the present one, empty when there is none. */
export const usageCsv = ({ days, limit }: Usage): string =>
  [['day', 'used', 'limit'], ...days.toReversed().map(({ day, used }) => [day, used, limit])]
    .map(csvLine)
    .join('')

/** The usage of many keys: a line for each key and day with a count, newest day first. */
export const allUsageCsv = {
  head: csvLine(['id', 'external_id', 'subscriber', 'tier', 'limit', 'day', 'used']),
  lines: ({ id, externalId, subscriber, tier, limit, days }: UsageOfKey): string =>
    days.map(({ day, used }) => csvLine([id, externalId, subscriber, tier, limit, day, used])).join(''),
}

export const allUsageText = (keys: readonly UsageOfKey[]): string =>
  tableOf(
    ['id', 'subscriber', 'tier', 'limit', 'used', 'last day'],
    keys.map(({ id, subscriber, tier, limit, used, days }) => [
      ...[id, subscriber, tier],
      ...[String(limit ?? '–'), counted(used), days[0]?.day ?? '–'],
    ]),
    [3, 4],
  )

const plainDays = ({ days, limit }: Usage): string =>
  tableOf(
    ['day', 'used', 'limit'],
    days.toReversed().map(({ day, used }) => [day, String(used), String(limit ?? '–')]),
    [1, 2],
  )

const leastBar = 10
const maxBar = 100

/** Undefined when the terminal is too narrow for bars. */
const drawnDays = ({ id, subscriber, tier, limit, days }: Usage, columns: number): string | undefined => {
  const most = Math.max(...days.map(({ used }) => used))
  // A limit far above the usage would leave no visible bars, so it is printed and not drawn.
  const isLimitDrawn = limit !== null && limit <= most * 8
  const scale = Math.max(1, most, isLimitDrawn ? limit : 0)
  const rows = days.map(({ day, used }, i) => [
    `${i === 0 ? 'today' : weekdayOf(day)} ${day}`,
    counted(used),
    ...(limit === null ? [] : [percentOf(used, limit)]),
  ])
  const [, ...lines] = tableOf(limit === null ? ['', ''] : ['', '', ''], rows, [0, 1, 2]).split('\n')
  // Left of a bar two spaces, and right of it one for the mark.
  const width = Math.min(maxBar, columns - (lines[0]?.length ?? 0) - 3)
  if (width < leastBar) return undefined
  const mark = isLimitDrawn ? Math.round((limit / scale) * width) : undefined
  const drawn = days.map(({ used }, i) =>
    `${lines[i]}  ${withMark(barOf(used / scale, width), mark)}`.trimEnd(),
  )
  const limitText =
    limit === null
      ? `tier "${tier}" is not configured, so it has no limit`
      : `${counted(limit)} a day${isLimitDrawn ? ', marked │' : most > 0 ? ', far beyond the bars' : ''}`
  const title = printable(`${id}, ${subscriber}, ${tier}: ${limitText}`)
  return [title, '', ...drawn.toReversed()].join('\n')
}

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** @param share of the width, 0 to 1; draws at least an eighth for a share above 0 */
const barOf = (share: number, width: number): string => {
  const length = share === 0 ? 0 : Math.max(1, Math.round(share * width * 8))
  return '█'.repeat(Math.floor(length / 8)) + eighths[length % 8]
}

const withMark = (bar: string, mark: number | undefined): string =>
  mark === undefined ? bar : `${bar.padEnd(mark).slice(0, mark)}│${bar.slice(mark + 1)}`

const percentOf = (used: number, limit: number): string => {
  const percent = (100 * used) / limit
  return `${percent > 0 && percent < 1 ? '<1' : Math.floor(percent)}%`
}

const weekdays = ['Thu', 'Fri', 'Sat', 'Sun', 'Mon', 'Tue', 'Wed']
const weekdayOf = (day: LocalDay): string => weekdays[dayNumber(day) % 7] ?? ''

const loadsText = ({ cellsLoadedToday: cells }: Usage): string =>
  `${numbered(cells, 'grid cell', 'grid cells')} loaded from the provider today`

const todayText = ({ today }: Usage): string => {
  const classes = [...new Set(today.map(({ statusClass }) => statusClass))].sort()
  const endpoints = [...new Set(today.map(({ endpoint }) => endpoint))]
  const countOf = (endpoint: string, statusClass: string) =>
    today.find(each => each.endpoint === endpoint && each.statusClass === statusClass)?.count ?? 0
  return tableOf(
    ['today by endpoint', ...classes],
    endpoints.map(endpoint => [endpoint, ...classes.map(each => counted(countOf(endpoint, each)))]),
    classes.map((_, i) => i + 1),
  )
}
