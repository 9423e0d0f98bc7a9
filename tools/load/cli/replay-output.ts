// The files of `--out` of `replay`, `rehearse` and `replay report`: checked before the run, written after it.

import { type Terminal, zoneOf } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { checkOutputs, type Output, outputsOf, writeOutput } from 'abohawa/command-line/writable.ts'
import { jsonText, quotedPath } from 'abohawa/common/outside-text.ts'
import type { ReplayResult } from '../report/result.ts'

/** The exit code where a threshold or a limit of change fails, as k6 has it. */
export const thresholdFailed = 99

type Form = '.html' | '.json' | '.hgrm'

type Outputs = {
  readonly paths: readonly string[]
  readonly forms: readonly Form[]
  /** Files that other options of the command write. */
  readonly others?: readonly Output[]
  readonly inputs: readonly (string | undefined)[]
  readonly force: boolean | undefined
  /** The number of results, each a JSON file; `list` writes one file. */
  readonly results?: number | 'list'
}

/**
 * Resolves to a function that writes results: a page of all, percentiles of the first, or JSON (`-1`, `-2` for several).
 * @throws UsageError for another ending, InputError for a file that can't be written
 */
export const prepareOutput = async (
  terminal: Pick<Terminal, 'config' | 'sources'>,
  { paths, forms, others = [], inputs, force = false, results: expected = 1 }: Outputs,
): Promise<(results: readonly ReplayResult[]) => Promise<void>> => {
  const wrong = paths.find(path => !forms.some(form => path.endsWith(form)))
  if (wrong !== undefined)
    throw new UsageError(
      `--out must end in ${forms.join(', ').replace(/, ([^,]*)$/, ' or $1')}, got ${quotedPath(wrong)}`,
    )
  const timeZone = paths.some(path => path.endsWith('.html')) ? zoneOf(terminal) : 'UTC'
  const filesOf = (path: string): string[] =>
    expected === 1 || expected === 'list' || !path.endsWith('.json')
      ? [path]
      : Array.from({ length: expected }, (_, i) => path.replace(/\.json$/, `-${i + 1}.json`))
  await checkOutputs(terminal, [...outputsOf('--out', ...paths.flatMap(filesOf)), ...others], {
    inputs,
    force,
  })
  return async results => {
    const [first] = results
    if (!first) return
    for (const path of paths) {
      const [output] = outputsOf('--out', path) as [Output]
      if (path.endsWith('.html')) {
        const { reportPage } = await import('../report/run-page.ts')
        await writeOutput(output, reportPage(results, timeZone), force)
      } else if (path.endsWith('.hgrm')) {
        const { percentileDistribution } = await import('../report/histogram.ts')
        await writeOutput(output, percentileDistribution(first.histogram), force)
      } else if (expected === 'list') await writeOutput(output, `${jsonText(results)}\n`, force)
      else
        for (const [i, own] of outputsOf('--out', ...filesOf(path)).entries())
          if (results[i]) await writeOutput(own, `${jsonText(results[i])}\n`, force)
    }
  }
}
