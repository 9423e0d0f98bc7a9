// The tables of `rehearse` and `whatif`: a row for each setting, with facts before and remarks after.

import { factsText, tableOf } from 'abohawa/command-line/tables.ts'
import { counted, numbered, percentText } from 'abohawa/command-line/terminal.ts'
import { createFigures } from 'abohawa/common/page/figures.js'
import { printDuration } from 'abohawa/config/units.ts'
import type { RehearsedCase } from '../rehearsal/rehearsed-case.ts'
import type { SettingColumn } from '../report/report-file.ts'
import { failedIn, shareOf } from '../report/run-figures.ts'
import { leftOutText, type SentWith } from '../traffic/recorded-admission.ts'
import {
  type CaseResult,
  caseNameText,
  paretoNote,
  remarksOn,
  type WhatIfResult,
  whatIfColumns,
} from '../what-if/what-if.ts'

const figures = createFigures('en', 'UTC')
const { duration: ageText } = figures

// The columns without numbers.
const ofWords = new Set(['Setting', '', 'Freshness extended by', 'Budget'])

const columnsText = <Row>(columns: readonly SettingColumn<Row>[], rows: readonly Row[]): string => {
  const shown = columns.filter(([, , isShown = true]) => isShown)
  const heads = shown.map(([head]) => head)
  const numbers = heads.flatMap((head, i) => (ofWords.has(head) ? [] : [i]))
  return tableOf(
    heads.map(head => head.replace(/^[A-Z](?=[a-z])/, letter => letter.toLowerCase())),
    rows.map(row => shown.map(([, cell]) => cell(row))),
    numbers,
  )
}

const rounded = (weight: number): string => counted(Math.round(weight))

export const whatIfText = (result: WhatIfResult): string => {
  const { traffic, cases, instances, warmUpSeconds, warm, base } = result
  const reasons = leftOutText(traffic.leftOut, counted)
  const [first] = cases
  const columns: readonly SettingColumn<CaseResult>[] = [
    ['Setting', caseNameText],
    ['', each => (each.paretoOptimal && cases.length > 1 ? '*' : '')],
    ...whatIfColumns(cases, { ...figures, share: share => percentText(share ?? 0) }),
    ['Peak UTC day', ({ provider }) => rounded(provider.most.day)],
    ['Peak minute', ({ provider }) => rounded(provider.most.minute)],
  ]
  const faulty = traffic.faultyLines > 0 ? `, ${counted(traffic.faultyLines)} faulty lines skipped` : ''
  const facts = {
    traffic: `${counted(traffic.requests)} requests in ${printDuration(Math.round(traffic.spanSeconds / 60) * 60_000)}`,
    '': `of ${traffic.files.join(', ')}${faulty}`,
    'left out': reasons,
    'no weather':
      first && first.none > 0
        ? `${counted(first.none)} of ${counted(first.requests)} counted requests: ${reasons === undefined ? '' : 'those left out, '}other endpoints, refused places and parameters`
        : undefined,
    instances: String(instances),
    start: `${warm ? 'after all of the traffic once' : 'cold'}${warmUpSeconds > 0 ? `, counted after ${printDuration(warmUpSeconds * 1000)}` : ''}`,
    ...Object.fromEntries(
      base.map(({ path, value, default: usual }) => [path, `${value} (default ${usual})`]),
    ),
  }
  const remarks = [...(cases.length > 1 ? [`* ${paretoNote}`] : []), ...remarksOn(result)]
  return [
    factsText(Object.entries(facts)),
    '',
    columnsText(columns, cases),
    ...(remarks.length > 0 ? ['', ...remarks] : []),
  ].join('\n')
}

export const rehearsalText = (
  rehearsed: readonly RehearsedCase[],
  { substitute, nothing }: Readonly<Record<SentWith, number>>,
): string => {
  const [first] = rehearsed
  if (!first) return 'Nothing was rehearsed.'
  const { requests, keys, from, spanSeconds } = first.result.traffic
  const share = (outcome: 'hit' | 'stale' | 'miss') => (each: RehearsedCase) => {
    const found = shareOf(each.result, outcome)
    return found === null ? '-' : percentText(found)
  }
  const age = (of: 'p50' | 'p95' | 'max') => (each: RehearsedCase) => ageText(each.result.age?.[of])
  const columns: readonly SettingColumn<RehearsedCase>[] = [
    ['Setting', caseNameText],
    ['Hits', share('hit')],
    ['Stale', share('stale')],
    ['Misses', share('miss')],
    ['Refused', ({ result }) => counted(countOf(result.statuses, status => status === 429 || status >= 500))],
    ['Unanswered', ({ result }) => counted(failedIn(result.totals))],
    ['Provider requests', ({ result }) => counted(result.provider?.requests ?? 0)],
    ['Provider weight', ({ result }) => rounded(result.provider?.weight ?? 0)],
    [
      'Peak UTC day',
      ({ result }) => rounded(result.provider?.windows.find(({ span }) => span === 'day')?.most ?? 0),
    ],
    ['Budget', budgetText],
    ['Age, median', age('p50')],
    ['Age, p95', age('p95')],
    ['Age, oldest', age('max')],
  ]
  return [
    `${counted(requests)} requests of ${numbered(keys, 'key', 'keys')} from ${from}, for ${ageText(spanSeconds)}.`,
    ...(substitute > 0
      ? [`Sent with unlimited keys: ${counted(substitute)} with a recorded response but no key id.`]
      : []),
    ...(nothing > 0
      ? [
          `Sent without a key, and refused with 401: ${counted(nothing)} recorded as refused or redirected, or with neither a key id nor a response.`,
        ]
      : []),
    '',
    columnsText(columns, rehearsed),
  ].join('\n')
}

const countOf = (statuses: Readonly<Record<string, number>>, isMeant: (status: number) => boolean): number =>
  Object.entries(statuses).reduce((sum, [status, count]) => (isMeant(Number(status)) ? sum + count : sum), 0)

// The same as for the gateway's own warning: the rest is less than one cell, or reserved for requests in flight.
const spentShare = 0.98

const budgetText = ({ result, providerRefused }: RehearsedCase): string => {
  const windows = (result.provider?.windows ?? []).filter(({ limit }) => limit !== null)
  const without = countOf(result.statuses, status => status >= 500)
  if (providerRefused > 0) return `too large: the provider refused ${counted(providerRefused)} requests`
  if (windows.length === 0) return 'no limits'
  if (without > 0) return `too small: ${counted(without)} requests had no weather`
  const spent = windows.filter(({ limit, most }) => limit !== null && most >= limit * spentShare)
  return spent.length > 0 ? `spent: ${spent.map(({ span }) => span).join(', ')}` : 'fits'
}
