// The files of `--out` of `replay`, `rehearse` and `replay report`: what they may be, checked before the run that they are for, and
// the results of runs written to them.

import { jsonText, quotedPath } from '../../common/outside-text.ts'
import type { ReplayResult } from '../../load/report/result.ts'
import { type Terminal, zoneOf } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { checkWritable, writeOutput } from '../writable.ts'

/** The exit code where a threshold or a limit of change fails, as k6 has it. */
export const thresholdFailed = 99

type Form = '.html' | '.json' | '.hgrm'

/**
 * Resolves to what writes the results: a page of all, percentiles of the first, or JSON, of several a file each (`-1`, `-2`).
 * @param others further files that are to be written
 * @throws UsageError for a file of another form, InputError for one that can't be written
 */
export const prepareOutput = async (
  terminal: Pick<Terminal, 'config'>,
  paths: readonly string[],
  forms: readonly Form[],
  others: readonly (string | undefined)[] = [],
): Promise<(results: readonly ReplayResult[]) => Promise<void>> => {
  const wrong = paths.find(path => !forms.some(form => path.endsWith(form)))
  if (wrong !== undefined)
    throw new UsageError(
      `--out is ${quotedPath(wrong)}; allowed: a file that ends in ${forms.join(', ').replace(/, ([^,]*)$/, ' or $1')}`,
    )
  const timeZone = paths.some(path => path.endsWith('.html')) ? zoneOf(terminal) : 'UTC'
  await checkWritable([...paths, ...others].filter(path => path !== undefined))
  return async results => {
    const [first] = results
    if (!first) return
    for (const path of paths) {
      if (path.endsWith('.html')) {
        const { reportPage } = await import('../../load/report/run-page.ts')
        await writeOutput(path, reportPage(results, timeZone))
      } else if (path.endsWith('.hgrm')) {
        const { percentileDistribution } = await import('../../load/report/histogram.ts')
        await writeOutput(path, percentileDistribution(first.histogram))
      } else
        for (const [i, result] of results.entries()) {
          const own = results.length === 1 ? path : path.replace(/\.json$/, `-${i + 1}.json`)
          await writeOutput(own, `${jsonText(result)}\n`)
        }
    }
  }
}
