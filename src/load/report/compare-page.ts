// The page of a comparison: what makes it doubtful first, then limits of change, every figure of both sides with its verdict,
// the sides themselves, charts over each other, bodies.

import { badge, code, escaped, type Html, notice, section, table } from '../../page/html.ts'
import { sayIn } from '../../page/words.ts'
import type { LimitVerdict } from './change-limits.ts'
import type { Obstacle, Warning } from './comparability.ts'
import type { BodiesComparison } from './compare-bodies.ts'
import { type CompareWord, compareWords, type SayCompare } from './compare-words.ts'
import type { Difference } from './comparison.ts'
import type { Estimate } from './intervals.ts'
import type { Unit } from './metrics.ts'
import { type Figures, figuresIn, reportFrame } from './page-frame.ts'
import type { ReplayResult } from './result.ts'
import { chartsOf } from './result-charts.ts'
import { outcomeWords } from './result-sections.ts'
import { resultWords } from './result-words.ts'

export type Comparison = {
  readonly a: readonly ReplayResult[]
  readonly b: readonly ReplayResult[]
  readonly warnings: readonly Warning[]
  readonly differences: readonly Difference[]
  readonly limits: readonly LimitVerdict[]
  readonly bodies: BodiesComparison | null
}

type Writing = { readonly say: SayCompare; readonly figures: Figures }

/** The text of the file. @param timeZone of its times of day */
export const comparePage = (comparison: Comparison, timeZone: string): string =>
  reportFrame(language => {
    const writing = { say: sayIn(compareWords, language), figures: figuresIn(language, timeZone) }
    const { say } = writing
    const { a, b, bodies } = comparison
    const [one, other] = [a[0], b[0]]
    const charts =
      one && other
        ? chartsOf(
            [
              { run: one, name: 'A' },
              { run: other, name: 'B' },
            ],
            { say: sayIn(resultWords, language), figures: writing.figures },
            144,
          )
        : undefined
    const drawn = charts
      ? `<div class="pair">${charts.percentiles()}${charts.latency()}${charts.hits()}${charts.weight()}${charts.rate()}${charts.age()}</div>`
      : ''
    return {
      title: say('title'),
      subtitle: say('subtitle', sideText(a, b, writing), sideText(b, a, writing)),
      content: [
        warningsHtml(comparison, writing),
        section('verdict', say('verdict'), verdictHtml(comparison, writing)),
        section('sides', say('sides'), sidesHtml(comparison, writing)),
        section(
          'charts',
          say('charts'),
          (a.length + b.length > 2 ? `<p class="note">${escaped(say('ofFirst'))}</p>` : '') + drawn,
        ),
        ...(one && other ? [section('outcomes', say('byOutcome'), outcomesHtml(one, other, writing))] : []),
        ...(bodies ? [section('bodies', say('bodies'), bodiesHtml(bodies, writing))] : []),
      ].join('\n'),
    }
  })

const maxNamed = 3

/** The settings of a side that the other lacks, or its version where they are not known. */
const sideText = (
  [first]: readonly ReplayResult[],
  [other]: readonly ReplayResult[],
  { say }: Writing,
): string => {
  if (!first) return '–'
  const { settings, machine } = first
  if (settings === null) return machine.version
  if (settings.length === 0) return say('defaults')
  const textsOf = (run: ReplayResult | undefined): string[] =>
    run?.settings?.map(({ path, value }) => `${path}=${value}`) ?? []
  const others = new Set(textsOf(other))
  const own = textsOf(first).filter(text => !others.has(text))
  // All of them stand in a section of the page.
  const shown = (own.length > 0 ? own : textsOf(first)).slice(0, maxNamed)
  return `${shown.join(', ')}${settings.length > shown.length ? ' …' : ''}`
}

const warningWords: Readonly<Record<Obstacle, CompareWord>> = {
  traffic: 'traffic',
  kind: 'kind',
  pace: 'paceDiffers',
  length: 'lengthDiffers',
  connections: 'connections',
  machine: 'machineDiffers',
  saturated: 'saturated',
  interrupted: 'interrupted',
  disturbed: 'disturbed',
  late: 'late',
}

/** The warnings of a comparison, as sentences. */
export const warningSentences = (warnings: readonly Warning[], say: SayCompare): string[] =>
  warnings.map(({ obstacle, a, b }) => say(warningWords[obstacle], a, b))

const warningsHtml = ({ warnings }: Comparison, { say }: Writing): Html =>
  warnings.length === 0
    ? ''
    : notice(
        warnings.some(({ obstacle }) => obstacle === 'traffic' || obstacle === 'saturated') ? 'bad' : 'warn',
        `<b>${escaped(say('hard'))}</b>${warningSentences(warnings, say)
          .map(sentence => `<p>${escaped(sentence)}</p>`)
          .join('')}`,
      )

const valueText = (value: number, unit: Unit, { say, figures }: Writing): string =>
  ({
    ms: () => figures.latency(value / 1000),
    share: () => figures.share(value),
    perSecond: () => say('perSecond', figures.measured(value)),
    count: () => figures.count(value),
    seconds: () => figures.duration(value),
    bytes: () => figures.bytes(value),
  })[unit]()

/** A value, and below it its interval. */
const estimateHtml = (
  { value, low, high }: Estimate,
  write: (value: number) => string,
  { say }: Writing,
): Html =>
  `${escaped(write(value))}${low === null || high === null ? '' : `<br><small>${escaped(say('interval', write(low), write(high)))}</small>`}`

/** The word of a figure; percentiles have none but their names. */
export const metricText = (metric: string, say: SayCompare): string => {
  const word = `metric-${metric}`
  return word in compareWords.en ? say(word as CompareWord) : metric
}

const limitStates = { passed: 'good', failed: 'bad', undecided: 'warn' } as const

const verdictHtml = ({ differences, limits }: Comparison, writing: Writing): Html => {
  const { say, figures } = writing
  const count = (verdict: Difference['verdict']): number =>
    differences.filter(difference => difference.verdict === verdict).length
  const [better, worse] = [count('better'), count('worse')]
  const limitsThat = (verdict: LimitVerdict['verdict']): number =>
    limits.filter(limit => limit.verdict === verdict).length
  const [broken, undecided] = [limitsThat('failed'), limitsThat('undecided')]
  const change = (value: number): string =>
    `${value > 0 ? '+' : value < 0 ? '−' : ''}${figures.share(Math.abs(value))}`
  const summary = [
    better + worse === 0
      ? say('noReal', figures.count(count('noise')))
      : say('real', figures.count(better), figures.count(worse), figures.count(count('noise'))),
    ...(count('unclear') > 0 ? [say('unclearCount', figures.count(count('unclear')))] : []),
  ].join(' ')
  const limitTable =
    limits.length === 0
      ? ''
      : `${notice(
          broken > 0 ? 'bad' : undecided > 0 ? 'warn' : 'good',
          [
            ...(broken > 0 ? [say('limitsFailed', figures.count(broken), figures.count(limits.length))] : []),
            ...(undecided > 0
              ? [say('limitsUndecided', figures.count(undecided), figures.count(limits.length))]
              : []),
            ...(broken + undecided === 0 ? [say('limitsPassed', figures.count(limits.length))] : []),
          ]
            .map(sentence => `<b>${escaped(sentence)}</b>`)
            .join(' '),
        )}${table(
          say('limit'),
          [{ head: say('limit') }, { head: say('change'), isNumber: true }, { head: say('result') }],
          limits.map(limit => [
            code(limit.limit),
            limit.change === null ? '–' : escaped(change(limit.change)),
            badge(limitStates[limit.verdict], say(limit.verdict)),
          ]),
        )}`
  const rows = differences.map(difference => {
    const write = (value: number): string => valueText(value, difference.unit, writing)
    const { verdict } = difference
    return [
      escaped(metricText(difference.metric, say)),
      verdict === 'better' || verdict === 'worse'
        ? badge(verdict === 'better' ? 'good' : 'bad', say(verdict))
        : `<span class="word note">${escaped(say(verdict))}</span>`,
      estimateHtml(difference.a, write, writing),
      estimateHtml(difference.b, write, writing),
      difference.change === null ? '–' : estimateHtml(difference.change, change, writing),
    ]
  })
  const number = (head: string) => ({ head, isNumber: true })
  return `${limitTable}<p><b>${escaped(summary)}</b></p>${table(
    say('verdict'),
    [{ head: say('figure') }, { head: say('result') }, number('A'), number('B'), number(say('change'))],
    rows,
  )}<p class="note">${escaped(say('method'))}</p>`
}

const sidesHtml = ({ a, b }: Comparison, writing: Writing): Html => {
  const { say, figures } = writing
  const each = (runs: readonly ReplayResult[], of: (run: ReplayResult) => Html): Html =>
    [...new Set(runs.map(of))].join('<br>')
  const pace = ({ pace: { mode, speed, rate } }: ReplayResult): string =>
    mode === 'recorded'
      ? `× ${figures.measured(speed ?? 1)}`
      : mode === 'rate'
        ? say('perSecond', figures.measured(rate ?? 0))
        : mode
  const settingsOf = ({ settings }: ReplayResult): Html =>
    settings === null
      ? escaped(say('unknown'))
      : settings.length === 0
        ? escaped(say('defaults'))
        : settings.map(({ path, value }) => code(`${path}=${value}`)).join('<br>')
  const lines: readonly (readonly [string, (run: ReplayResult) => Html])[] = [
    [say('files'), run => run.traffic.files.map(code).join(', ')],
    [say('hash'), run => code(run.traffic.sha256.slice(0, 12))],
    [say('pace'), run => escaped(pace(run))],
    [say('settings'), settingsOf],
    [say('version'), ({ machine }) => code(machine.version)],
    [say('machine'), ({ machine }) => escaped(`${figures.count(machine.cores)} × ${machine.cpu}`)],
    [say('started'), run => escaped(figures.instant(run.startedAt, '1970-01-01T00:00:00Z', true))],
  ]
  return table(
    say('sides'),
    [{ head: say('side') }, { head: 'A' }, { head: 'B' }],
    [
      [escaped(say('runs')), escaped(figures.count(a.length)), escaped(figures.count(b.length))],
      ...lines.map(([name, of]) => [escaped(name), each(a, of), each(b, of)]),
    ],
  )
}

const outcomesHtml = (a: ReplayResult, b: ReplayResult, { say, figures }: Writing): Html => {
  const nameOf = ({ endpoint, outcome }: ReplayResult['latencies'][number]): string =>
    `${endpoint} ${outcome}`
  const names = [...new Set([...a.latencies, ...b.latencies].map(nameOf))].sort()
  const rows = names.map(name => {
    const [endpoint = '', outcome = ''] = name.split(' ')
    const sides = [a, b].map(run => run.latencies.find(latency => nameOf(latency) === name))
    const cells = (['p50', 'p99'] as const).flatMap(figure =>
      sides.map(side => escaped(figures.latency(side === undefined ? null : side[figure] / 1000))),
    )
    const word = outcomeWords[outcome]
    return [
      `<span class="word">${code(endpoint)}</span>`,
      `<span class="word">${escaped(word === undefined ? outcome : say(word))}</span>`,
      ...cells,
    ]
  })
  const heads = ['p50 A', 'p50 B', 'p99 A', 'p99 B'].map(head => ({ head, isNumber: true }))
  return table(say('byOutcome'), [{ head: say('endpoint') }, { head: say('outcome') }, ...heads], rows)
}

const bodiesHtml = (bodies: BodiesComparison, { say, figures }: Writing): Html => {
  const { paths, same, different, missingInA, missingInB, examples } = bodies
  if (same === paths) return notice('good', escaped(say('bodiesSame', figures.count(paths))))
  const cells = (answers: readonly string[]): Html =>
    answers.length === 0 ? '–' : answers.map(code).join('<br>')
  return `${notice('bad', escaped(say('bodiesDiffer', ...[paths, same, different, missingInB, missingInA].map(figures.count))))}${table(
    say('bodies'),
    [{ head: say('path') }, { head: 'A' }, { head: 'B' }],
    examples.map(({ path, a, b }) => [code(path), cells(a), cells(b)]),
  )}`
}
