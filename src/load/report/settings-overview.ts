// Several runs of the same traffic beside each other: a row for each setting, hits over what they cost, the settings that no
// other beats, and their charts over each other.

import { badge, type Column, escaped, type Html, notice, table } from '../../page/html.ts'
import { paretoOptimal } from './pareto.ts'
import type { ReplayResult } from './result.ts'
import { chartsOf, type NamedRun, type Writing } from './result-charts.ts'
import { errorsOf, hitShareOf, shareOf, weathersOf } from './run-figures.ts'
import { rangeScale } from './scale.ts'
import { scatterChart } from './scatter-chart.ts'
import { thresholdsFailed } from './verdict.ts'

export type SettingRun = Required<NamedRun>

/** Each run with the settings in which it differs from another one, such as `cache.freshFor=3h`. */
export const namedRuns = (runs: readonly ReplayResult[], { say, figures }: Writing): SettingRun[] => {
  const settingOf = (run: ReplayResult, path: string): string | undefined =>
    run.settings?.find(setting => setting.path === path)?.value
  const paths = [...new Set(runs.flatMap(({ settings }) => settings?.map(({ path }) => path) ?? []))].filter(
    path => new Set(runs.map(run => settingOf(run, path))).size > 1,
  )
  const names = runs.map(run => {
    const own = paths.flatMap(path => {
      const value = settingOf(run, path)
      return value === undefined ? [] : [`${paths.length === 1 ? '' : `${lastPart(path)}=`}${value}`]
    })
    if (own.length > 0) return own.join(', ')
    if (run.settings === null) return ''
    // The default that the other runs name is the value of this one.
    const usual = runs
      .flatMap(({ settings }) => settings ?? [])
      .find(({ path }) => path === paths[0])?.default
    return paths.length === 1 && usual !== undefined ? `${usual} (${say('allDefault')})` : say('allDefault')
  })
  const isClear = (name: string): boolean => name !== '' && names.filter(other => other === name).length === 1
  return runs.map((run, i) => {
    const name = names[i] ?? ''
    const number = say('run', figures.count(i + 1))
    return { run, name: isClear(name) ? name : name === '' ? number : `${name} (${number})` }
  })
}

const lastPart = (path: string): string => path.split('.').at(-1) ?? path

/** The places of the runs that no other beats in hits and weight; none where one of the two is not known. */
const bestOf = (runs: readonly SettingRun[]): ReadonlySet<number> => {
  const known = runs.flatMap(({ run }) => {
    if (hitShareOf(run) === null || run.provider === null) return []
    // Of failures too: a setting that has no weather for many requests is not good for the rest of them.
    const hits = (run.outcomes.hit ?? 0) / (weathersOf(run) + errorsOf(run))
    return [[hits, -run.provider.weight]]
  })
  return known.length === runs.length ? paretoOptimal(known) : new Set()
}

// As many as there are line styles.
const maxLines = 8

export const overviewOf = (runs: readonly SettingRun[], writing: Writing): Html => {
  const { say, figures } = writing
  const best = bestOf(runs)
  const number = (head: string): Column => ({ head, isNumber: true })
  const latency = (ms: number): Html => escaped(figures.latency(ms / 1000))
  const hashes = new Set(runs.map(({ run }) => run.traffic.sha256))
  const warning =
    hashes.size === 1
      ? ''
      : notice('warn', `<b>${escaped(say('otherTraffic'))}</b>${escaped(say('otherTrafficHint'))}`)
  const hasVerdicts = runs.some(({ run }) => run.generator.saturated || run.thresholds.length > 0)
  const hasUnanswered = runs.some(({ run: { totals } }) => totals.dropped > 0 || failedIn(totals) > 0)
  const rows = runs.map(({ run, name }, i) => [
    `${escaped(name)}${best.has(i) ? ' ★' : ''}`,
    escaped(figures.share(hitShareOf(run))),
    escaped(figures.share(shareOf(run, 'stale'))),
    escaped(figures.count(run.provider?.weight)),
    escaped(figures.count(run.provider?.requests)),
    escaped(figures.duration(run.age?.p50)),
    escaped(figures.duration(run.age?.p95)),
    escaped(figures.duration(run.age?.max)),
    latency(run.latency.p99),
    ...(hasUnanswered
      ? [escaped(figures.count(failedIn(run.totals))), escaped(figures.count(run.totals.dropped))]
      : []),
    ...(hasVerdicts ? [verdictHtml(run, writing)] : []),
  ])
  const columns: Column[] = [
    { head: say('setting') },
    number(say('overviewHits')),
    number(say('staleShare')),
    number(say('overviewWeight')),
    number(say('providerRequests')),
    number(say('age50')),
    number(say('age95')),
    number(say('ageOldest')),
    number('p99'),
    ...(hasUnanswered ? [number(say('overviewFailed')), number(say('dropped'))] : []),
    ...(hasVerdicts ? [{ head: say('verdict') }] : []),
  ]
  const points = runs.flatMap(({ run, name }, i) => {
    const hits = hitShareOf(run)
    return hits === null || run.provider === null
      ? []
      : [{ name, x: run.provider.weight, y: hits, isBest: best.has(i) }]
  })
  const scatter =
    points.length < 2
      ? ''
      : scatterChart({
          title: say('overview'),
          x: {
            label: say('overviewWeight'),
            scale: rangeScale(
              points.map(({ x }) => x),
              figures.count,
            ),
            write: figures.count,
          },
          y: {
            label: say('overviewHits'),
            scale: rangeScale(
              points.map(({ y }) => y),
              figures.share,
            ),
            write: figures.share,
          },
          points,
          nameLabel: say('setting'),
          tableTitle: say('values'),
        })
  const note = best.size === 0 ? '' : `<p class="note">${escaped(say('overviewNote'))}</p>`
  return `${warning}${table(say('overview'), columns, rows, best)}${note}${scatter}`
}

const failedIn = ({ failed }: ReplayResult['totals']): number =>
  Object.values(failed).reduce((sum, count) => sum + count, 0)

const verdictHtml = (run: ReplayResult, { say }: Writing): Html => {
  if (run.generator.saturated) return badge('bad', say('generatorBusy'))
  if (run.thresholds.length === 0) return '–'
  const isGood = thresholdsFailed(run) === 0
  return badge(isGood ? 'good' : 'bad', say(isGood ? 'passed' : 'failed'))
}

/** The charts of the runs over each other. */
export const overlaysOf = (runs: readonly SettingRun[], writing: Writing): Html => {
  const charts = chartsOf(runs.slice(0, maxLines), writing, 144)
  return `<div class="pair">${charts.hits()}${charts.weight()}${charts.percentiles()}${charts.age()}</div>`
}
