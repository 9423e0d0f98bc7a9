// The frame of every report: one self-contained HTML file. Text and tables are HTML; the results are JSON, from which page/report.js
// draws the charts with uPlot.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { printable } from 'abohawa/common/outside-text.ts'
import { createFigures, type Figures } from 'abohawa/common/page/figures.js'
import { escaped, type Html } from 'abohawa/common/page/html.ts'
import { table } from '../../common/html.ts'
import { histogramOf, latencyAt, plottedPercentiles } from './histogram.ts'
import type { ReplayResult, Step } from './result.ts'

export const figuresIn = (timeZone: string): Figures => createFigures('en', timeZone)

export type DrawnRun = {
  readonly name: string
  readonly result: {
    readonly kind?: ReplayResult['kind']
    readonly traffic?: { readonly from: string | null }
    readonly stepSeconds: number
    readonly steps: readonly (Partial<Step> &
      Pick<Step, 'at' | 'hits' | 'stale' | 'misses' | 'weight'> & { readonly stretch?: number })[]
  }
  /** Its latencies in ms. */
  readonly percentiles: readonly (readonly [percent: number, ms: number])[]
}

export type PageData = {
  readonly runs?: readonly (DrawnRun & { readonly result: ReplayResult })[]
  /** The result of `whatif`, and the cases to draw over time, by index. */
  readonly whatIf?: {
    readonly drawn: readonly (readonly [place: number, name: string])[]
    readonly result: { readonly cases: readonly DrawnRun['result'][] }
  }
  /** Settings by cost, named by number. */
  readonly points?: readonly {
    readonly name: string
    readonly weight: number
    readonly hits: number
    /** In seconds. */
    readonly age: number | null
    readonly isBest: boolean
  }[]
}

export const drawnRun = (result: ReplayResult, name: string) => {
  const histogram = histogramOf(result.histogram)
  const { totalCount } = histogram
  const percents = totalCount === 0 ? [] : plottedPercentiles(totalCount)
  return {
    name: printable(name),
    result,
    // Without requests that have no response.
    percentiles: percents.flatMap(percent => {
      const ms = latencyAt(histogram, percent)
      return ms === null ? [] : [[percent, ms] as const]
    }),
  }
}

export type ChartName =
  | 'rate'
  | 'latency'
  | 'percentiles'
  | 'hits'
  | 'age'
  | 'weight'
  | 'lateness'
  | 'stretch'
  | 'hitsOverWeight'
  | 'ageOverWeight'

/** A place for charts; charts without values are left out. @param of the index of a run, or all in one chart */
export const charts = (of: number | 'all', ...names: readonly ChartName[]): Html =>
  `<div class="charts" data-of="${of}" data-charts="${names.join(' ')}"></div>`

/** A column of numbers, hidden where it has nothing to show. */
export type SettingColumn<Row> = readonly [head: string, cell: (row: Row) => Html, isShown?: boolean]

/** @param marked the indexes of the Pareto-optimal rows */
export const settingsTable = <Row extends { readonly title: string }>(
  label: string,
  columns: readonly SettingColumn<Row>[],
  rows: readonly Row[],
  marked: ReadonlySet<number>,
): Html => {
  const shown = columns.filter(([, , isShown = true]) => isShown)
  return table(
    label,
    [{ head: 'Setting' }, ...shown.map(([head]) => ({ head, isNumber: true }))],
    rows.map((row, i) => [
      `${escaped(row.title)}${marked.has(i) ? ' ★' : ''}`,
      ...shown.map(([, cell]) => cell(row)),
    ]),
    marked,
  )
}

const fileText = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
const packageText = (path: string): string => fileText(import.meta.resolve(`uplot/dist/${path}`))
const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The modules of the page as one script, in the order of their imports. */
const script = (): string =>
  [
    '../../../src/common/page/figures.js',
    '../../../src/common/page/preferences.js',
    'page/point-labels.js',
    'page/chart.js',
    'page/report.js',
  ]
    .map(file =>
      fileText(file)
        .replaceAll(/^import .*?from '.*?'\n/gms, '')
        .replaceAll(/^export /gm, ''),
    )
    .join('\n')

/** In ASCII, so that nothing ends the element and no bidi character is in the file. */
const jsonText = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /[<>&\u007f-\uffff]/g,
    sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The text of the file. @param page its content as HTML @param timeZone for times of day */
export const reportFile = (
  page: { readonly title: string; readonly subtitle: string; readonly content: Html },
  data: PageData,
  timeZone: string,
): string => {
  const icon = fileText('../../../dashboard/icon.svg').trim()
  const style =
    ['../../../dashboard/house.css', 'page/report.css'].map(fileText).join('\n') +
    packageText('uPlot.min.css')
  const [library, behaviour] = [packageText('uPlot.iife.min.js'), script()]
  const themes = ['System', 'Light', 'Dark'].map(
    theme => `<option value="${theme.toLowerCase()}">${theme}</option>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src ${hash(style)}; script-src ${hash(library)} ${hash(behaviour)}; img-src data:; base-uri 'none'; form-action 'none'">
<title>${escaped(page.title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}">
<style>${style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar">${icon.replace('<svg ', '<svg class="icon" width="34" height="34" aria-hidden="true" ')}
<h1>${escaped(page.title)}<small>${escaped(page.subtitle)}</small><small>Time zone: ${escaped(timeZone)}</small></h1>
<select class="theme" aria-label="Theme" hidden>${themes.join('')}</select>
</header>
<main id="content" tabindex="-1">
${page.content}
<p class="note hint" hidden>On a chart, use the arrow keys to move between values.</p>
<p class="note" id="unscripted">Charts need JavaScript, which does not run here.</p>
</main>
<script type="application/json" id="data">${jsonText({ timeZone, ...data })}</script>
<script>${library}</script>
<script type="module">${behaviour}</script>
</body>
</html>
`
}
