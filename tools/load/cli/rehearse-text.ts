// The output of `abohawa rehearse`: a line for each setting with cache outcomes, provider requests and the age of the weather,
// and the spending of each day.

import { indented, tableOf } from 'abohawa/command-line/tables.ts'
import { counted, numbered } from 'abohawa/command-line/terminal.ts'
import type { RehearsedCase } from '../rehearsal/rehearsed-case.ts'
import { planRemarks, planText } from '../report/plans.ts'
import { failedIn, shareOf } from '../report/run-figures.ts'
import type { SentWith } from '../traffic/recorded-admission.ts'

const shares = ['hit', 'stale', 'miss'] as const
const headings = ['setting', 'hits', 'stale', 'misses', 'refused', 'failed', 'requests', 'weight']
const ageHeadings = ['age p50', 'p95', 'max', 'took']

export const rehearsalText = (
  rehearsed: readonly RehearsedCase[],
  { substitute, nothing }: Readonly<Record<SentWith, number>>,
): string => {
  const [first] = rehearsed
  if (!first) return 'Nothing was rehearsed.'
  const { requests, keys, from, spanSeconds } = first.result.traffic
  const { common, nameOf } = namesOf(rehearsed)
  const all = [...headings, ...ageHeadings]
  const rows = rehearsed.map(each => [nameOf(each), ...rowOf(each)])
  const days = rehearsed.flatMap(each =>
    each.days.map(({ day, requests: sent, weight }) => [
      nameOf(each),
      day,
      counted(sent),
      counted(Math.round(weight)),
    ]),
  )
  const budgets = rehearsed.map(each => [
    nameOf(each),
    ...windowsOf(each),
    verdictOf(each),
    planText(each.plans),
  ])
  return [
    `${counted(requests)} requests of ${numbered(keys, 'key', 'keys')} from ${from} on, ${spanText(spanSeconds)}.`,
    ...(substitute > 0
      ? [
          `${counted(substitute)} of them were recorded as answered and without a key: they are sent with keys that nothing limits.`,
        ]
      : []),
    ...(nothing > 0
      ? [
          `${counted(nothing)} of them are sent without a key, and refused with 401: recorded as refused or redirected, or with neither a key nor an answer.`,
        ]
      : []),
    ...(common.length > 0 ? [`Settings of all: ${common.join(', ')}`] : []),
    '',
    indented(tableOf(all, rows, [...all.keys()].slice(1))),
    '',
    'Provider, by UTC day:',
    indented(tableOf(['setting', 'day', 'requests', 'weight'], days, [2, 3])),
    '',
    'Budget, by the largest spending in a window:',
    indented(tableOf(['setting', 'minute', 'hour', 'day', 'budget', 'plan'], budgets)),
    ...planRemarks(rehearsed.map(({ plans }) => plans)).flatMap(remark => ['', remark]),
  ].join('\n')
}

/** A setting that all have in common says nothing in a row of its own. */
const namesOf = (rehearsed: readonly RehearsedCase[]) => {
  const words = rehearsed.map(({ name }) => name.split(' ').filter(word => word !== ''))
  const isCommon = (word: string): boolean => rehearsed.length > 1 && words.every(each => each.includes(word))
  const nameOf = ({ name }: RehearsedCase): string =>
    name
      .split(' ')
      .filter(word => !isCommon(word))
      .join(' ') || 'as configured'
  return { common: (words[0] ?? []).filter(isCommon), nameOf }
}

const rowOf = ({ result }: RehearsedCase): string[] => {
  const { age, provider, totals } = result
  const refused = sumOf(result.statuses, status => status === 429 || status >= 500)
  const took = (Date.parse(result.endedAt) - Date.parse(result.startedAt)) / 1000
  return [
    ...shares.map(outcome => {
      const found = shareOf(result, outcome)
      return found === null ? '-' : `${(found * 100).toFixed(1)} %`
    }),
    ...[refused, failedIn(totals), provider?.requests ?? 0, Math.round(provider?.weight ?? 0)].map(counted),
    ...[age?.p50, age?.p95, age?.max].map(seconds => (seconds === undefined ? '-' : spanText(seconds))),
    spanText(took),
  ]
}

const sumOf = (statuses: Readonly<Record<string, number>>, isMeant: (status: number) => boolean): number =>
  Object.entries(statuses).reduce((sum, [status, count]) => (isMeant(Number(status)) ? sum + count : sum), 0)

const windowsOf = ({ result: { provider } }: RehearsedCase): string[] =>
  (provider?.windows ?? []).map(({ limit, most }) =>
    limit === null ? counted(Math.ceil(most)) : `${counted(Math.ceil(most))} of ${counted(limit)}`,
  )

// As the gateway's own warning: the rest is less than a cell weighs, or is kept for requests in flight.
const spentShare = 0.98

const verdictOf = ({ result, providerRefused }: RehearsedCase): string => {
  const windows = (result.provider?.windows ?? []).filter(({ limit }) => limit !== null)
  const without = sumOf(result.statuses, status => status >= 500)
  if (providerRefused > 0) return `too large: the provider refused ${counted(providerRefused)} requests`
  if (windows.length === 0) return 'no limits'
  if (without > 0) return `too small: ${counted(without)} requests had no weather`
  const spent = windows.filter(({ limit, most }) => limit !== null && most >= limit * spentShare)
  return spent.length > 0 ? `spent: ${spent.map(({ span }) => span).join(', ')}` : 'fits'
}

// Whole minutes, as on the page.
const spanText = (seconds: number): string => {
  if (seconds < 100) return `${Math.round(seconds)} s`
  if (seconds < 100 * 60) return `${Math.floor(seconds / 60)} min`
  return `${(seconds / 3600).toFixed(1)} h`
}
