// The report on one or several runs. One run: verdict first, then everything that was measured. Several: a row for each setting,
// hits over what they cost, the settings that no other beats, and then each run whole, folded.

import type { Figures } from '../../common/page/figures.js'
import {
  badge,
  type Column,
  escaped,
  type Html,
  notice,
  part,
  section,
  table,
} from '../../common/page/html.ts'
import { charts, drawnRun, figuresIn, reportFile } from './page.ts'
import type { ReplayResult } from './result.ts'
import {
  differingSettings,
  errorsOf,
  failedIn,
  hitShareOf,
  paretoOptimal,
  shareOf,
  weathersOf,
} from './run-figures.ts'
import { number, sectionsOf, thresholdsFailed, warningsOf } from './run-sections.ts'

/**
 * The text of the file.
 * @param results one or more, in the order of the page
 * @param timeZone of its times of day
 */
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

type NamedRun = { readonly run: ReplayResult; readonly name: string }

const pageOfSeveral = (results: readonly ReplayResult[], figures: Figures): string => {
  const runs = namedRuns(results)
  const best = bestOf(runs)
  const whole = runs.map(({ run, name }, place) => {
    const parts = sectionsOf(run, place, figures).map(([, title, content]) => part(title, content))
    return `<details class="whole"><summary>The whole run: ${escaped(name)}</summary>${warningsOf(run, figures)}${parts.join('\n')}</details>`
  })
  return reportFile(
    {
      title: 'Settings beside each other',
      subtitle: `${figures.count(results.length)} runs, ${[...new Set(results.flatMap(({ traffic }) => traffic.files))].join(', ')}`,
      content: [
        results.map(run => warningsOf(run, figures)).find(warning => warning !== '') ?? '',
        section('overview', 'Hits and their cost', overviewOf(runs, best, figures)),
        section('over-time', 'Over time', charts('all', 'hits', 'weight', 'percentiles', 'age')),
        ...whole,
      ].join('\n'),
    },
    {
      runs: runs.map(({ run, name }) => drawnRun(run, name)),
      points: runs.flatMap(({ run }, i) => {
        const hits = hitShareOf(run)
        return hits === null || run.provider === null
          ? []
          : [
              {
                name: String(i + 1),
                weight: run.provider.weight,
                hits,
                age: run.age?.p95 ?? null,
                isBest: best.has(i),
              },
            ]
      }),
    },
    figures.timeZone,
  )
}

/** Each run with its number and the settings in which it differs from another one, such as `2. 3h`. */
const namedRuns = (runs: readonly ReplayResult[]): NamedRun[] => {
  const { paths, names } = differingSettings(
    runs.map(({ settings }) => Object.fromEntries((settings ?? []).map(({ path, value }) => [path, value]))),
  )
  // The default that the other runs name is the value of one without a value.
  const usual = runs.flatMap(({ settings }) => settings ?? []).find(({ path }) => path === paths[0])?.default
  const standard = paths.length === 1 && usual !== undefined ? `${usual} (default)` : 'default'
  return runs.map((run, i) => ({
    run,
    name: `${i + 1}. ${names[i] || (run.settings === null ? 'not known' : standard)}`,
  }))
}

/** The places of the runs that no other beats in hits and weight; none where one of the two is not known. */
const bestOf = (runs: readonly NamedRun[]): ReadonlySet<number> => {
  const known = runs.flatMap(({ run }) => {
    if (hitShareOf(run) === null || run.provider === null) return []
    // Of failures too: a setting that has no weather for many requests is not good for the rest of them.
    const hits = (run.outcomes.hit ?? 0) / (weathersOf(run) + errorsOf(run))
    return [[hits, -run.provider.weight]]
  })
  return known.length === runs.length ? paretoOptimal(known) : new Set()
}

const overviewOf = (runs: readonly NamedRun[], best: ReadonlySet<number>, figures: Figures): Html => {
  const warning =
    new Set(runs.map(({ run }) => run.traffic.sha256)).size === 1
      ? ''
      : notice(
          'warn',
          '<b>The runs are not of the same traffic</b>Their hashes differ, so their figures can’t be compared.',
        )
  const hasVerdicts = runs.some(({ run }) => run.generator.saturated || run.thresholds.length > 0)
  const hasUnanswered = runs.some(({ run: { totals } }) => totals.dropped > 0 || failedIn(totals) > 0)
  const rows = runs.map(({ run, name }, i) => [
    `${escaped(name)}${best.has(i) ? ' ★' : ''}`,
    figures.share(hitShareOf(run)),
    figures.share(shareOf(run, 'stale')),
    figures.count(run.provider?.weight),
    figures.count(run.provider?.requests),
    figures.duration(run.age?.p50),
    figures.duration(run.age?.p95),
    figures.duration(run.age?.max),
    figures.latency(run.latency.p99 / 1000),
    ...(hasUnanswered ? [figures.count(failedIn(run.totals)), figures.count(run.totals.dropped)] : []),
    ...(hasVerdicts ? [verdictCell(run)] : []),
  ])
  const columns: Column[] = [
    { head: 'Setting' },
    ...['Hit share', 'Stale', 'Provider weight', 'Provider requests'].map(number),
    ...['Age, median', 'Age, p95', 'Age, oldest', 'p99'].map(number),
    ...(hasUnanswered ? ['Not answered', 'Dropped'].map(number) : []),
    ...(hasVerdicts ? [{ head: 'Verdict' }] : []),
  ]
  const note =
    best.size === 0
      ? ''
      : '<p class="note">No other setting beats those marked ★: none has as many hits for less weight.</p>'
  return `${warning}${table('Hits and their cost', columns, rows, best)}${note}${charts('all', 'hitsOverWeight', 'ageOverWeight')}`
}

const verdictCell = (run: ReplayResult): Html => {
  if (run.generator.saturated) return badge('bad', 'saturated')
  if (run.thresholds.length === 0) return '–'
  const isGood = thresholdsFailed(run) === 0
  return badge(isGood ? 'good' : 'bad', isGood ? 'passed' : 'failed')
}
