// The page of `whatif --out`: a row for each setting, hits over what they cost, weight and age by setting, and the day of the
// settings that no other beats. Longer than 300 lines, because the page has many sections.

import {
  badge,
  type Column,
  code,
  escaped,
  facts,
  type Html,
  notice,
  section,
  table,
  tiles,
} from '../../page/html.ts'
import { type Language, type Say, sayIn } from '../../page/words.ts'
import { lineChart } from '../report/line-chart.ts'
import { type Figures, figuresIn, type PageContent, reportFrame } from '../report/page-frame.ts'
import { isUnknownPlan, smallestPlan } from '../report/plans.ts'
import { durationScale, linearScale, rangeScale, shareScale, timeScale } from '../report/scale.ts'
import { type Point, scatterChart } from '../report/scatter-chart.ts'
import { leftOutReasons } from '../traffic/recorded-admission.ts'
import { type CaseResult, servedShare, type WhatIfResult } from './what-if-result.ts'
import { type WhatIfWord, whatIfWords } from './what-if-words.ts'

type Writing = { readonly say: Say<WhatIfWord>; readonly figures: Figures }
/** A case, its number for where there is little room, and the values in which it differs from others. */
type NamedCase = CaseResult & { readonly number: string; readonly label: string }

/** The text of the file. @param timeZone of its times of day */
export const whatIfPage = (result: WhatIfResult, timeZone: string): string =>
  reportFrame(language => contentOf(result, language, timeZone))

const contentOf = (result: WhatIfResult, language: Language, timeZone: string): PageContent => {
  const writing: Writing = { say: sayIn(whatIfWords, language), figures: figuresIn(language, timeZone) }
  const { say, figures } = writing
  const cases = namedCases(result.cases, writing)
  const parts = [
    section('settings', say('settings'), settingsOf(result, cases, writing)),
    ...(cases.length > 1 ? [section('price', say('price'), priceOf(cases, writing))] : []),
    section('day', say('day'), dayOf(cases, writing)),
    section('plans', say('plans'), plansOf(cases, writing)),
    section('traffic', say('traffic'), trafficOf(result, writing)),
  ]
  return {
    title: say('title'),
    subtitle: say('subtitle', figures.count(result.traffic.requests), result.traffic.files.join(', ')),
    content: parts.join('\n'),
  }
}

const lastPart = (path: string): string => path.split('.').at(-1) ?? path

const namedCases = (cases: readonly CaseResult[], { say, figures }: Writing): NamedCase[] => {
  const paths = new Set(cases.flatMap(({ settings }) => Object.keys(settings)))
  const varying = [...paths].filter(path => new Set(cases.map(({ settings }) => settings[path])).size > 1)
  return cases.map((each, i) => {
    const own = varying.flatMap(path => {
      const value = each.settings[path]
      return value === undefined ? [] : [varying.length === 1 ? value : `${lastPart(path)}=${value}`]
    })
    const label = own.join(', ') || each.name || say('asConfigured')
    return { ...each, number: cases.length > 1 ? figures.count(i + 1) : '', label }
  })
}

type CaseColumn = readonly [head: Column, cell: (each: NamedCase) => Html]

/** Its number and its values. */
const nameOf = ({ number, label }: Pick<NamedCase, 'number' | 'label'>): string =>
  number === '' ? label : `${number}. ${label}`

const settingsOf = (result: WhatIfResult, cases: readonly NamedCase[], { say, figures }: Writing): Html => {
  const [only] = cases
  const column = (head: WhatIfWord, cell: CaseColumn[1]): CaseColumn => [
    { head: say(head), isNumber: true },
    cell,
  ]
  const share = (of: number, each: NamedCase): Html => escaped(figures.share(servedShare(of, each)))
  const isShared = cases.some(({ hits }) => hits.shared > 0)
  const isFailing = cases.some(({ failed }) => failed > 0)
  const isStretched = cases.some(({ stretch }) => stretch.most > 1)
  // Those that say nothing of any setting are left out.
  const columns: readonly CaseColumn[] = [
    [
      { head: say('setting') },
      each => `${escaped(nameOf(each))}${each.paretoOptimal && cases.length > 1 ? ' ★' : ''}`,
    ],
    column('hits', each => escaped(figures.share(each.hitShare))),
    ...(isShared ? [column('shared', each => share(each.hits.shared, each))] : []),
    column('stale', each => share(each.stale, each)),
    column('misses', each => share(each.misses, each)),
    ...(isFailing
      ? [
          column('failed', each =>
            each.failed === 0
              ? escaped(figures.share(0))
              : badge('bad', figures.share(each.failed / each.weather)),
          ),
        ]
      : []),
    column('weight', each => escaped(figures.count(each.provider.weight))),
    [{ head: say('plan') }, each => planOf(each, say)],
    ...(isStretched
      ? [
          column('stretch', ({ stretch }) =>
            stretch.most > 1
              ? escaped(say('stretched', figures.measured(stretch.most), figures.share(stretch.share)))
              : '–',
          ),
        ]
      : []),
    column('ageMedian', ({ age }) => escaped(figures.duration(age.p50))),
    column('age95', ({ age }) => escaped(figures.duration(age.p95))),
    column('ageMax', ({ age }) => escaped(figures.duration(Math.max(0, age.max)))),
    column('memory', ({ memory }) => mebibytes(memory.mostBytes, { say, figures })),
    column('sharedBytes', ({ memory }) => mebibytes(memory.sharedBytes, { say, figures })),
  ]
  const heads = columns.map(([head]) => head)
  const rows = cases.map(each => columns.map(([, cell]) => cell(each)))
  const marked = new Set(
    cases.flatMap(({ paretoOptimal }, i) => (paretoOptimal && cases.length > 1 ? [i] : [])),
  )
  const remarks = [
    ...(result.unfinished.length > 0
      ? [notice('warn', escaped(say('unfinished', result.unfinished.join('; '))))]
      : []),
    ...(cases.some(({ failed }) => failed > 0) ? [notice('bad', escaped(say('failing')))] : []),
    ...(cases.some(({ plans }) => smallestPlan(plans)?.isLeast)
      ? [notice('warn', escaped(say('partOfDay')))]
      : []),
    ...(cases.some(({ budgetBit }) => budgetBit) ? [notice('warn', escaped(say('budgetBit')))] : []),
  ]
  const large =
    only && cases.length === 1
      ? tiles([
          { name: say('hits'), value: figures.share(only.hitShare) },
          { name: say('weight'), value: figures.count(only.provider.weight) },
          { name: say('age95'), value: figures.duration(only.age.p95) },
        ])
      : ''
  const note = cases.length > 1 ? `<p class="note">★ ${escaped(say('paretoOptimal'))}</p>` : ''
  return `${remarks.join('')}${large}${table(say('settings'), heads, rows, marked)}${note}`
}

const mebibytes = (bytes: number, { say, figures }: Writing): Html =>
  escaped(say('mebibytes', figures.measured(bytes / 2 ** 20)))

const planOf = ({ plans }: NamedCase, say: Writing['say']): Html => {
  const smallest = smallestPlan(plans)
  if (!smallest) return badge('bad', say('noPlan'))
  if (isUnknownPlan(smallest)) return badge('warn', say('planUnknown'))
  const name = planName(smallest.plan, say)
  return smallest.isLeast ? badge('warn', say('planOrMore', name)) : escaped(name)
}

const planName = (name: string, say: Writing['say']): string =>
  name === 'free' || name === 'standard' || name === 'professional' || name === 'enterprise'
    ? say(name)
    : name

/** Hits and age over weight, with the Pareto-optimal settings. */
const priceOf = (cases: readonly NamedCase[], { say, figures }: Writing): Html => {
  const weights = cases.map(({ provider }) => provider.weight)
  const x = { label: say('weight'), scale: linearScale(weights, figures.short), write: figures.count }
  // One point for those that lie on each other, named by their numbers.
  const pointsOf = (y: (each: NamedCase) => number): Point[] =>
    [...Map.groupBy(cases, each => `${each.provider.weight} ${y(each)}`).values()].map(those => ({
      name: those.map(({ number }) => number).join(', '),
      x: those[0]?.provider.weight ?? 0,
      y: those[0] ? y(those[0]) : 0,
      isBest: those.some(({ paretoOptimal }) => paretoOptimal),
    }))
  const hits = pointsOf(({ hitShare }) => hitShare)
  const ages = pointsOf(({ age }) => age.p95)
  const valuesOf = (points: typeof hits): number[] => points.map(({ y }) => y)
  const shared = { x, nameLabel: say('setting'), tableTitle: say('values') }
  return `<div class="pair">${scatterChart({
    ...shared,
    title: say('hitsOverWeight'),
    note: say('numbers'),
    y: { label: say('hits'), scale: rangeScale(valuesOf(hits), figures.share), write: figures.share },
    points: hits,
  })}${scatterChart({
    ...shared,
    title: say('ageOverWeight'),
    note: say('numbers'),
    y: {
      label: say('age95'),
      scale: durationScale(valuesOf(ages), figures.duration),
      write: figures.duration,
    },
    points: ages,
  })}</div>`
}

// As many as there are line styles.
const maxLines = 8

const dayOf = (cases: readonly NamedCase[], { say, figures }: Writing): Html => {
  const chosen = [
    ...cases.filter(({ paretoOptimal }) => paretoOptimal),
    ...cases.filter(({ paretoOptimal }) => !paretoOptimal),
  ].slice(0, maxLines)
  const longest = chosen.reduce<CaseResult['steps']>(
    (most, { steps }) => (steps.length > most.length ? steps : most),
    [],
  )
  const at = longest.map(step => step.at)
  const stepSeconds = chosen[0]?.stepSeconds ?? 0
  const x = {
    label: say('time'),
    values: at,
    scale: timeScale({ from: 0, to: (at.at(-1) ?? 0) + stepSeconds }, figures.duration),
    write: figures.duration,
  }
  const linesOf = (value: (step: CaseResult['steps'][number]) => number | null) =>
    chosen.map(each => ({ name: nameOf(each), values: at.map((_, i) => value(each.steps[i] ?? none)) }))
  const none = { at: 0, requests: 0, hits: 0, stale: 0, misses: 0, failed: 0, weight: 0, stretch: 1 }
  const hits = linesOf(({ hits: fresh, stale, misses }) => {
    const all = fresh + stale + misses
    return all === 0 ? null : fresh / all
  })
  const weight = linesOf(step => step.weight)
  const stretch = linesOf(step => step.stretch)
  const all = (lines: typeof hits): number[] =>
    lines.flatMap(({ values }) => values.filter(value => value !== null))
  const stretches = all(stretch)
  const charts = [
    lineChart({
      title: say('hitsOverDay'),
      x,
      y: { scale: shareScale(figures.share), write: figures.share },
      lines: hits,
      tableTitle: say('values'),
    }),
    lineChart({
      title: say('weightOverDay', figures.duration(stepSeconds)),
      x,
      y: { scale: linearScale(all(weight), figures.short), write: figures.count },
      lines: weight,
      tableTitle: say('values'),
    }),
    ...(stretches.some(value => value > 1)
      ? [
          lineChart({
            title: say('stretch'),
            x,
            y: { scale: linearScale(stretches, figures.measured), write: figures.measured },
            lines: stretch,
            tableTitle: say('values'),
          }),
        ]
      : []),
  ]
  const note =
    cases.length > chosen.length
      ? `<p class="note">${escaped(say('someLines', figures.count(maxLines)))}</p>`
      : ''
  return `<div class="pair">${charts.join('')}</div>${note}`
}

const plansOf = (cases: readonly NamedCase[], { say, figures }: Writing): Html => {
  const [first] = cases
  const columns: Column[] = [
    { head: say('setting') },
    { head: say('perMinute'), isNumber: true },
    { head: say('perHour'), isNumber: true },
    { head: say('perDay'), isNumber: true },
    { head: say('perMonth'), isNumber: true },
    ...(first?.plans ?? []).map(({ plan }) => ({ head: planName(plan, say) })),
  ]
  const rows = cases.map(({ provider: { most }, weightPerMonth, plans, ...each }) => [
    escaped(nameOf(each)),
    ...[most.minute, most.hour, most.day, weightPerMonth].map(weight =>
      weight === null ? '–' : escaped(figures.count(weight)),
    ),
    ...plans.map(({ carries, beyond }) =>
      beyond
        ? badge('bad', say(beyondWords[beyond.span], figures.count(beyond.limit)))
        : carries
          ? badge('good', say('carries'))
          : badge('warn', say('notKnown')),
    ),
  ])
  return `${table(say('plans'), columns, rows)}<p class="note">${escaped(say('plansNote'))}</p>`
}

const beyondWords = {
  minute: 'beyondMinute',
  hour: 'beyondHour',
  day: 'beyondDay',
  month: 'beyondMonth',
} as const

const leftOutWords = {
  method: 'leftOutMethod',
  refused: 'leftOutRefused',
  keyless: 'leftOutKeyless',
} as const

const trafficOf = (result: WhatIfResult, { say, figures }: Writing): Html => {
  const { traffic, base, instances, warmUpSeconds, warm, latencyMs, version } = result
  const [first] = result.cases
  const start = [
    warm ? say('warm') : say('cold'),
    ...(warmUpSeconds > 0 ? [say('warmUp', figures.duration(warmUpSeconds))] : []),
  ]
  return facts([
    [say('files'), code(traffic.files.join(', '))],
    [say('requests'), escaped(figures.count(traffic.requests))],
    [say('span'), escaped(figures.duration(traffic.spanSeconds))],
    [say('faultyLines'), escaped(figures.count(traffic.faultyLines))],
    ...leftOutReasons.flatMap((reason): (readonly [string, Html])[] =>
      traffic.leftOut[reason] > 0
        ? [[say(leftOutWords[reason]), escaped(figures.count(traffic.leftOut[reason]))]]
        : [],
    ),
    ...(first && first.none > 0
      ? [[say('noWeather'), escaped(figures.count(first.none))] satisfies readonly [string, Html]]
      : []),
    [say('hash'), code(traffic.sha256.slice(0, 16))],
    [say('instances'), escaped(figures.count(instances))],
    [say('start'), escaped(start.join(', '))],
    [say('latency'), escaped(figures.latency(latencyMs / 1000))],
    ...base.map(({ path, value, default: usual }): readonly [string, Html] => [
      path,
      `${code(value)} ${escaped(say('usual', usual))}`,
    ]),
    [say('version'), code(version)],
  ])
}
