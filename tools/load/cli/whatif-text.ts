// The table of `abohawa whatif`: a row for each setting, and remarks on them.

import { factsText, tableOf } from 'abohawa/command-line/tables.ts'
import { counted, percentText } from 'abohawa/command-line/terminal.ts'
import { createFigures } from 'abohawa/common/page/figures.js'
import { printDuration } from 'abohawa/config/units.ts'
import { planText } from '../report/plans.ts'
import { leftOutText } from '../traffic/recorded-admission.ts'
import { servedShare } from '../what-if/tally.ts'
import {
  type CaseResult,
  caseNameText,
  paretoNote,
  remarksOn,
  type WhatIfResult,
} from '../what-if/what-if.ts'

const { duration: ageText } = createFigures('en', 'UTC')

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`

const stretchText = ({ most, share }: CaseResult['stretch']): string =>
  most > 1 ? `${most.toFixed(1)}x, ${percentText(share)} of the time` : '-'

export const whatIfText = (result: WhatIfResult): string => {
  const { traffic, cases, instances, warmUpSeconds, warm, base } = result
  const reasons = leftOutText(traffic.leftOut, counted)
  const [first] = cases
  const isFailing = cases.some(({ failed }) => failed > 0)
  const share = (of: (each: CaseResult) => number) => (each: CaseResult) =>
    percentText(servedShare(of(each), each))
  const all: readonly (readonly [heading: string, cell: (each: CaseResult) => string, isShown?: boolean])[] =
    [
      ['setting', caseNameText],
      ['', each => (each.paretoOptimal && cases.length > 1 ? '*' : '')],
      ['hits', each => percentText(each.hitShare)],
      ['memory', share(({ hits }) => hits.memory), instances > 1],
      ['shared', share(({ hits }) => hits.shared), instances > 1],
      ['stale', share(({ stale }) => stale)],
      ['misses', share(({ misses }) => misses)],
      ['failed', ({ weather, failed }) => percentText(weather === 0 ? 0 : failed / weather), isFailing],
      ['weight', ({ provider }) => counted(Math.round(provider.weight))],
      ['a day', ({ provider }) => counted(Math.round(provider.most.day))],
      ['most/min', ({ provider }) => counted(Math.round(provider.most.minute))],
      ['plan', ({ plans }) => planText(plans)],
      ['stretch', ({ stretch }) => stretchText(stretch)],
      ['age p50', ({ age }) => ageText(age.p50)],
      ['p95', ({ age }) => ageText(age.p95)],
      ['max', ({ age }) => ageText(age.max)],
      ['memory', ({ memory }) => mebibytes(memory.mostBytes)],
    ]
  const columns = all.filter(([, , isShown = true]) => isShown)
  const headings = columns.map(([heading]) => heading)
  const rows = cases.map(each => columns.map(([, cell]) => cell(each)))
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
