// Formats the status report as lines for a terminal, each with a tone: what is wrong stands out. Times are relative to the
// report, and the title has the local time. Longer than 300 lines, because all sections stand here.

import { styleText } from 'node:util'
import { tableOf } from '../../command-line/tables.ts'
import { counted, numbered, percentText } from '../../command-line/terminal.ts'
import type { Calendar } from '../../common/calendar.ts'
import { printable } from '../../common/outside-text.ts'
import type { StatusReport } from '../../operate/reports/status-report.ts'
import { distance, localSecond } from './cell-text.ts'

const styles = { title: 'bold', warn: 'yellow', bad: 'red', faint: 'dim' } as const

type Tone = keyof typeof styles | undefined

export type StatusLine = { readonly text: string; readonly tone?: Tone }

export const paint = ({ text, tone }: StatusLine): string =>
  tone === undefined ? text : styleText(styles[tone], text, { validateStream: false })

/** @param opsUrl of the gateway that reported it, or null when only the store was read */
export const statusLines = (
  report: StatusReport,
  opsUrl: string | null,
  calendar: Calendar,
): StatusLine[] => {
  const now = Date.parse(report.at)
  const source = opsUrl === null ? `only the store (${report.store.kind})` : printable(opsUrl)
  const title = `Abohawa ${printable(report.version)}, ${source}, ${localSecond(now, calendar)} ${calendar.zone}`
  const budgetTitle = report.budget.shared ? 'Budget' : 'Budget, counted only by this instance'
  return [
    { text: title, tone: 'title' },
    ...troubleLines(report, calendar).map((text): StatusLine => ({ text, tone: 'bad' })),
    ...section('Instances', instanceLines(report, now)),
    ...section('Provider', providerLines(report, now)),
    ...section(budgetTitle, budgetLines(report, now)),
    ...section('Upstreams', upstreamLines(report, now)),
    ...section('Gateway', gatewayLines(report, now)),
    ...section('Keys near their limit', keyLines(report)),
    ...section('Most requested', topLines(report)),
  ]
}

/** The closure of the budget, and what is out. */
const troubleLines = ({ at, budget: { closure }, outages }: StatusReport, calendar: Calendar): string[] => {
  const dateAndTime = (iso: string) => localSecond(Date.parse(iso), calendar).split(' ')
  const [today] = dateAndTime(at)
  // Without its day where that is the day of the report.
  const clockTime = (iso: string): string => {
    const [day, time = ''] = dateAndTime(iso)
    return `${day === today ? '' : `${day} `}${time.slice(0, 5)}`
  }
  const lines: string[] = []
  if (closure) {
    const until = `${clockTime(closure.until)} (${ago(closure.until, Date.parse(at))})`
    const reason = closure.reason === null ? '' : `: ${printable(closure.reason)}`
    lines.push(
      `budget closed, nothing is loaded from the provider until ${until}${reason}`,
      'abohawa budget reopen ends it for the fleet, if the provider is wrong',
    )
  }
  for (const { outage, since, code, stale, errors } of outages ?? [])
    lines.push(
      `${outage} outage since ${clockTime(since)}, ${numbered(stale, 'request', 'requests')} answered from stale, ${counted(errors)} failed (${printable(code)})`,
    )
  return lines
}

const section = (title: string, lines: readonly StatusLine[]): StatusLine[] =>
  lines.length === 0 ? [] : [{ text: '' }, { text: title, tone: 'title' }, ...lines]

const toned = (text: string, tone: Tone): StatusLine => ({ text: `  ${text}`, ...(tone && { tone }) })

type Row = { readonly values: readonly string[]; readonly tone: Tone }

const table = (
  headings: readonly string[],
  rows: readonly Row[],
  numbers: readonly number[],
): StatusLine[] => {
  const values = rows.map(row => row.values)
  const [head = '', ...lines] = tableOf(headings, values, numbers).split('\n')
  return [toned(head, 'faint'), ...lines.map((text, i) => toned(text, rows[i]?.tone))]
}

/** A name, a value and its tone; false for none. */
type Fact = readonly [name: string, value: string, tone?: Tone] | false

const facts = (all: readonly Fact[]): StatusLine[] => {
  const known = all.filter(fact => fact !== false)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value, tone]) => toned(`${name.padEnd(width)}  ${printable(value)}`, tone))
}

const unknown = '-'
const orUnknown = <Value>(value: Value | null, say: (value: Value) => string): string =>
  value === null ? unknown : say(value)
const size = (bytes: number): string =>
  bytes < 1024 ** 2 ? `${Math.round(bytes / 1024)} KiB` : `${counted(Math.round(bytes / 1024 ** 2))} MiB`
const ago = (iso: string, now: number): string => distance(Date.parse(iso) - now)
const duration = (ms: number): string => distance(ms).replace(/^in /, '')
const weight = (amount: number): string => counted(Math.round(amount))
const shareOf = (used: number, limit: number): string => percentText(Math.min(1, used / limit))

const instanceLines = ({ instances, config }: StatusReport, now: number): StatusLine[] => {
  if (instances.length === 0) return [toned('None has reported to the store.', 'warn')]
  const rows = instances.map((each): Row => {
    const isOther = config?.differs.includes(each.id) === true
    const values = [
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
    ]
    return { values, tone: isOther || each.phase !== 'ready' ? 'warn' : undefined }
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
  const noneWanted =
    (cache?.wantedCells ?? 0) > 0
      ? 'not known: the cells in demand are not in the memory of this gateway'
      : 'nothing is in demand'
  const failing = failsNow
    ? "consumers get errors now: a cell in demand can't be served"
    : orUnknown(firstErrorAt, at => `the first consumer gets an error ${ago(at, now)}`)
  return facts([
    ['circuit', `${circuit}${retry}`, isOpen ? 'bad' : undefined],
    ['last success', orUnknown(lastSuccessAt, at => ago(at, now))],
    [
      'last failure',
      lastFailure ? `${ago(lastFailure.at, now)}: ${lastFailure.code}: ${lastFailure.message}` : 'none',
    ],
    [
      'if it stays away',
      firstErrorAt === null ? noneWanted : failing,
      isOpen || budget.closure ? (failsNow ? 'bad' : 'warn') : undefined,
    ],
    !!cache?.reach && ['expires', reachText(cache.reach)],
    [
      'model run',
      run
        ? `of ${run.initialisedAt.slice(0, 16)}Z, available ${ago(run.availableAt, now)}, next ${ago(run.nextExpectedAt, now)}`
        : 'not known or not followed',
    ],
  ])
}

type Reach = NonNullable<NonNullable<StatusReport['cache']>['reach']>

const reachText = ({ allowedSeconds, share, leastSeconds }: Reach): string => {
  const most = `at most ${duration(allowedSeconds * 1000)} after the fetch`
  if (share === null || leastSeconds === null) return most
  const rest = share < 1 ? `; at least ${duration(leastSeconds * 1000)}, as far as it was fetched` : ''
  // Not 100 % while something falls short.
  return `${most} for ${percentText(share < 1 ? Math.min(share, 0.99) : 1)} of demand${rest}`
}

/** Each of several upstreams; the sections above show the primary. */
const upstreamLines = ({ upstreams }: StatusReport, now: number): StatusLine[] => {
  if (upstreams.length === 0) return []
  const rows = upstreams.map((each): Row => {
    const { name, inUse, circuit, retryAt, lastSuccessAt, lastFailure, closure, windows } = each
    const isOpen = circuit !== null && circuit !== 'closed'
    const retry = retryAt === null ? '' : `, next try ${ago(retryAt, now)}`
    const state = closure ? `closed${retry}` : `${circuit ?? unknown}${isOpen ? retry : ''}`
    const fullest = windows.toSorted((one, other) => other.used / other.limit - one.used / one.limit)[0]
    const spent = fullest ? `${shareOf(fullest.used, fullest.limit)} of the ${fullest.name}` : 'no limits'
    const success = orUnknown(lastSuccessAt, at => ago(at, now))
    const failure = orUnknown(lastFailure, ({ at, code }) => `${ago(at, now)}: ${printable(code)}`)
    return {
      values: [
        inUse ? '*' : '',
        printable(name),
        closure ? unknown : state,
        closure ? state : spent,
        success,
        failure,
      ],
      tone: isOpen || closure ? 'warn' : undefined,
    }
  })
  return table(['', 'upstream', 'circuit', 'budget', 'last success', 'last failure'], rows, [])
}

const budgetLines = ({ budget }: StatusReport, now: number): StatusLine[] => {
  const { windows, demandPerDay, stretch, closure } = budget
  const rows = windows.map(({ name, limit, used, resetsAt, exhaustedAt }): Row => {
    const isSpent = used >= limit
    const ends = exhaustedAt === null ? 'no' : ago(exhaustedAt, now)
    const runsOut = closure ? 'closed' : isSpent ? 'used up' : ends
    return {
      values: [name, weight(used), weight(limit), shareOf(used, limit), ago(resetsAt, now), runsOut],
      tone: isSpent || closure ? 'bad' : exhaustedAt === null ? undefined : 'warn',
    }
  })
  const lines =
    rows.length === 0
      ? [toned('No provider limits are configured.', undefined)]
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

const gatewayLines = (report: StatusReport, now: number): StatusLine[] => {
  const { cache, store, catalogue, certificate, config } = report
  const name = store.kind === 'redis' ? 'Redis' : 'store'
  const answers = `answers in ${orUnknown(store.latencyMs, ms => `${ms.toFixed(1)} ms`)}, ${orUnknown(store.usedBytes, size)} in use`
  const places = `${counted(catalogue.places)} places, `
  const certificateFact = ({ expiresAt, renewal }: NonNullable<typeof certificate>): Fact => {
    const leftMs = Date.parse(expiresAt) - now
    return [
      'certificate',
      `${leftMs <= 0 ? 'expired' : 'expires'} ${distance(leftMs)}`,
      certificateTones[renewal],
    ]
  }
  return facts([
    store.isUp ? [name, answers] : [name, `away: ${store.fault ?? ''}`, 'bad'],
    ...(cache ? cacheFacts(cache) : []),
    catalogue.fault === null
      ? ['catalogue', places + catalogue.checksum.slice(0, 12)]
      : ['catalogue', `${places}newer file rejected: ${catalogue.fault}`, 'bad'],
    !!certificate && certificateFact(certificate),
    ...(config ? configFacts(config, now) : []),
  ])
}

const cacheFacts = (cache: NonNullable<StatusReport['cache']>): Fact[] => {
  const { entries, bytes, maxBytes, wantedCells } = cache
  const { fresh, stale, failed, absent } = cache.counts
  return [
    [
      'cache',
      `${numbered(entries, 'entry', 'entries')}, ${size(bytes)} of ${size(maxBytes)}; ${numbered(wantedCells, 'cell', 'cells')} in demand`,
    ],
    [
      'cells of places',
      `${counted(fresh)} fresh, ${counted(stale)} stale, ${counted(failed)} failed, ${counted(absent)} absent`,
      failed > 0 ? 'warn' : undefined,
    ],
  ]
}

const configFacts = (config: NonNullable<StatusReport['config']>, now: number): Fact[] => {
  const { hash, appliedAt, differs, fault, needsRestart } = config
  const others = numbered(differs.length, 'other instance runs', 'other instances run')
  return [
    ['configuration', `${hash ?? unknown}, applied ${ago(appliedAt, now)}`],
    differs.length > 0 && ['', `${others} different settings`, 'warn'],
    fault !== null && ['', `the newest one is rejected: ${fault}`, 'bad'],
    needsRestart.length > 0 && ['', `needs a restart: ${needsRestart.join(', ')}`, 'warn'],
  ]
}

const keyLines = ({ keysNearLimit: keys }: StatusReport): StatusLine[] => {
  if (keys === null)
    return [
      toned('Not known: there are too many keys to read each, or the store does not answer.', undefined),
    ]
  if (keys.length === 0) return [toned('None has used 80 % of its day.', undefined)]
  const rows = keys.map(
    ({ keyId, subscriber, tier, used, limit }): Row => ({
      values: [
        ...[keyId, subscriber ?? unknown, tier ?? unknown],
        ...[counted(used), counted(limit), shareOf(used, limit)],
      ],
      tone: used >= limit ? 'bad' : 'warn',
    }),
  )
  return table(['key', 'subscriber', 'tier', 'used', 'limit', 'share'], rows, [3, 4, 5])
}

const maxTop = 5

const topLines = ({ top }: StatusReport): StatusLine[] => {
  if (!top || top.places.length + top.keys.length === 0) return []
  const places = top.places.map(({ name_en, type, requests }) => `${name_en} (${type}) ${counted(requests)}`)
  const keys = top.keys.map(({ keyId, requests }) => `${keyId} ${counted(requests)}`)
  const loads = top.keys
    .filter(({ cellsLoaded }) => cellsLoaded > 0)
    .sort((one, other) => other.cellsLoaded - one.cellsLoaded)
    .map(({ keyId, cellsLoaded, shareOfDay }) => {
      const share = shareOfDay === null ? '' : `, ${percentText(shareOfDay)} of the day`
      return `${keyId} ${numbered(cellsLoaded, 'cell', 'cells')}${share}`
    })
  const first = (all: readonly string[], between: string) => all.slice(0, maxTop).join(between)
  return facts([
    ['places', first(places, ', ') || unknown],
    ['keys', first(keys, ', ') || unknown],
    loads.length > 0 && ['loads', first(loads, '; ')],
  ])
}
