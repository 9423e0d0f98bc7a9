// The head of a report on one run: what makes its figures void, the verdict of each threshold, and the figures that readers
// want first.

import { badge, code, escaped, type Html, notice, table, tiles } from '../../page/html.ts'
import type { ReplayResult } from './result.ts'
import type { Writing } from './result-charts.ts'
import { errorsOf, hitShareOf } from './run-figures.ts'

/** Paragraphs on what must not be missed: a saturated generator, a run that was stopped. */
export const warningsOf = (run: ReplayResult, { say, figures }: Writing): Html => {
  const { saturated, reason } = run.generator
  const banner = notice(
    'bad',
    `<b>${escaped(say('saturated'))}</b>${escaped(say('saturatedBecause', reason?.replace(/\.$/, '') ?? '–'))} ${escaped(say('saturatedHint'))}`,
  ).replace('class="notice', 'class="notice loud')
  const stopped = notice(
    'warn',
    `<b>${escaped(say('interrupted'))}</b>${escaped(say('interruptedHint', figures.count(run.totals.due)))}`,
  )
  return (saturated ? banner : '') + (run.interrupted ? stopped : '')
}

export const thresholdsFailed = ({ thresholds }: ReplayResult): number =>
  thresholds.filter(({ passed }) => !passed).length

/** The thresholds, the verdict on all of them first. */
export const thresholdsOf = ({ thresholds, ...run }: ReplayResult, { say, figures }: Writing): Html => {
  if (thresholds.length === 0) return `<p>${escaped(say('noThresholds'))}</p>`
  const failed = thresholdsFailed({ thresholds, ...run })
  const all = figures.count(thresholds.length)
  const verdict =
    failed === 0
      ? notice('good', `<b>${escaped(say('allPassed', all))}</b>`)
      : notice('bad', `<b>${escaped(say('someFailed', figures.count(failed), all))}</b>`)
  return `${verdict}${table(
    say('verdict'),
    [{ head: say('threshold') }, { head: say('measured'), isNumber: true }, { head: say('result') }],
    thresholds.map(({ threshold, measured, passed }) => [
      code(threshold),
      `<span lang="en">${escaped(measured)}</span>`,
      badge(passed ? 'good' : 'bad', say(passed ? 'passed' : 'failed')),
    ]),
  )}`
}

export const tilesOf = (run: ReplayResult, { say, figures }: Writing): Html => {
  const { totals, latency, provider } = run
  const seconds = Math.max(totals.seconds, 1e-9)
  const errors = errorsOf(run)
  const perSecond = (count: number): string => say('perSecond', figures.measured(count / seconds))
  return tiles([
    {
      name: say('rate'),
      value: perSecond(totals.answered),
      note: say('rateOfAsked', perSecond(totals.due)),
    },
    { name: say('answered'), value: figures.count(totals.answered) },
    {
      name: say('errors'),
      value: figures.share(errors / Math.max(1, totals.due)),
      note: say('errorsNote', figures.count(errors)),
    },
    { name: 'p50', value: figures.latency(latency.p50 / 1000) },
    {
      name: 'p99',
      value: figures.latency(latency.p99 / 1000),
      note: say('worst', figures.latency(latency.max / 1000)),
    },
    { name: say('hitShare'), value: figures.share(hitShareOf(run)), note: say('hitShareNote') },
    ...(provider === null
      ? []
      : [
          {
            name: say('weight'),
            value: figures.count(provider.weight),
            note: say('weightNote', figures.count(provider.requests)),
          },
        ]),
  ])
}
