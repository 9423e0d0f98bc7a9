// A comparison as text: doubts first, then each figure of both sides with its verdict, limits, bodies.

import { warningSentences } from '../../load/report/comparability.ts'
import { bodiesSentence } from '../../load/report/compare-bodies.ts'
import { type Comparison, undecidedSentence } from '../../load/report/compare-page.ts'
import type { Difference } from '../../load/report/comparison.ts'
import { metrics, valueText } from '../../load/report/metrics.ts'
import { figuresIn } from '../../load/report/page.ts'
import { indented, tableOf } from '../terminal.ts'

/** @param files those of each side */
export const comparisonText = (
  { warnings, differences, limits, bodies }: Comparison,
  files: { readonly a: readonly string[]; readonly b: readonly string[] },
): string => {
  const figures = figuresIn('UTC')
  const percent = (value: number): string => `${value > 0 ? '+' : ''}${(value * 100).toFixed(1)}%`
  const changeText = ({ change }: Difference): string => {
    if (change === null) return '-'
    const { value, low, high } = change
    return `${percent(value)}${low === null || high === null ? '' : ` (${percent(low)} to ${percent(high)})`}`
  }
  const rows = differences.map(difference => [
    metrics[difference.metric].name,
    valueText(difference.a.value, difference.unit, figures),
    valueText(difference.b.value, difference.unit, figures),
    changeText(difference),
    difference.verdict,
  ])
  const undecided = limits.filter(({ verdict }) => verdict === 'undecided').length
  return [
    `A: ${files.a.join(', ')}`,
    `B: ${files.b.join(', ')}`,
    ...(warnings.length === 0 ? [] : ['', 'Compare with care:', ...warningSentences(warnings).map(indented)]),
    '',
    tableOf(['figure', 'A', 'B', 'change of B', 'verdict'], rows, [1, 2, 3]),
    ...(limits.length === 0
      ? []
      : [
          '',
          tableOf(
            ['limit', 'change of B', 'verdict'],
            limits.map(({ limit, change, verdict }) => [
              limit,
              change === null ? 'not known' : percent(change),
              verdict === 'undecided' ? 'not decided' : verdict,
            ]),
            [1],
          ),
          ...(undecided > 0 ? ['', undecidedSentence(undecided, limits.length)] : []),
        ]),
    ...(bodies === null ? [] : ['', bodiesText(bodies)]),
  ].join('\n')
}

const bodiesText = (bodies: NonNullable<Comparison['bodies']>): string => {
  const answers = (texts: readonly string[]): string => (texts.length === 0 ? 'no answer' : texts.join(', '))
  return [
    bodiesSentence(bodies),
    ...(bodies.same === bodies.paths ? [] : bodies.examples).flatMap(({ path, a, b }) => [
      `  ${path}`,
      `    A: ${answers(a)}`,
      `    B: ${answers(b)}`,
    ]),
  ].join('\n')
}
