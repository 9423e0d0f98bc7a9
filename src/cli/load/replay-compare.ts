// `abohawa replay compare` and `abohawa replay report`: what the JSON files of runs say, beside each other and as a page. The
// runs themselves are made by `replay` and `rehearse`.

import type { Command } from 'commander'
import { InputError, messageOf } from '../../errors.ts'
import { quotedPath } from '../../outside-text.ts'
import { writeReport } from '../../regular-file.ts'
import { collect } from '../quantities.ts'
import { type AddCommand, zoneOf } from '../terminal.ts'
import { asUsage, UsageError } from '../usage-error.ts'
import { checkWritable } from '../writable.ts'

type CompareOptions = {
  a?: string[]
  b?: string[]
  out?: string
  failIf?: string[]
  checkBodies?: string[]
}

const thresholdFailed = 99
const notDecided = 1

/** @param replay the command that it belongs to */
export const addCompareCommand = (replay: Command, add: AddCommand): void => {
  add<CompareOptions>(replay, 'compare', {
    summary: 'compare the results of two runs: which differences are real and which are noise',
    example: "replay compare before.json after.json --fail-if 'p99>+10%' --out comparison.html",
    setUp: command =>
      command
        .argument('<a-file>', 'the result to compare with, in JSON')
        .argument('<b-file>', 'the result to compare, in JSON')
        .option('--a <file>', 'a further run of the first side; may be given again', collect)
        .option('--b <file>', 'a further run of the second side; may be given again', collect)
        .option(
          '--fail-if <limit>',
          'a change that ends the command with exit code 99, such as p99>+10%; may be given again',
          collect,
        )
        .option('--check-bodies <files...>', 'also compare the digests of bodies: the files of both sides')
        .option('--out <file>', 'write the comparison as a page that loads nothing else'),
    run: async (terminal, { a = [], b = [], out, failIf = [], checkBodies }, fileA = '', fileB = '') => {
      if (checkBodies && checkBodies.length !== 2)
        throw new UsageError(
          `--check-bodies has ${checkBodies.length} ${checkBodies.length === 1 ? 'file' : 'files'}; allowed: two, after the results`,
        )
      await checkPage(out)
      // Imported here, so that the other commands start without it.
      const { changeLimitOf, limitVerdicts } = await import('../../load/report/change-limits.ts')
      const limits = failIf.map(text => asUsage(() => changeLimitOf(text)))
      const { readResult } = await import('../../load/report/read-results.ts')
      // One after the other: each takes memory while it is read.
      const sideOf = (files: readonly string[]) => Array.fromAsync(files, file => readResult(file))
      const sides = { a: await sideOf([fileA, ...a]), b: await sideOf([fileB, ...b]) }
      const { differences } = await import('../../load/report/comparison.ts')
      const { warningsOf } = await import('../../load/report/comparability.ts')
      const { compareBodies } = await import('../../load/report/compare-bodies.ts')
      const found = differences(sides.a, sides.b)
      const [bodiesA = '', bodiesB = ''] = checkBodies ?? []
      const comparison = {
        ...sides,
        warnings: warningsOf(sides.a, sides.b),
        differences: found,
        limits: limitVerdicts(limits, found),
        bodies: checkBodies ? await compareBodies(bodiesA, bodiesB) : null,
      }
      if (out !== undefined) {
        const { comparePage } = await import('../../load/report/compare-page.ts')
        await writePage(out, comparePage(comparison, zoneOf(terminal)))
      }
      const { comparisonText } = await import('./comparison-text.ts')
      const { a: runsA, b: runsB, ...rest } = comparison
      const files = { a: [fileA, ...a], b: [fileB, ...b] }
      terminal.show({ ...files, ...rest, out: out ?? null }, comparisonText(comparison, files))
      const { bodies } = comparison
      const isFailed = comparison.limits.some(({ verdict }) => verdict === 'failed')
      if (isFailed || (bodies !== null && bodies.same < bodies.paths)) return thresholdFailed
      return comparison.limits.some(({ verdict }) => verdict === 'undecided') ? notDecided : 0
    },
  })

  add<{ out?: string }>(replay, 'report', {
    summary: 'write the report of results as a page; several settings stand beside each other',
    example: 'replay report result.json --out report.html',
    setUp: command =>
      command
        .argument('<file...>', 'results in JSON, as --out of replay and rehearse writes them')
        .option('--out <file>', 'where to write the page; standard output if not given'),
    run: async (terminal, { out }, ...files) => {
      await checkPage(out)
      const { readResults } = await import('../../load/report/read-results.ts')
      const { reportPage } = await import('../../load/report/run-page.ts')
      const results = (await Array.fromAsync(files, file => readResults(file))).flat()
      const page = reportPage(results, zoneOf(terminal))
      if (out !== undefined) await writePage(out, page)
      if (terminal.json) terminal.show({ files, results: results.length, out: out ?? null }, '')
      else if (out === undefined) await terminal.writeAll(page)
      else
        terminal.show(
          null,
          `Wrote ${out}: the report of ${results.length} ${results.length === 1 ? 'run' : 'runs'}.`,
        )
      return 0
    },
  })
}

/** @throws UsageError, InputError */
const checkPage = async (out: string | undefined): Promise<void> => {
  if (out === undefined) return
  if (!out.endsWith('.html'))
    throw new UsageError(`--out is ${quotedPath(out)}; allowed: a file that ends in .html`)
  await checkWritable([out])
}

const writePage = async (path: string, page: string): Promise<void> => {
  await writeReport(path, page).catch((cause: unknown) => {
    throw new InputError(`${path} cannot be written: ${messageOf(cause)}`, { cause })
  })
}
