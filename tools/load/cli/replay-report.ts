// `abohawa replay report`: the JSON results of runs as text and as a page; two files are compared.

import { collect } from 'abohawa/command-line/quantities.ts'
import { indented, tableOf } from 'abohawa/command-line/tables.ts'
import { type AddCommand, zoneOf } from 'abohawa/command-line/terminal.ts'
import { asUsage, UsageError } from 'abohawa/command-line/usage-error.ts'
import { forceOption, outputsOf, writeOutput } from 'abohawa/command-line/writable.ts'
import type { Command } from 'commander'
import { warningSentences } from '../report/comparability.ts'
import { type Comparison, hasVerdicts, noVerdictSentence, undecidedSentence } from '../report/compare-page.ts'
import { changeText, metrics, valueText } from '../report/metrics.ts'
import { figuresIn } from '../report/report-file.ts'
import type { ReplayResult } from '../report/result.ts'
import { prepareOutput, thresholdFailed } from './replay-output.ts'
import { resultText } from './replay-text.ts'

type Options = { out?: string; failIf?: string[]; force?: boolean }

const notDecided = 1

/** @param replay the command that it belongs to */
export const addReportCommand = (replay: Command, add: AddCommand): void => {
  add<Options>(replay, 'report', {
    summary: 'report one result or compare two, as text or as a page',
    example: "replay report before.json after.json --fail-if 'p99>+10%' --out comparison.html",
    setUp: command =>
      command
        .argument('<file>', 'JSON result of replay --out or rehearse --out, or a list of results')
        .argument('[other]', 'result to compare with; the runs of a list are one side')
        .option(
          '--fail-if <limit>',
          'exit with code 99 on this change, such as p99>+10% (repeatable)',
          collect,
        )
        .option('--out <file>', 'write a self-contained HTML page')
        .addOption(forceOption()),
    run: async (terminal, { out, failIf = [], force = false }, ...files) => {
      const [file = '', other] = files
      if (other === undefined && failIf.length > 0)
        throw new UsageError('--fail-if requires two result files')
      const [page] = outputsOf('--out', out)
      const write = await prepareOutput(terminal, {
        paths: out === undefined ? [] : [out],
        forms: ['.html'],
        inputs: files,
        force,
      })
      // Imported here, so that the other commands start without it.
      const { changeLimitOf, differences, limitVerdicts } = await import('../report/comparison.ts')
      const limits = failIf.map(text => asUsage(() => changeLimitOf(text)))
      const { readResults } = await import('../report/read-results.ts')
      const a = await readResults(file)
      if (other === undefined) {
        await write(a)
        terminal.show({ file, results: a.length, out: out ?? null }, a.map(resultText).join('\n\n'))
        return 0
      }
      const b = await readResults(other)
      const { warningsOf } = await import('../report/comparability.ts')
      const found = differences(a, b)
      const rest = {
        warnings: warningsOf(a, b),
        differences: found,
        limits: limitVerdicts(limits, found),
      }
      const comparison = { a, b, ...rest }
      if (page) {
        const { comparePage } = await import('../report/compare-page.ts')
        await writeOutput(page, comparePage(comparison, zoneOf(terminal)), force)
      }
      terminal.show(
        { a: file, b: other, runs: { a: a.length, b: b.length }, ...rest, out: out ?? null },
        comparisonText(comparison, [file, other]),
      )
      if (rest.limits.some(({ verdict }) => verdict === 'failed')) return thresholdFailed
      return rest.limits.some(({ verdict }) => verdict === 'undecided') ? notDecided : 0
    },
  })
}

const comparisonText = (
  { a, b, warnings, differences, limits }: Comparison,
  [fileA, fileB]: readonly [string, string],
): string => {
  const figures = figuresIn('UTC')
  const percent = (value: number): string =>
    changeText(value, share => `${share > 0 ? '+' : ''}${(share * 100).toFixed(1)}%`)
  const rows = differences.map(({ metric, unit, change, verdict, ...sides }) => [
    metrics[metric].name,
    valueText(sides.a.value, unit, figures),
    valueText(sides.b.value, unit, figures),
    change === null ? '-' : percent(change),
    verdict ?? '-',
  ])
  const undecided = limits.filter(({ verdict }) => verdict === 'undecided').length
  const limitRows = limits.map(({ limit, change, verdict }) => [
    limit,
    change === null ? 'unknown' : percent(change),
    verdict === 'undecided' ? 'not decided' : verdict,
  ])
  const runs = (side: readonly ReplayResult[]): string => (side.length > 1 ? `, ${side.length} runs` : '')
  return [
    `A: ${fileA}${runs(a)}\nB: ${fileB}${runs(b)}`,
    warnings.length === 0
      ? ''
      : ['Compare with care:', ...warningSentences(warnings).map(indented)].join('\n'),
    tableOf(['metric', 'A', 'B', 'change of B', 'verdict'], rows, [1, 2, 3]),
    hasVerdicts(differences) ? '' : noVerdictSentence,
    limits.length === 0 ? '' : tableOf(['limit', 'change of B', 'verdict'], limitRows, [1]),
    undecided > 0 ? undecidedSentence(undecided, limits.length) : '',
  ]
    .filter(part => part !== '')
    .join('\n\n')
}
