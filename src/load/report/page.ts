// The report on one or several runs as one HTML file. One run: verdict first, then everything that was measured. Several: a row
// for each setting, hits over what they cost, then each run whole, folded.

import { escaped, type Html, part, section } from '../../page/html.ts'
import { type Language, sayIn } from '../../page/words.ts'
import { figuresIn, type PageContent, reportFrame } from './page-frame.ts'
import type { ReplayResult } from './result.ts'
import type { Writing } from './result-charts.ts'
import { sectionsOf } from './result-sections.ts'
import { resultWords } from './result-words.ts'
import { namedRuns, overlaysOf, overviewOf } from './settings-overview.ts'
import { thresholdsOf, tilesOf, warningsOf } from './verdict.ts'

// Steps of a chart: those of one run are each as wide as a pixel or more; those of several need not be.
const stepsOfOne = 288
const stepsOfSeveral = 72

/**
 * The text of the file.
 * @param results one or more, in the order of the page
 * @param timeZone of its times of day
 */
export const reportPage = (results: readonly ReplayResult[], timeZone: string): string =>
  reportFrame(language => {
    const writing = { say: sayIn(resultWords, language), figures: figuresIn(language, timeZone) }
    const [first] = results
    return results.length === 1 && first
      ? pageOfOne(first, writing)
      : pageOfSeveral(results, writing, language)
  })

const pageOfOne = (run: ReplayResult, writing: Writing): PageContent => {
  const { say, figures } = writing
  return {
    title: say(run.kind === 'rehearsal' ? 'titleOfRehearsal' : 'titleOfReplay'),
    subtitle: say('subtitle', figures.count(run.totals.due), run.traffic.files.join(', ')),
    content: wholeOf(run, writing, stepsOfOne, section),
  }
}

const pageOfSeveral = (
  results: readonly ReplayResult[],
  writing: Writing,
  language: Language,
): PageContent => {
  const { say, figures } = writing
  const runs = namedRuns(results, writing)
  const files = [...new Set(results.flatMap(({ traffic }) => traffic.files))]
  const whole = runs.map(
    ({ run, name }) =>
      `<details class="whole"><summary>${escaped(say('wholeRun', name))}</summary>${wholeOf(run, writing, stepsOfSeveral, (_id, title, content) => part(title, content))}</details>`,
  )
  return {
    title: say('titleOfSeveral'),
    subtitle: say(
      'subtitleOfSeveral',
      figures.count(results.length),
      files.join(language === 'bn' ? ' ও ' : ', '),
    ),
    content: [
      results.map(run => warningsOf(run, writing)).find(warning => warning !== '') ?? '',
      section('overview', say('overview'), overviewOf(runs, writing)),
      section('over-time', say('overTime'), overlaysOf(runs, writing)),
      ...whole,
    ].join('\n'),
  }
}

/** @param partOf makes one of its parts */
const wholeOf = (run: ReplayResult, writing: Writing, most: number, partOf: typeof section): Html =>
  [
    warningsOf(run, writing),
    partOf('verdict', writing.say('verdict'), thresholdsOf(run, writing) + tilesOf(run, writing)),
    ...sectionsOf(run, writing, most).map(({ id, title, content }) => partOf(id, title, content)),
  ].join('\n')
