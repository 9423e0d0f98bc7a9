// Formats the status report as lines for a terminal, each with a tone: what is wrong stands out. Times are relative to the
// report, and the title has the local time. Longer than 300 lines, because the report has many parts.

import { styleText } from 'node:util'
import type { Calendar } from '../../common/calendar.ts'
import { printable } from '../../common/outside-text.ts'
import type { StatusReport } from '../../operate/listener/status-report.ts'
import { counted, numbered, percentText, tableOf } from '../terminal.ts'
import { distance, localSecond } from './cell-text.ts'

export type StatusLine = { readonly text: string; readonly tone?: 'title' | 'warn' | 'bad' | 'faint' }

/** The line with the colour of its tone, for terminals. */
export const paint = ({ text, tone }: StatusLine): string =>
  tone === undefined
    ? text
    : styleText(({ title: 'bold', warn: 'yellow', bad: 'red', faint: 'dim' } as const)[tone], text, {
        validateStream: false,
      })

/** @param opsUrl of the gateway that reported it, or null when only the store was read */
export const statusLines = (
  report: StatusReport,
  opsUrl: string | null,
  calendar: Calendar,
): StatusLine[] => {
  const now = Date.parse(report.at)
  const source = opsUrl === null ? `the store alone (${report.store.kind})` : printable(opsUrl)
  return [
    {
      text: `Abohawa ${printable(report.version)}, ${source}, ${localSecond(now, calendar)} ${calendar.zone}`,
      tone: 'title',
    },
    ...closureLines(report, calendar),
    ...outageLines(report, calendar),
    ...section('Instances', instanceLines(report, now)),
    ...section('Provider', providerLines(report, now)),
    ...section(
      report.budget.shared ? 'Budget' : 'Budget, counted by this instance alone',
      budgetLines(report, now),
    ),
    ...section('Gateway', gatewayLines(report, now)),
    ...section('Keys near their limit', keyLines(report)),
    ...section('Most requested', topLines(report)),
  ]
}

/** Of an instant: without its day where that is the day of the report. */
const clockTime = (iso: string, at: string, calendar: Calendar): string => {
  const [today] = localSecond(Date.parse(at), calendar).split(' ')
  const [day, time = ''] = localSecond(Date.parse(iso), calendar).split(' ')
  return `${day === today ? '' : `${day} `}${time.slice(0, 5)}`
}

const closureLines = ({ at, budget: { closure } }: StatusReport, calendar: Calendar): StatusLine[] => {
  if (!closure) return []
  const until = `${clockTime(closure.until, at, calendar)} (${ago(closure.until, Date.parse(at))})`
  const reason = closure.reason === null ? '' : `: ${printable(closure.reason)}`
  return [
    {
      text: `budget closed, nothing is loaded from the provider until ${until}${reason}`,
      tone: 'bad',
    },
    { text: 'abohawa budget reopen ends it for the fleet, if the provider is wrong', tone: 'bad' },
  ]
}

const outageLines = ({ at, outages }: StatusReport, calendar: Calendar): StatusLine[] =>
  (outages ?? []).map(({ outage, since, code, stale, errors }) => {
    return {
      text: `${outage} outage since ${clockTime(since, at, calendar)}, ${numbered(stale, 'request', 'requests')} answered from stale, ${counted(errors)} failed (${printable(code)})`,
      tone: 'bad',
    }
  })

const section = (title: string, lines: readonly StatusLine[]): StatusLine[] =>
  lines.length === 0 ? [] : [{ text: '' }, { text: title, tone: 'title' }, ...lines]

type Row = { readonly values: readonly string[]; readonly tone?: StatusLine['tone'] }

const table = (
  headings: readonly string[],
  rows: readonly Row[],
  numbers: readonly number[],
): StatusLine[] => {
  const [head = '', ...lines] = tableOf(
    headings,
    rows.map(({ values }) => values),
    numbers,
  ).split('\n')
  return [
    { text: `  ${head}`, tone: 'faint' },
    ...lines.map((text, i): StatusLine => toned(`  ${text}`, rows[i]?.tone)),
  ]
}

const facts = (
  rows: readonly (readonly [name: string, value: string, tone?: StatusLine['tone']])[],
): StatusLine[] => {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value, tone]) => toned(`  ${name.padEnd(width)}  ${printable(value)}`, tone))
}

const toned = (text: string, tone: StatusLine['tone']): StatusLine => (tone ? { text, tone } : { text })

const unknown = '-'
const orUnknown = <Value>(value: Value | null, say: (value: Value) => string): string =>
  value === null ? unknown : say(value)
const size = (bytes: number): string =>
  bytes < 1024 ** 2 ? `${Math.round(bytes / 1024)} KiB` : `${counted(Math.round(bytes / 1024 ** 2))} MiB`
const ago = (iso: string, now: number): string => distance(Date.parse(iso) - now)
const duration = (ms: number): string => distance(ms).replace(/^in /, '')
const weight = (amount: number): string => counted(Math.round(amount))

const instanceLines = ({ instances, config }: StatusReport, now: number): StatusLine[] => {
  if (instances.length === 0) return [{ text: '  None has reported to the store.', tone: 'warn' }]
  const rows = instances.map((each): Row => {
    const isOther = config?.differs.includes(each.id) === true
    const isSilent = each.phase === null
    return {
      values: [
        each.isSelf ? '*' : '',
        each.id.slice(0, 8),
        orUnknown(each.host, host => `${host}${each.pid === null ? '' : `:${each.pid}`}`),
        each.version ?? unknown,
        `${each.configHash ?? unknown}${isOther ? ' differs' : ''}`,
        each.phase ?? 'unknown',
        orUnknown(each.startedAt, at => duration(Math.max(0, now - Date.parse(at)))),
        orUnknown(each.requestsPerSecond, rate => rate.toFixed(1)),
        orUnknown(each.hitShare, percentText),
        orUnknown(each.memoryBytes, size),
        orUnknown(each.seenAt, at => ago(at, now)),
      ],
      ...(isOther || isSilent || each.phase !== 'ready' ? { tone: 'warn' as const } : {}),
    }
  })
  return table(
    ['', 'instance', 'host', 'version', 'config', 'phase', 'up', 'req/s', 'hits', 'memory', 'seen'],
    rows,
    [7, 8, 9],
  )
}

const providerLines = ({ provider, budget, cache, run }: StatusReport, now: number): StatusLine[] => {
  if (!provider) return []
  const { circuit, retryAt, lastSuccessAt, lastFailure, firstErrorAt } = provider
  const isOpen = circuit !== 'closed'
  const retry = retryAt === null || !isOpen ? '' : `, next try ${ago(retryAt, now)}`
  const failsNow = firstErrorAt !== null && Date.parse(firstErrorAt) <= now
  return facts([
    ['circuit', `${circuit}${retry}`, isOpen ? 'bad' : undefined],
    ['last success', orUnknown(lastSuccessAt, at => ago(at, now))],
    [
      'last failure',
      lastFailure ? `${ago(lastFailure.at, now)}: ${lastFailure.code}: ${lastFailure.message}` : 'none',
    ],
    [
      'if it stays away',
      firstErrorAt === null
        ? (cache?.wantedCells ?? 0) > 0
          ? 'not known: the cells in demand are not in the memory of this gateway'
          : 'nothing is in demand'
        : failsNow
          ? 'consumers get errors now: a cell in demand can not be served'
          : `the first consumer gets an error ${ago(firstErrorAt, now)}`,
      isOpen || budget.closure ? (failsNow ? 'bad' : 'warn') : undefined,
    ],
    ...(cache?.reach ? [['served for', reachText(cache.reach)] as const] : []),
    [
      'model run',
      run
        ? `of ${run.initialisedAt.slice(0, 16)}Z, available ${ago(run.availableAt, now)}, next ${ago(run.nextExpectedAt, now)}`
        : 'not known or not followed',
    ],
  ])
}

const reachText = ({ allowedSeconds, share, leastSeconds }: Reach): string => {
  const most = `up to ${duration(allowedSeconds * 1000)} after the fetch`
  if (share === null || leastSeconds === null) return most
  const rest = share < 1 ? `; at least ${duration(leastSeconds * 1000)}, as far as it was fetched` : ''
  // Not 100 % while something falls short.
  return `${most} for ${percentText(share < 1 ? Math.min(share, 0.99) : 1)} of demand${rest}`
}

const budgetLines = ({ budget }: StatusReport, now: number): StatusLine[] => {
  const { windows, demandPerDay, stretch, closure } = budget
  const rows = windows.map(({ name, limit, used, resetsAt, exhaustedAt }): Row => {
    const isSpent = used >= limit
    return {
      values: [
        name,
        weight(used),
        weight(limit),
        percentText(Math.min(1, used / limit)),
        ago(resetsAt, now),
        closure ? 'closed' : isSpent ? 'used up' : exhaustedAt === null ? 'no' : ago(exhaustedAt, now),
      ],
      ...(isSpent || closure
        ? { tone: 'bad' as const }
        : exhaustedAt === null
          ? {}
          : { tone: 'warn' as const }),
    }
  })
  const lines: StatusLine[] =
    rows.length === 0
      ? [{ text: '  The provider has no limits here.' }]
      : table(['window', 'used', 'limit', 'share', 'resets', 'runs out'], rows, [1, 2, 3])
  if (demandPerDay === null) return lines
  const stretched =
    stretch === null ? 'as far as allowed' : stretch < 1.05 ? 'not at all' : `${stretch.toFixed(1)} times`
  return [
    ...lines,
    ...facts([
      ['demand', `${weight(demandPerDay)} a day, without stretch`],
      ['stretched', stretched, stretch === null || stretch >= 1.05 ? 'warn' : undefined],
    ]),
  ]
}

const certificateTones = { valid: undefined, due: 'warn', urgent: 'bad', expired: 'bad' } as const

const gatewayLines = (
  { cache, store, catalogue, certificate, config }: StatusReport,
  now: number,
): StatusLine[] => {
  const name = store.kind === 'redis' ? 'Redis' : 'store'
  const used = orUnknown(store.usedBytes, size)
  const rows: [string, string, StatusLine['tone']?][] = [
    store.isUp
      ? [name, `answers in ${orUnknown(store.latencyMs, ms => `${ms.toFixed(1)} ms`)}, ${used} in use`]
      : [name, `away: ${store.fault ?? ''}`, 'bad'],
  ]
  if (store.writeFault !== null)
    rows.push(['', `can not be written, counts are kept in its reserve: ${store.writeFault}`, 'bad'])
  if (cache) {
    const { fresh, stale, failed, absent } = cache.counts
    rows.push(
      [
        'cache',
        `${numbered(cache.entries, 'entry', 'entries')}, ${size(cache.bytes)} of ${size(cache.maxBytes)}; ${numbered(cache.wantedCells, 'cell', 'cells')} in demand`,
      ],
      [
        'cells of places',
        `${counted(fresh)} fresh, ${counted(stale)} stale, ${counted(failed)} failed, ${counted(absent)} absent`,
        failed > 0 ? 'warn' : undefined,
      ],
    )
  }
  rows.push(
    catalogue.fault === null
      ? ['catalogue', `${counted(catalogue.places)} places, ${catalogue.checksum.slice(0, 12)}`]
      : ['catalogue', `${counted(catalogue.places)} places, newer file refused: ${catalogue.fault}`, 'bad'],
  )
  if (certificate) {
    const leftMs = Date.parse(certificate.expiresAt) - now
    rows.push([
      'certificate',
      `${leftMs <= 0 ? 'expired' : 'expires'} ${distance(leftMs)}`,
      certificateTones[certificate.renewal],
    ])
  }
  if (config) {
    rows.push(['configuration', `${config.hash ?? unknown}, applied ${ago(config.appliedAt, now)}`])
    if (config.differs.length > 0)
      rows.push([
        '',
        `${numbered(config.differs.length, 'other instance runs', 'other instances run')} different settings`,
        'warn',
      ])
    if (config.fault !== null) rows.push(['', `the newest one is refused: ${config.fault}`, 'bad'])
    if (config.needsRestart.length > 0)
      rows.push(['', `needs a restart: ${config.needsRestart.join(', ')}`, 'warn'])
  }
  return facts(rows)
}

const keyLines = ({ keysNearLimit }: StatusReport): StatusLine[] => {
  if (keysNearLimit === null)
    return [{ text: '  Not known: there are too many keys to read each, or the store does not answer.' }]
  if (keysNearLimit.length === 0) return [{ text: '  None has used 80 % of its day.' }]
  const rows = keysNearLimit.map(
    ({ keyId, subscriber, tier, used, limit }): Row => ({
      values: [
        keyId,
        subscriber ?? unknown,
        tier ?? unknown,
        counted(used),
        counted(limit),
        percentText(Math.min(1, used / limit)),
      ],
      tone: used >= limit ? 'bad' : 'warn',
    }),
  )
  return table(['key', 'subscriber', 'tier', 'used', 'limit', 'share'], rows, [3, 4, 5])
}

const maxTop = 5

const topLines = ({ top }: StatusReport): StatusLine[] => {
  if (!top || top.places.length + top.keys.length === 0) return []
  return facts([
    [
      'places',
      top.places
        .slice(0, maxTop)
        .map(({ name_en, type, requests }) => `${name_en} (${type}) ${counted(requests)}`)
        .join(', ') || unknown,
    ],
    [
      'keys',
      top.keys
        .slice(0, maxTop)
        .map(({ keyId, requests }) => `${keyId} ${counted(requests)}`)
        .join(', ') || unknown,
    ],
    ...loadRows(top.keys),
  ])
}

type Reach = NonNullable<NonNullable<StatusReport['cache']>['reach']>
type TopKeys = NonNullable<StatusReport['top']>['keys']

const loadRows = (keys: TopKeys): [name: string, value: string][] => {
  const loading = keys
    .filter(({ cellsLoaded }) => cellsLoaded > 0)
    .sort((one, other) => other.cellsLoaded - one.cellsLoaded)
    .slice(0, maxTop)
    .map(({ keyId, cellsLoaded, shareOfDay }) => {
      const share = shareOfDay === null ? '' : `, ${percentText(shareOfDay)} of the day`
      return `${keyId} ${numbered(cellsLoaded, 'cell', 'cells')}${share}`
    })
  return loading.length === 0 ? [] : [['loads', loading.join('; ')]]
}
