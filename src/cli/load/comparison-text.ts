// A comparison as text: doubts first, then each figure of both sides with its verdict, limits, bodies.

import { type Comparison, metricText, warningSentences } from '../../load/report/compare-page.ts'
import { compareWords } from '../../load/report/compare-words.ts'
import type { Difference } from '../../load/report/comparison.ts'
import type { Unit } from '../../load/report/metrics.ts'
import { figuresIn } from '../../load/report/page-frame.ts'
import { sayIn } from '../../page/words.ts'
import { counted, indented, tableOf } from '../terminal.ts'

const say = sayIn(compareWords, 'en')

/** @param files those of each side */
export const comparisonText = (
  { warnings, differences, limits, bodies }: Comparison,
  files: { readonly a: readonly string[]; readonly b: readonly string[] },
): string => {
  const figures = figuresIn('en', 'UTC')
  const texts: Readonly<Record<Unit, (value: number) => string>> = {
    ms: value => figures.latency(value / 1000),
    share: value => figures.share(value),
    perSecond: value => say('perSecond', figures.measured(value)),
    count: value => figures.count(value),
    seconds: value => figures.duration(value),
    bytes: value => figures.bytes(value),
  }
  const percent = (value: number): string => `${value > 0 ? '+' : ''}${(value * 100).toFixed(1)}%`
  const changeText = ({ change }: Difference): string => {
    if (change === null) return '-'
    const { value, low, high } = change
    return `${percent(value)}${low === null || high === null ? '' : ` (${percent(low)} to ${percent(high)})`}`
  }
  const rows = differences.map(difference => [
    metricText(difference.metric, say),
    texts[difference.unit](difference.a.value),
    texts[difference.unit](difference.b.value),
    changeText(difference),
    difference.verdict,
  ])
  return [
    `A: ${files.a.join(', ')}`,
    `B: ${files.b.join(', ')}`,
    ...(warnings.length === 0
      ? []
      : ['', `${say('hard')}:`, ...warningSentences(warnings, say).map(indented)]),
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
              say(verdict),
            ]),
            [1],
          ),
          ...(limits.some(({ verdict }) => verdict === 'undecided')
            ? [
                '',
                say(
                  'limitsUndecided',
                  counted(limits.filter(({ verdict }) => verdict === 'undecided').length),
                  counted(limits.length),
                ),
              ]
            : []),
        ]),
    ...(bodies === null ? [] : ['', bodiesText(bodies)]),
  ].join('\n')
}

const bodiesText = (bodies: NonNullable<Comparison['bodies']>): string => {
  const { paths, same, different, missingInA, missingInB, examples } = bodies
  if (same === paths) return say('bodiesSame', counted(paths))
  const answers = (texts: readonly string[]): string => (texts.length === 0 ? 'no answer' : texts.join(', '))
  return [
    say('bodiesDiffer', ...[paths, same, different, missingInB, missingInA].map(counted)),
    ...examples.flatMap(({ path, a, b }) => [`  ${path}`, `    A: ${answers(a)}`, `    B: ${answers(b)}`]),
  ].join('\n')
}
