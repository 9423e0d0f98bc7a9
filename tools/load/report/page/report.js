// The script of a report: draws the charts from the JSON in the page, and switches the theme.

import { createFigures } from 'abohawa/common/page/figures.js'
import { applyTheme, chosenTheme, drawInOtherColours, keepTheme } from 'abohawa/common/page/preferences.js'
import uPlot from 'uplot'
import { figureOf, mostLines } from './chart.js'

/** @typedef {import('../report-file.ts').PageData & { timeZone: string }} Data */
/** @typedef {import('../report-file.ts').DrawnRun} Run */
/** @typedef {Run['result']['steps'][number]} Step */
/** @typedef {import('./chart.js').Chart} Chart */
/** @typedef {import('./chart.js').Values} Values */

/** @type {Data} */
const data = JSON.parse(document.getElementById('data')?.textContent ?? '{}')
const { whatIf, points = [] } = data
/** @type {readonly Run[]} */
const runs =
  data.runs ??
  whatIf?.drawn.flatMap(([place, name]) => {
    const result = whatIf.result.cases[place]
    return result ? [{ name, result, percentiles: [] }] : []
  }) ??
  []
const figures = createFigures('en', data.timeZone)

/** @param {number} ms */
const latency = ms => figures.latency(ms / 1000)
/** A round latency, without the digits of a measured one. @param {number} ms */
const latencyTick = ms => (ms < 1000 ? `${figures.plain(ms)} ms` : `${figures.plain(ms / 1000)} s`)

/** With the seconds beside minutes, so that no two marks are the same. @param {number} seconds */
const durationTick = seconds =>
  seconds > 60 && seconds < 3600 && seconds % 60 > 0
    ? `${figures.duration(seconds)} ${figures.duration(seconds % 60)}`
    : figures.duration(seconds)

/** From zero to above the largest. @type {uPlot.Scale} */
const fromZero = { range: (_, __, most) => [0, most > 0 ? most * 1.06 : 1] }
/** Around all values, with room so that noise does not fill the chart. @param {number} leastRoom @returns {uPlot.Scale} */
const around = leastRoom => ({
  range: (_, least, most) => {
    const room = Math.max((most - least) * 0.12, Math.abs(most) * 0.01, leastRoom)
    return [least < 0 ? least - room : Math.max(0, least - room), most + room]
  },
})
/** @type {uPlot.Scale} */
const logarithmic = { distr: 3 }
// Whole seconds, minutes, hours or days.
const durations = [
  1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
  864_000, 1_728_000, 4_320_000, 8_640_000,
]

/** @param {number} seconds since the start */
const elapsed = seconds => {
  const two = (/** @type {number} */ value) => String(Math.floor(value)).padStart(2, '0')
  const days = seconds < 172_800 ? 0 : Math.floor(seconds / 86_400)
  const hours = Math.floor(seconds / 3600) - days * 24
  const clock = `${hours === 0 && days === 0 ? '' : `${hours}:`}${two((seconds / 60) % 60)}:${two(seconds % 60)}`
  if (days === 0) return clock
  return seconds % 86_400 === 0 ? `${days} d` : `${days} d ${clock}`
}

/** Aligns lines on a common x axis. @param {{ at: number[], values: Values }[]} lines */
const onOneAxis = lines => {
  const [at = [], ...values] = uPlot.join(
    lines.map(line => /** @type {uPlot.AlignedData} */ ([line.at, line.values])),
  )
  return { at: [...at], values: values.map(each => /** @type {Values} */ ([...each])) }
}

/** Times of day for a rehearsal, else the time since the start. @param {Run['result']} run @param {number[]} at @returns {Chart['x']} */
const timeAxis = ({ kind, traffic, stepSeconds, steps }, at) => {
  const begin = kind === 'rehearsal' && traffic?.from ? Date.parse(traffic.from) / 1000 : undefined
  const isLong = steps.length * stepSeconds > 129_600
  /** @param {number} seconds since the epoch */
  const timeOfDay = seconds =>
    isLong
      ? figures.instant(new Date(seconds * 1000).toISOString(), '1970-01-01T00:00:00Z')
      : figures.timeOfDay(seconds * 1000)
  return begin === undefined
    ? { name: 'Time', values: at, write: elapsed, axis: { incrs: durations } }
    : {
        name: 'Time',
        values: at.map(seconds => begin + seconds),
        write: timeOfDay,
        timeZone: data.timeZone,
        axis: { space: isLong ? 140 : 64 },
      }
}

/** @typedef {{ name: string, of: (step: Step, stepSeconds: number) => number | null | undefined }} Measure */
/** @typedef {{ title: string, y: Chart['y'], measures: Measure[], isArea?: boolean, isShown?: (step: Step) => boolean }} OverTime with several runs, only the first measure is drawn */

/** @param {OverTime} chart @returns {(drawn: readonly Run[]) => Chart | undefined} */
const overTime =
  ({ title, y, measures, isArea = false, isShown = () => true }) =>
  drawn => {
    const [first] = drawn
    if (!first) return undefined
    const isOne = drawn.length === 1
    const lines = drawn.flatMap(({ name, result: { steps, stepSeconds } }) =>
      (isOne ? measures : measures.slice(0, 1)).map(({ name: own, of }, i) => ({
        name: isOne ? own : name,
        isArea: isArea && isOne && i === 0,
        at: steps.map(({ at }) => at),
        values: steps.map(step => of(step, stepSeconds) ?? null),
      })),
    )
    if (lines.every(({ values }) => values.every(value => value === null))) return undefined
    if (!drawn.some(({ result }) => result.steps.some(isShown))) return undefined
    const joined = onOneAxis(lines)
    const steps = `steps of ${figures.duration(first.result.stepSeconds)}`
    return {
      title,
      note: first.result.kind === 'rehearsal' ? `moved clock, ${steps}` : steps,
      x: timeAxis(first.result, joined.at),
      y,
      lines: lines.map(({ at: _, ...line }, i) => ({ ...line, values: joined.values[i] ?? [] })),
    }
  }

/** @param {'hits' | 'stale'} name @returns {(step: Step) => number | null} */
const shareOf = name => step => {
  const weather = step.hits + step.stale + step.misses
  return weather === 0 ? null : step[name] / weather
}

/** @param {readonly Run[]} drawn @returns {Chart | undefined} */
const percentiles = drawn => {
  // A logarithmic axis: equally wide from 90 to 99 and from 99 to 99.9.
  const known = drawn.filter(run => run.percentiles.length > 0)
  const nines = (/** @type {number} */ percent) => Number((-Math.log10(1 - percent / 100)).toFixed(6))
  const write = (/** @type {number} */ at) =>
    `${figures.plain(Number((100 * (1 - 10 ** -at)).toPrecision(6)))}%`
  if (known.length === 0) return undefined
  const lines = known.map(run => ({
    at: run.percentiles.map(([percent]) => nines(percent)),
    values: run.percentiles.map(([, ms]) => Math.max(ms, 0.001)),
  }))
  const joined = onOneAxis(lines)
  const values = lines.flatMap(line => line.values)
  const isWide = Math.max(...values) > 20 * Math.min(...values)
  return {
    title: 'Latency by percentile',
    x: {
      name: 'Percentile',
      values: joined.at,
      write,
      axis: {
        splits: [0, 1, 2, 3, 4, 5, 6, 7, 8].filter(at => at <= (joined.at.at(-1) ?? 0) + 0.05),
      },
    },
    y: { write: latency, tick: latencyTick, scale: isWide ? logarithmic : fromZero },
    lines: known.map(({ name }, i) => ({
      name: known.length === 1 ? 'latency' : name,
      values: joined.values[i] ?? [],
    })),
  }
}

/** @param {string} title @param {'hits' | 'age'} name @param {Chart['y']} y @returns {Chart | undefined} */
const overWeight = (title, name, y) => {
  const known = points.filter(point => point[name] !== null).toSorted((a, b) => a.weight - b.weight)
  if (known.length < 2) return undefined
  return {
    title,
    note: 'numbers are settings; ★ marks the best',
    x: {
      name: 'Provider weight',
      values: known.map(point => point.weight),
      write: figures.count,
      tick: figures.short,
      scale: around(1),
    },
    y,
    lines: [{ name: y.name ?? '', values: known.map(point => point[name]) }],
    points: known.map(point => `${point.name}${point.isBest ? ' ★' : ''}`),
  }
}

/** @type {Chart['y']} */
const duration = {
  name: 'Age, p95',
  write: figures.duration,
  tick: durationTick,
  axis: { incrs: durations },
  scale: fromZero,
}
/** @type {Chart['y']} */
const share = {
  name: 'Hits',
  write: figures.share,
  // The room above 100 % has no marks.
  tick: value => (value > 1.000_01 ? '' : figures.share(value)),
  scale: around(0.005),
}
/** @type {Chart['y']} */
const rate = { write: figures.measured, tick: figures.short, scale: fromZero }

/** @type {Record<import('../report-file.ts').ChartName, (drawn: readonly Run[]) => Chart | undefined>} */
const makers = {
  rate: overTime({
    title: 'Requests per second',
    y: rate,
    isArea: true,
    measures: [
      { name: 'answered', of: ({ answered = 0 }, seconds) => answered / seconds },
      { name: 'requested', of: ({ due = 0 }, seconds) => due / seconds },
    ],
  }),
  latency: overTime({
    title: 'Latency over time',
    y: { write: latency, tick: latencyTick, scale: logarithmic },
    measures: [
      { name: 'p99', of: ({ p99 }) => p99 && Math.max(p99, 0.001) },
      { name: 'p50', of: ({ p50 }) => p50 && Math.max(p50, 0.001) },
    ],
  }),
  percentiles,
  hits: overTime({
    title: 'Cache hit rate over time',
    y: share,
    isArea: true,
    measures: [
      { name: 'hit', of: shareOf('hits') },
      { name: 'stale', of: shareOf('stale') },
    ],
  }),
  age: overTime({
    title: 'Age of served weather',
    y: duration,
    isArea: true,
    measures: [
      { name: 'median', of: ({ age50 }) => age50 },
      { name: 'oldest', of: ({ ageMax }) => ageMax },
    ],
  }),
  weight: overTime({
    title: `Provider weight per ${figures.duration(runs[0]?.result.stepSeconds)}`,
    y: { write: figures.measured, tick: figures.short, scale: fromZero },
    isArea: true,
    measures: [{ name: 'weight', of: step => step.weight }],
  }),
  lateness: overTime({
    title: 'Maximum send delay',
    y: { write: latency, tick: latencyTick, scale: fromZero },
    isArea: true,
    measures: [{ name: 'delay', of: ({ late }) => late }],
    isShown: ({ late = 0 }) => late !== null && late > 0,
  }),
  stretch: overTime({
    title: 'Freshness extended by',
    y: rate,
    measures: [{ name: 'stretch', of: step => step.stretch }],
    isShown: ({ stretch = 1 }) => stretch > 1,
  }),
  hitsOverWeight: () => overWeight('Hits over provider weight', 'hits', share),
  ageOverWeight: () => overWeight('Age over provider weight', 'age', duration),
}
/** @type {(() => void)[]} */
const redraws = []
for (const place of document.querySelectorAll('.charts')) {
  const { of = '', charts = '' } = /** @type {HTMLElement} */ (place).dataset
  const drawn = of === 'all' ? runs.slice(0, mostLines) : runs.slice(Number(of), Number(of) + 1)
  for (const name of charts.split(' ')) {
    const chart = makers[/** @type {import('../report-file.ts').ChartName} */ (name)](drawn)
    if (!chart) continue
    const { figure, redraw } = figureOf(chart)
    redraws.push(redraw)
    place.append(figure)
  }
}

const redrawAll = () => {
  for (const redraw of redraws) redraw()
}
drawInOtherColours(redrawAll)
for (const select of document.querySelectorAll('select')) {
  select.value = chosenTheme()
  applyTheme(chosenTheme())
  select.addEventListener('change', () => {
    const theme = /** @type {import('abohawa/common/page/preferences.js').Theme} */ (select.value)
    keepTheme(theme)
    applyTheme(theme)
    redrawAll()
  })
}
for (const hidden of document.querySelectorAll('.theme, .hint')) hidden.removeAttribute('hidden')
document.getElementById('unscripted')?.remove()
