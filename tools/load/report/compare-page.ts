// The page of a comparison: warnings first, then limits of change, the figures of both sides with verdicts, the runs, charts.

import type { Figures } from 'abohawa/common/page/figures.js'
import { badge, escaped, type Html, notice, section } from 'abohawa/common/page/html.ts'
import { code, table } from '../../common/html.ts'
import { type Warning, warningSentences } from './comparability.ts'
import { type Difference, type LimitVerdict, leastRuns, type SideFigure } from './comparison.ts'
import { changeText, metrics, valueText } from './metrics.ts'
import { charts, drawnRun, figuresIn, reportFile } from './report-file.ts'
import type { ReplayResult } from './result.ts'
import { paceText } from './run-figures.ts'
import { dateTime, number } from './run-sections.ts'

export type Comparison = {
  readonly a: readonly ReplayResult[]
  readonly b: readonly ReplayResult[]
  readonly warnings: readonly Warning[]
  readonly differences: readonly Difference[]
  readonly limits: readonly LimitVerdict[]
}

/** The text of the file. @param timeZone of its times of day */
export const comparePage = (comparison: Comparison, timeZone: string): string => {
  const figures = figuresIn(timeZone)
  const { a, b, warnings } = comparison
  const [one, other] = [a[0], b[0]]
  const ofFirst =
    a.length + b.length > 2 ? '<p class="note">The charts show the first run of each side.</p>' : ''
  const drawn = charts('all', 'percentiles', 'latency', 'hits', 'weight', 'rate', 'age')
  const content = [
    warningsHtml(warnings),
    section('verdict', 'Differences', verdictHtml(comparison, figures)),
    section('sides', 'Runs compared', sidesHtml(comparison, figures)),
    section('charts', 'Side by side', ofFirst + drawn),
  ].join('\n')
  return reportFile(
    {
      title: 'Comparison',
      subtitle: `${figures.count(a.length)} against ${figures.count(b.length)} runs`,
      content,
    },
    { runs: one && other ? [drawnRun(one, 'A'), drawnRun(other, 'B')] : [] },
    timeZone,
  )
}

const warningsHtml = (warnings: readonly Warning[]): Html =>
  warnings.length === 0
    ? ''
    : notice(
        warnings.some(({ obstacle }) => obstacle === 'traffic' || obstacle === 'saturated') ? 'bad' : 'warn',
        `<b>Compare with care</b>${warningSentences(warnings)
          .map(sentence => `<p>${escaped(sentence)}</p>`)
          .join('')}`,
      )

/** With its range if there are several runs. */
const figureHtml = ({ value, low, high }: SideFigure, write: (value: number) => string): Html =>
  `${write(value)}${low === high ? '' : `<br><small>${write(low)} to ${write(high)}</small>`}`

const limitStates = { passed: 'good', failed: 'bad', undecided: 'warn' } as const

const limitsHtml = (limits: readonly LimitVerdict[], change: (value: number) => string): Html => {
  if (limits.length === 0) return ''
  const [broken, undecided] = (['failed', 'undecided'] as const).map(
    verdict => limits.filter(limit => limit.verdict === verdict).length,
  ) as [number, number]
  const sentences = [
    broken > 0 ? `Limits of change failed: ${broken} of ${limits.length}.` : '',
    undecided > 0 ? undecidedSentence(undecided, limits.length) : '',
    broken + undecided === 0 ? `All limits of change passed: ${limits.length} of ${limits.length}.` : '',
  ]
  const state = broken > 0 ? 'bad' : undecided > 0 ? 'warn' : 'good'
  const text = sentences.flatMap(sentence => (sentence === '' ? [] : `<b>${escaped(sentence)}</b>`)).join('')
  const rows = limits.map(({ limit, change: changed, verdict }) => [
    code(limit),
    changed === null ? '–' : change(changed),
    badge(limitStates[verdict], verdict === 'undecided' ? 'not decided' : verdict),
  ])
  const heads = [{ head: 'Limit' }, number('Change of B'), { head: 'Verdict' }]
  return notice(state, text) + table('Limit', heads, rows)
}

export const undecidedSentence = (undecided: number, limits: number): string =>
  `Limits of change that these runs can’t decide: ${undecided} of ${limits}. The change may be chance; use more runs per side.`

export const noVerdictSentence = `No verdicts: they require ${leastRuns} undisturbed runs per side, because runs on the same machine differ too.`

const method = `Compares the medians of the runs; small figures are the smallest and the largest run. A change is noise if a permutation test of ranks gives p > 1 %, or if it is under 10 % (provider weight: 1 %).`

export const hasVerdicts = (differences: readonly Difference[]): boolean =>
  differences.some(({ verdict }) => verdict !== null)

const verdictHtml = ({ differences, limits }: Comparison, figures: Figures): Html => {
  const count = (verdict: Difference['verdict']): number =>
    differences.filter(difference => difference.verdict === verdict).length
  const [better, worse] = [count('better'), count('worse')]
  const percents = (value: number): string =>
    `${value > 0 ? '+' : value < 0 ? '−' : ''}${figures.share(Math.abs(value))}`
  const change = (value: number): string => changeText(value, percents)
  const summary = !hasVerdicts(differences)
    ? noVerdictSentence
    : `${better + worse === 0 ? 'No difference is real.' : `Real differences: ${better} better and ${worse} worse in B.`} Noise: ${count('noise')}.`
  const rows = differences.map(({ metric, unit, a, b, change: changed, verdict }) => {
    const write = (value: number): string => valueText(value, unit, figures)
    return [
      // As a label: Max, not max, but p50.
      escaped(metrics[metric].name.replace(/^[a-z](?=[a-z])/, letter => letter.toUpperCase())),
      verdict === 'better' || verdict === 'worse'
        ? badge(verdict === 'better' ? 'good' : 'bad', verdict)
        : `<span class="note">${verdict ?? '–'}</span>`,
      figureHtml(a, write),
      figureHtml(b, write),
      changed === null ? '–' : change(changed),
    ]
  })
  return `${limitsHtml(limits, change)}<p><b>${summary}</b></p>${table(
    'Differences',
    [{ head: 'Metric' }, { head: 'Verdict' }, number('A'), number('B'), number('Change of B')],
    rows,
  )}<p class="note">${method}</p>`
}

const settingsOf = ({ settings }: ReplayResult): Html => {
  if (settings === null) return 'not known'
  return settings.length === 0
    ? 'defaults'
    : settings.map(({ path, value }) => code(`${path}=${value}`)).join('<br>')
}

const sidesHtml = ({ a, b }: Comparison, figures: Figures): Html => {
  const lines: readonly (readonly [string, (run: ReplayResult) => Html])[] = [
    ['Traffic', run => run.traffic.files.map(code).join(', ')],
    ['SHA-256', run => code(run.traffic.sha256.slice(0, 12))],
    ['Pace', run => paceText(run, figures)],
    ['Settings', settingsOf],
    ['Version', ({ machine }) => code(machine.version)],
    ['Machine', ({ machine }) => `${figures.count(machine.cores)} × ${escaped(machine.cpu)}`],
    ['Started', run => dateTime(run.startedAt, figures)],
  ]
  const rows = lines.map(([name, of]) => [
    name,
    ...[a, b].map(runs => [...new Set(runs.map(of))].join('<br>')),
  ])
  const runs = ['Runs', figures.count(a.length), figures.count(b.length)]
  return table('Runs compared', [{ head: 'Side' }, { head: 'A' }, { head: 'B' }], [runs, ...rows])
}
