// `abohawa keys why` in words: the answer first, then the key, its day and its minutes, and last what is kept nowhere.

import { failureSentence, sentences } from '../../api/sentences.ts'
import { factsText, indented, tableOf } from '../../command-line/tables.ts'
import { counted, numbered, type Terminal } from '../../command-line/terminal.ts'
import { type Calendar, createCalendar } from '../../common/calendar.ts'
import { printable } from '../../common/outside-text.ts'
import type { RestrictionRefusal } from '../../keys/restrictions.ts'
import { localSecond } from '../operate/cell-text.ts'
import { type KeyWhy, type WhyOptions, whyOf } from './key-why.ts'
import { termsText } from './term-options.ts'

export const showWhy = async (terminal: Terminal, id: string, options: WhyOptions): Promise<undefined> => {
  const why = await whyOf(terminal, id, options)
  const calendar = createCalendar(why.timeZone)
  terminal.show({ verdict: verdictOf(why, calendar), ...why }, whyText(why, calendar))
  terminal.remark(`Store: ${why.store}`)
}

type Answers = KeyWhy['logs'][number]['answers'][number]
type Refused = Pick<Answers, 'status' | 'reason'>

/** Where the sentence that the consumer read says too little. */
const more: Readonly<Record<string, string>> = {
  '400': 'the request itself was wrong',
  '404': 'there is no such place or path',
  '405': 'its method was not GET or HEAD',
  '429 quota_insufficient': 'less was left of its daily quota than the list of places costs',
  '429 rate_limited': 'it sent too fast: its limit by the second or the minute',
  '403': 'the key may not do this',
  '499': 'the client disconnected before the response started',
}

const ofRestrictions: Readonly<Record<RestrictionRefusal, string>> = {
  'origin-not-allowed': 'the key was restricted to other origins',
  'address-not-allowed': 'the key was restricted to other addresses',
  'endpoint-not-allowed': 'the key was restricted to other endpoints',
}

/** Statuses that say something of the request and not of the key. */
const aboutRequest: ReadonlySet<number> = new Set([400, 404, 405])

const meaningOf = ({ status, reason }: Refused, { logs }: KeyWhy): string => {
  const own = ofRestrictions[reason as RestrictionRefusal] ?? more[`${status} ${reason}`] ?? more[status]
  if (own !== undefined) return own
  if (status === 429) {
    const limit = logs.map(log => log.limit).find(each => each !== null)
    return limit == null
      ? 'its daily quota was exhausted; the limit at that time is not known'
      : sentences.quotaExhausted(limit).text
  }
  if (status === 500) return failureSentence(reason ?? 'internal').text
  const sentence = sentences.key[reason as keyof typeof sentences.key]
  return status === 401 && typeof sentence === 'object' ? sentence.text : ''
}

const countOf = (rows: readonly Answers[]): number => rows.reduce((sum, { count }) => sum + count, 0)
const isRefusal = ({ status }: Pick<Answers, 'status'>): boolean => status >= 400 && status !== 499

/** One sentence, or several where there were refusals of several kinds. */
const verdictOf = (why: KeyWhy, calendar: Calendar): string => {
  const { key, keyThen, day, logs, gateway } = why
  const time = (iso: string) => localSecond(Date.parse(iso), calendar).slice(11)
  const all = logs.flatMap(({ answers }) => answers)
  const kinds = Map.groupBy(all.filter(isRefusal), ({ status, reason }) => `${status} ${reason}`)
  if (kinds.size > 0)
    return [...kinds.values()]
      .map(rows => ({ rows, count: countOf(rows) }))
      .sort((one, other) => other.count - one.count)
      .map(({ rows, count }) => {
        const [row] = rows as [Answers, ...Answers[]]
        const instants = rows.flatMap(({ firstAt, lastAt }) => [firstAt, lastAt]).sort()
        const [first, last] = [time(instants[0] ?? ''), time(instants.at(-1) ?? '')]
        const when = first === last ? `at ${first}` : `from ${first} to ${last}`
        const reason = row.reason === null ? '' : ` (${printable(row.reason)})`
        return `Refused with ${row.status}${reason}, ${numbered(count, 'request', 'requests')} ${when}: ${meaningOf(row, why)}.`
      })
      .join('\n')
  const sampled = logs.some(({ share }) => share < 1) ? ', of the share that the log holds' : ''
  const answered = countOf(all)
  if (answered > 0)
    return `Not refused by these gateways: ${numbered(answered, 'request was', 'requests were')} answered in these minutes${sampled}.`
  if (keyThen.state === 'not created') return 'The key did not exist yet.'
  if (keyThen.state !== 'valid') return `Every request had 401 then: ${stateText(why, calendar)}.`
  const isCovering = ({ hasRequests, firstAt, lastAt }: (typeof logs)[number]): boolean =>
    hasRequests && firstAt !== null && lastAt !== null && firstAt <= why.at && lastAt >= why.end
  if (logs.length > 0 && logs.every(isCovering))
    return `No request with this key came to these gateways in these minutes${sampled}.`
  if (gateway && gateway.outages.length > 0)
    return `Perhaps with 500: an outage of the ${gateway.outages.map(({ outage }) => outage).join(' and the ')} began before and is not over.`
  if (key.limit !== null && day.used >= key.limit)
    return `Perhaps with 429: the key used ${counted(day.used)} requests on ${day.day}, and its limit is ${counted(key.limit)} now. The limit at that time is not known; the log says when it was reached.`
  return 'Nothing shows that it was refused; the log of each gateway has every request.'
}

const stateText = ({ keyThen, key }: KeyWhy, calendar: Calendar): string => {
  const time = (iso: string) => localSecond(Date.parse(iso), calendar)
  const since = keyThen.since === null ? '' : ` since ${time(keyThen.since)}`
  return keyThen.state === 'not created'
    ? `not created before ${time(key.createdAt)}`
    : keyThen.state === 'valid'
      ? `valid, created ${time(key.createdAt)}${key.expiresAt === null ? '' : `, expires ${time(key.expiresAt)}`}`
      : `${keyThen.state}${since}`
}

const whyText = (why: KeyWhy, calendar: Calendar): string => {
  const { key, keyThen, day, logs, gateway } = why
  const time = (iso: string) => localSecond(Date.parse(iso), calendar)
  const limit = key.limit === null ? `tier "${key.tier}" is not configured` : `${counted(key.limit)} a day`
  const facts: [string, string | undefined][] = [
    ['key', `${key.id} of ${key.subscriber || key.subscriberId}`],
    ['around', `${time(why.at)} in ${calendar.zone}`],
    ['state then', stateText(why, calendar)],
    ...keyThen.replacedAt.map((at): [string, string] => [
      '',
      `the previous key of this id is refused since ${time(at)}, or since five minutes later if it had no overlap`,
    ]),
    ['tier now', `${key.tier}${key.ownLimit ? ' with a custom limit' : ''}, ${limit}`],
    ['restrictions now', key.restrictions || key.rates ? termsText(key) : undefined],
    ['used', `${counted(day.used)} on ${day.day}, the whole day`],
    ...day.responses
      .toSorted((one, other) =>
        one.endpoint + one.statusClass < other.endpoint + other.statusClass ? -1 : 1,
      )
      .map(({ endpoint, statusClass, count }): [string, string] => [
        '',
        `${counted(count)} ${endpoint} ${statusClass}`,
      ]),
    [
      '',
      day.cellsLoaded === 0
        ? undefined
        : `${numbered(day.cellsLoaded, 'grid cell', 'grid cells')} loaded for it`,
    ],
  ]
  if (gateway) {
    const { opsUrl, outages, errors } = gateway
    facts.push([
      'gateway',
      `${opsUrl}: ${errors === null ? 'its last hour does not reach that far' : `${counted(errors)} responses of all keys were 500`}`,
    ])
    for (const { outage, since, code } of outages)
      facts.push(['', `outage of the ${outage} since ${time(since)} (${code}), still on`])
  }
  return [
    verdictOf(why, calendar),
    factsText(facts),
    ...logs.map(log => logText(log, why, calendar)),
    notKept(why),
  ]
    .filter(part => part !== '')
    .join('\n\n')
}

const logText = (log: KeyWhy['logs'][number], why: KeyWhy, calendar: Calendar): string => {
  const { file, firstAt, lastAt, hasRequests, share, answers, withoutKey, events, outages } = log
  const time = (iso: string) => localSecond(Date.parse(iso), calendar)
  const rows = answers.map(each => [
    time(each.minute).slice(11, 16),
    String(each.status),
    each.reason ?? '',
    counted(each.count),
    each.tier ?? '',
    aboutRequest.has(each.status) ? `${meaningOf(each, why)}: ${each.url}` : meaningOf(each, why),
  ])
  const lines = [
    ...(hasRequests
      ? answers.length === 0
        ? ['no request with this key in these minutes']
        : []
      : ['no requests at all: log.access is off']),
    ...(share < 1 ? [`the log holds a share of ${share} of the responses below 500`] : []),
    ...Object.entries(withoutKey).map(
      ([reason, count]) => `${numbered(count, 'request', 'requests')} without a known key: 401 ${reason}`,
    ),
    ...outages.map(
      ({ outage, from, until, code }) =>
        `outage of the ${outage} from ${time(from)}${until === null ? ', its end is not in the log' : ` to ${time(until)}`}${code === null ? '' : ` (${code})`}`,
    ),
    ...events.map(({ at, what }) => `${time(at)} ${what}`),
  ]
  const head = `${printable(file)}, from ${time(firstAt ?? '')} to ${time(lastAt ?? '')}`
  const table =
    rows.length === 0
      ? []
      : [indented(tableOf(['minute', 'status', 'reason', 'count', 'tier', 'what it means'], rows, [3]))]
  return [head, ...table, ...lines.map(line => `  ${printable(line)}`)].join('\n')
}

/** What no store and no gateway has, so that nobody looks for it. */
const notKept = ({ logs, day, gateway }: KeyWhy): string =>
  [
    'Not kept:',
    ...(logs.length === 0
      ? ['  requests by minute and reason: give the log of each gateway with --log FILE']
      : []),
    ...(logs.length === 0 || gateway === null ? ['  past outages: only the logs have them'] : []),
    ...(day.responses.length === 0 ? ['  responses by endpoint and status, beyond two days'] : []),
    '  previous tiers, limits, rates, restrictions and expiries, and undone revocations',
  ].join('\n')
