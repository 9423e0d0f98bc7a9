// The table of `abohawa whatif`: a row for each setting, and remarks on them.

import { createFigures } from '../../common/page/figures.js'
import { printDuration } from '../../config/units.ts'
import { planText } from '../../load/report/plans.ts'
import { leftOutText } from '../../load/traffic/recorded-admission.ts'
import { servedShare } from '../../load/what-if/tally.ts'
import { caseNameText, paretoNote, remarksOn, type WhatIfResult } from '../../load/what-if/what-if.ts'
import { counted, factsText, percentText, tableOf } from '../terminal.ts'

const { duration: ageText } = createFigures('en', 'UTC')

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`

export const whatIfText = (result: WhatIfResult): string => {
  const { traffic, cases, instances, warmUpSeconds, warm, base } = result
  const reasons = leftOutText(traffic.leftOut, counted)
  const [first] = cases
  const isFailing = cases.some(({ failed }) => failed > 0)
  const headings = [
    'setting',
    '',
    'hits',
    ...(instances > 1 ? ['memory', 'shared'] : []),
    'stale',
    'misses',
    ...(isFailing ? ['failed'] : []),
    'weight',
    'a day',
    'most/min',
    'plan',
    'stretch',
    'age p50',
    'p95',
    'max',
    'memory',
  ]
  const rows = cases.map(each => {
    const { weather, hits, provider, stretch, age, memory } = each
    const share = (of: number): string => percentText(servedShare(of, each))
    return [
      caseNameText(each),
      each.paretoOptimal && cases.length > 1 ? '*' : '',
      percentText(each.hitShare),
      ...(instances > 1 ? [share(hits.memory), share(hits.shared)] : []),
      share(each.stale),
      share(each.misses),
      ...(isFailing ? [percentText(weather === 0 ? 0 : each.failed / weather)] : []),
      counted(Math.round(provider.weight)),
      counted(Math.round(provider.most.day)),
      counted(Math.round(provider.most.minute)),
      planText(each.plans),
      stretch.most > 1 ? `${stretch.most.toFixed(1)}x, ${percentText(stretch.share)} of the time` : '-',
      ageText(age.p50),
      ageText(age.p95),
      ageText(age.max),
      mebibytes(memory.mostBytes),
    ]
  })
  const words = new Set([0, 1, headings.indexOf('plan'), headings.indexOf('stretch')])
  const numbers = headings.flatMap((_, i) => (words.has(i) ? [] : [i]))
  const remarks = [...(cases.length > 1 ? [`* ${paretoNote}`] : []), ...remarksOn(result)]
  return [
    factsText([
      [
        'traffic',
        `${counted(traffic.requests)} requests in ${printDuration(Math.round(traffic.spanSeconds / 60) * 60_000)}`,
      ],
      [
        '',
        `of ${traffic.files.join(', ')}${traffic.faultyLines > 0 ? `, ${counted(traffic.faultyLines)} faulty lines left out` : ''}`,
      ],
      ['left out', reasons],
      [
        'no weather',
        first && first.none > 0
          ? `${counted(first.none)} of ${counted(first.requests)} counted requests: ${reasons === undefined ? '' : 'those left out, '}other endpoints, places and parameters that are refused`
          : undefined,
      ],
      ['instances', String(instances)],
      [
        'start',
        [
          warm ? 'after all of it once' : 'cold',
          ...(warmUpSeconds > 0 ? [`counted after ${printDuration(warmUpSeconds * 1000)}`] : []),
        ].join(', '),
      ],
      ...base.map(({ path, value, default: usual }): [string, string] => [
        path,
        `${value} (default ${usual})`,
      ]),
    ]),
    '',
    tableOf(headings, rows, numbers),
    ...(remarks.length > 0 ? ['', ...remarks] : []),
  ].join('\n')
}
