// The page of `whatif --out`: a row for each setting, hits over cost, the best settings over time, and peaks of provider weight.

import type { Figures } from 'abohawa/common/page/figures.js'
import { escaped, facts, type Html, notice, section } from 'abohawa/common/page/html.ts'
import { code, table, tiles } from '../../common/html.ts'
import { charts, figuresIn, reportFile, settingsTable } from '../report/report-file.ts'
import { differingSettings } from '../report/run-figures.ts'
import { number } from '../report/run-sections.ts'
import { leftOutText } from '../traffic/recorded-admission.ts'
import {
  type CaseResult,
  caseNameText,
  paretoNote,
  remarksOn,
  type WhatIfResult,
  whatIfColumns,
} from './what-if.ts'

type NamedCase = CaseResult & { readonly title: string }

/** The text of the file. @param timeZone for times of day */
export const whatIfPage = (result: WhatIfResult, timeZone: string): string => {
  const figures = figuresIn(timeZone)
  const cases = namedCases(result.cases)
  // Pareto-optimal cases first.
  const drawn = [...cases.keys()]
    .toSorted((a, b) => Number(cases[b]?.paretoOptimal) - Number(cases[a]?.paretoOptimal))
    .slice(0, maxLines)
  const someLines =
    cases.length > maxLines
      ? `<p class="note">The charts show ${maxLines} settings, best settings first.</p>`
      : ''
  const parts = [
    section('settings', 'Settings', settingsOf(result, cases, figures)),
    ...(cases.length > 1
      ? [section('price', 'Hits and their cost', charts('all', 'hitsOverWeight', 'ageOverWeight'))]
      : []),
    section('day', 'Over time', charts('all', 'hits', 'weight', 'stretch') + someLines),
    section('spending', 'Provider weight', spendingOf(cases, figures)),
    section('traffic', 'Traffic and setup', trafficOf(result, figures)),
  ]
  return reportFile(
    {
      title: 'What if',
      subtitle: `${figures.count(result.traffic.requests)} requests of ${result.traffic.files.join(', ')}`,
      content: parts.join('\n'),
    },
    {
      whatIf: { drawn: drawn.map(place => [place, cases[place]?.title ?? '']), result },
      points: cases.map(({ provider, hitShare, age, paretoOptimal }, i) => ({
        name: String(i + 1),
        weight: provider.weight,
        hits: hitShare,
        age: age.p95,
        isBest: paretoOptimal,
      })),
    },
    timeZone,
  )
}

// The number of line styles.
const maxLines = 8

const namedCases = (cases: readonly CaseResult[]): NamedCase[] => {
  const { names } = differingSettings(cases.map(({ settings }) => settings))
  return cases.map((each, i) => {
    const name = names[i] || caseNameText(each)
    return { ...each, title: cases.length > 1 ? `${i + 1}. ${name}` : name }
  })
}

const settingsOf = (result: WhatIfResult, cases: readonly NamedCase[], figures: Figures): Html => {
  const isSeveral = cases.length > 1
  const columns = whatIfColumns(cases, figures)
  const isFailing = cases.some(({ failed }) => failed > 0)
  const marked = new Set(cases.flatMap(({ paretoOptimal }, i) => (isSeveral && paretoOptimal ? [i] : [])))
  const remarks = [
    ...(isFailing
      ? [notice('bad', 'Some weather requests failed: nothing was cached and the budget was used up.')]
      : []),
    ...remarksOn(result).map(remark => notice('warn', escaped(remark))),
  ]
  const [only] = cases
  const large =
    only && !isSeveral
      ? tiles([
          { name: 'Hits', value: figures.share(only.hitShare) },
          { name: 'Provider weight', value: figures.count(only.provider.weight) },
          { name: 'Age, p95', value: figures.duration(only.age.p95) },
        ])
      : ''
  const note = isSeveral ? `<p class="note">★ ${paretoNote}</p>` : ''
  return remarks.join('') + large + settingsTable('Settings', columns, cases, marked) + note
}

const spendingOf = (cases: readonly NamedCase[], figures: Figures): Html =>
  table(
    'Provider weight',
    [{ head: 'Setting' }, ...['Peak minute', 'Peak hour', 'Peak UTC day', 'Total'].map(number)],
    cases.map(({ provider: { most, weight }, title }) => [
      escaped(title),
      ...[most.minute, most.hour, most.day, weight].map(figures.count),
    ]),
  )

const trafficOf = (result: WhatIfResult, figures: Figures): Html => {
  const { traffic, base, instances, warmUpSeconds, warm, latencyMs, version } = result
  const [first] = result.cases
  const leftOut = leftOutText(traffic.leftOut, figures.count)
  const start = [
    warm ? 'after all of the traffic once' : 'with an empty cache',
    ...(warmUpSeconds > 0 ? [`counted after ${figures.duration(warmUpSeconds)}`] : []),
  ]
  return facts([
    ['Files', code(traffic.files.join(', '))],
    ['Requests', figures.count(traffic.requests)],
    ['Span', figures.duration(traffic.spanSeconds)],
    ['Invalid lines skipped', figures.count(traffic.faultyLines)],
    ...(leftOut === undefined ? [] : [['Skipped', leftOut] as const]),
    ...(first && first.none > 0
      ? [['Requests without weather (including skipped)', figures.count(first.none)] as const]
      : []),
    ['SHA-256', code(traffic.sha256.slice(0, 16))],
    ['Gateway instances', figures.count(instances)],
    ['Start', start.join(', ')],
    ['Provider latency', figures.latency(latencyMs / 1000)],
    ...base.map(({ path, value, default: usual }): readonly [string, Html] => [
      escaped(path),
      `${code(value)} ${escaped(`(default ${usual})`)}`,
    ]),
    ['Version', code(version)],
  ])
}
