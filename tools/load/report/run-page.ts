// The report on one run, or on several: a row for each, hits over cost, the best settings, and each run folded.

import type { Figures } from 'abohawa/common/page/figures.js'
import { badge, escaped, type Html, notice, section } from 'abohawa/common/page/html.ts'
import { part } from '../../common/html.ts'
import { latencyText } from './metrics.ts'
import { charts, drawnRun, figuresIn, reportFile, type SettingColumn, settingsTable } from './report-file.ts'
import type { ReplayResult } from './result.ts'
import {
  answeredRate,
  differingSettings,
  errorsOf,
  failedIn,
  paceText,
  paretoOptimal,
  shareOf,
  weathersOf,
} from './run-figures.ts'
import { sectionsOf, thresholdsFailed, warningsOf } from './run-sections.ts'

/** The text of the file. @param results at least one @param timeZone for times of day */
export const reportPage = (results: readonly ReplayResult[], timeZone: string): string => {
  const figures = figuresIn(timeZone)
  const [run] = results
  if (results.length !== 1 || run === undefined) return pageOfSeveral(results, figures)
  const sections = sectionsOf(run, 0, figures).map(each => section(...each))
  return reportFile(
    {
      title: run.kind === 'rehearsal' ? 'Rehearsal' : 'Replay',
      subtitle: `${figures.count(run.totals.due)} requests, ${run.traffic.files.join(', ')}`,
      content: [warningsOf(run, figures), ...sections].join('\n'),
    },
    { runs: [drawnRun(run, '')] },
    timeZone,
  )
}

/** `title`: its number and its differing settings, such as `2. 3h`. */
type NamedRun = ReplayResult & { readonly title: string }

const pageOfSeveral = (results: readonly ReplayResult[], figures: Figures): string => {
  const runs = namedRuns(results, figures)
  const best = bestOf(runs)
  const warnings = runs.map(run => warningsOf(run, figures))
  const whole = runs.map((run, place) => {
    const parts = sectionsOf(run, place, figures).map(([, title, content]) => part(title, content))
    return `<details class="panel whole"><summary>Full run: ${escaped(run.title)}</summary>${warnings[place]}${parts.join('\n')}</details>`
  })
  return reportFile(
    {
      title: `${areOfRates(runs) ? 'Rates' : 'Settings'} compared`,
      subtitle: `${figures.count(results.length)} runs, ${[...new Set(results.flatMap(({ traffic }) => traffic.files))].join(', ')}`,
      content: [
        warnings.find(warning => warning !== '') ?? '',
        section('overview', 'Hits and their cost', overviewOf(runs, best, figures)),
        section('over-time', 'Over time', charts('all', 'hits', 'weight', 'percentiles', 'age')),
        ...whole,
      ].join('\n'),
    },
    {
      runs: results.map((run, i) => drawnRun(run, runs[i]?.title ?? '')),
      points: runs.flatMap((run, i) => {
        const { provider, age } = run
        const hits = shareOf(run, 'hit')
        if (hits === null || provider === null) return []
        const { weight } = provider
        return { name: String(i + 1), weight, hits, age: age?.p95 ?? null, isBest: best.has(i) }
      }),
    },
    figures.timeZone,
  )
}

/** Whether the runs differ by rate. */
const areOfRates = (runs: readonly ReplayResult[]): boolean =>
  new Set(runs.map(({ pace }) => pace.rate)).size > 1

const namedRuns = (runs: readonly ReplayResult[], figures: Figures): NamedRun[] => {
  const { paths, names } = differingSettings(
    runs.map(({ settings }) => Object.fromEntries((settings ?? []).map(({ path, value }) => [path, value]))),
  )
  // A run without the setting has the default that other runs name.
  const usual = runs.flatMap(({ settings }) => settings ?? []).find(({ path }) => path === paths[0])?.default
  const standard = paths.length === 1 && usual !== undefined ? `${usual} (default)` : 'default'
  return runs.map((run, i) => ({
    ...run,
    title: `${i + 1}. ${areOfRates(runs) ? paceText(run, figures) : names[i] || (run.settings === null ? 'not known' : standard)}`,
  }))
}

/** The Pareto-optimal runs by hits and weight; none where one of the two is unknown. */
const bestOf = (runs: readonly ReplayResult[]): ReadonlySet<number> => {
  const known = runs.flatMap(run => {
    if (weathersOf(run) === 0 || run.provider === null) return []
    // Failures count, because a setting that often fails is not good.
    const hits = (run.outcomes.hit ?? 0) / (weathersOf(run) + errorsOf(run))
    return [[hits, -run.provider.weight]]
  })
  return known.length === runs.length ? paretoOptimal(known) : new Set()
}

const overviewOf = (runs: readonly NamedRun[], best: ReadonlySet<number>, figures: Figures): Html => {
  const isOneTraffic = new Set(runs.map(({ traffic }) => traffic.sha256)).size === 1
  const warning = notice(
    'warn',
    '<b>The runs replayed different traffic</b>Their hashes differ, so their figures can’t be compared.',
  )
  const hasVerdicts = runs.some(run => run.generator.saturated || run.thresholds.length > 0)
  const hasUnanswered = runs.some(({ totals }) => totals.dropped > 0 || failedIn(totals) > 0)
  const columns: readonly SettingColumn<NamedRun>[] = [
    ['Answered', ({ totals }) => `${figures.measured(answeredRate(totals))}/s`, areOfRates(runs)],
    ['Hit share', run => figures.share(shareOf(run, 'hit'))],
    ['Stale', run => figures.share(shareOf(run, 'stale'))],
    ['Provider weight', ({ provider }) => figures.count(provider?.weight)],
    ['Provider requests', ({ provider }) => figures.count(provider?.requests)],
    ['Age, median', ({ age }) => figures.duration(age?.p50)],
    ['Age, p95', ({ age }) => figures.duration(age?.p95)],
    ['Age, oldest', ({ age }) => figures.duration(age?.max)],
    ['p99', ({ latency }) => latencyText(latency.p99, figures)],
    ['Unanswered', ({ totals }) => figures.count(failedIn(totals)), hasUnanswered],
    ['Dropped', ({ totals }) => figures.count(totals.dropped), hasUnanswered],
    ['Verdict', verdictCell, hasVerdicts],
  ]
  const note =
    best.size === 0
      ? ''
      : '<p class="note">★ marks the best settings: no other setting has as many hits for less weight.</p>'
  return [
    isOneTraffic ? '' : warning,
    settingsTable('Hits and their cost', columns, runs, best),
    note,
    charts('all', 'hitsOverWeight', 'ageOverWeight'),
  ].join('')
}

const verdictCell = (run: NamedRun): Html => {
  if (run.generator.saturated) return badge('bad', 'saturated')
  if (run.thresholds.length === 0) return '–'
  const isGood = thresholdsFailed(run) === 0
  return badge(isGood ? 'good' : 'bad', isGood ? 'passed' : 'failed')
}
