// The script of a report: which charts a result has, drawn from the JSON that stands in the page, and the choice of a
// theme. Longer than 300 lines, because it has every chart of every report.

import uPlot from 'uplot'
import { createFigures } from '../../../common/page/figures.js'
import { applyTheme, chosenTheme, keepTheme } from '../../../common/page/preferences.js'
import { figureOf, mostLines } from './chart.js'

/** @typedef {import('../page.ts').PageData & { timeZone: string }} Data */
/** @typedef {NonNullable<Data['runs']>[number]} Run */
/** @typedef {Run['result']['steps'][number]} Step */
/** @typedef {NonNullable<Data['whatIf']>['result']['cases'][number]['steps'][number]} CaseStep */
/** @typedef {import('./chart.js').Chart} Chart */
/** @typedef {import('./chart.js').Values} Values */

/** @type {Data} */
const data = JSON.parse(document.getElementById('data')?.textContent ?? '{}')
const { runs = [], whatIf, points = [] } = data
const figures = createFigures('en', data.timeZone)

/** @param {number} ms */
const latency = ms => figures.latency(ms / 1000)
/** A round latency, without the digits of a measured one. @param {number} ms */
const latencyTick = ms => (ms < 1000 ? `${figures.plain(ms)} ms` : `${figures.plain(ms / 1000)} s`)

/** From zero to above the largest. @type {uPlot.Scale} */
const fromZero = { range: (_, __, most) => [0, most > 0 ? most * 1.06 : 1] }
/** Around all values, wide enough that noise does not fill it. @type {uPlot.Scale} */
const around = {
  range: (_, least, most) => {
    const room = Math.max((most - least) * 0.12, Math.abs(most) * 0.01, 1e-6)
    return [least < 0 ? least - room : Math.max(0, least - room), most + room]
  },
}
/** @type {uPlot.Scale} */
const whole = { range: [0, 1] }
/** @type {uPlot.Scale} */
const logarithmic = { distr: 3 }
// Whole seconds, minutes, hours or days.
const durations = [
  1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
  864_000,
]

/** @param {number} seconds since the begin, with hours where there are any */
const elapsed = seconds => {
  const two = (/** @type {number} */ value) => String(Math.floor(value)).padStart(2, '0')
  const hours = Math.floor(seconds / 3600)
  return `${hours === 0 ? '' : `${hours}:`}${two((seconds / 60) % 60)}:${two(seconds % 60)}`
}

/** Several lines on the values of x that any of them has. @param {{ at: number[], values: Values }[]} lines */
const onOneAxis = lines => {
  const [at = [], ...values] = uPlot.join(
    lines.map(line => /** @type {uPlot.AlignedData} */ ([line.at, line.values])),
  )
  return { at: [...at], values: values.map(each => /** @type {Values} */ ([...each])) }
}

/** The axis of time: times of day where the run went by a moved clock, else since its begin. @param {Run['result']} run @param {number[]} at @returns {Chart['x']} */
const timeAxis = ({ kind, traffic, stepSeconds, steps }, at) => {
  const begin = kind === 'rehearsal' && traffic.from !== null ? Date.parse(traffic.from) / 1000 : undefined
  const isLong = steps.length * stepSeconds > 129_600
  /** @param {number} seconds since the epoch; with its day where there are several */
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
        axis: { space: isLong ? 110 : 64 },
      }
}

/** @typedef {{ name: string, of: (step: Step, place: number, run: Run['result']) => number | null, isBad?: boolean }} Measure */
/** @typedef {{ title: string, note?: string, y: Chart['y'], several?: Chart['y'], measures: Measure[], isArea?: boolean }} OverTime the first measure is that which stands for a run beside others */

/** @param {OverTime} chart @param {Run[]} drawn @returns {Chart | undefined} */
const overTime = ({ title, note, y, several, measures, isArea = false }, drawn) => {
  const [first] = drawn
  if (!first) return undefined
  const shown = drawn.length === 1 ? measures : measures.slice(0, 1)
  const lines = drawn.flatMap(({ name, result }) =>
    shown.map(({ name: own, of, isBad = false }, i) => ({
      name: drawn.length === 1 ? own : name,
      isBad,
      isArea: isArea && drawn.length === 1 && i === 0,
      at: result.steps.map(({ at }) => at),
      values: result.steps.map((step, place) => of(step, place, result)),
    })),
  )
  if (lines.every(({ values }) => values.every(value => value === null))) return undefined
  const joined = onOneAxis(lines)
  const steps = `steps of ${figures.duration(first.result.stepSeconds)}`
  return {
    title,
    note: [
      ...(note ? [note] : []),
      first.result.kind === 'rehearsal' ? `by the moved clock, ${steps}` : steps,
    ].join('; '),
    x: timeAxis(first.result, joined.at),
    y: drawn.length > 1 && several ? several : y,
    lines: lines.map(({ at: _, ...line }, i) => ({ ...line, values: joined.values[i] ?? [] })),
  }
}

/** @param {'hits' | 'stale'} name @returns {(step: Step) => number | null} */
const shareOf = name => step => {
  const weather = step.hits + step.stale + step.misses
  return weather === 0 ? null : step[name] / weather
}
const hitShare = shareOf('hits')

/** The weight of the steps up to this one that lie within so many seconds, to be held against the limit of that span. @param {number} seconds */
const weightWithin =
  seconds =>
  (
    /** @type {Step} */ step,
    /** @type {number} */ place,
    /** @type {Run['result']} */ { steps, stepSeconds },
  ) => {
    if (step.weight === null) return null
    if (stepSeconds > seconds) return (step.weight / stepSeconds) * seconds
    const from = Math.max(0, place + 1 - Math.round(seconds / stepSeconds))
    return steps.slice(from, place + 1).reduce((sum, { weight }) => sum + (weight ?? 0), 0)
  }

/** @param {Run[]} drawn */
const weight = drawn => {
  const [first] = drawn
  if (!first) return undefined
  const { result } = first
  const isLong = result.steps.length * result.stepSeconds >= 7_200
  const span = isLong ? 'hour' : 'minute'
  const within = weightWithin(isLong ? 3_600 : 60)
  const limit = result.provider?.windows.find(window => window.span === span)?.limit
  const most = Math.max(0, ...result.steps.map((step, place) => within(step, place, result) ?? 0))
  // A limit far above all would leave the weight a line on the ground.
  const isNear = typeof limit === 'number' && limit < most * 2
  return overTime(
    {
      title: `Weight within ${isLong ? 'an hour' : 'a minute'}`,
      y: { write: figures.measured, scale: fromZero },
      isArea: true,
      measures: [
        { name: 'weight', of: within },
        ...(isNear ? [{ name: `limit of the ${span}`, of: () => limit, isBad: true }] : []),
      ],
    },
    drawn,
  )
}

/** @param {Run[]} drawn @returns {Chart | undefined} */
const percentiles = drawn => {
  // By its nines: as wide from 90 to 99 as from 99 to 99.9.
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
    note: 'by the number of the setting; ★ no other beats',
    x: {
      name: 'Provider weight',
      values: known.map(point => point.weight),
      write: figures.count,
      tick: figures.short,
      scale: around,
    },
    y,
    lines: [{ name: y.name ?? '', values: known.map(point => point[name]) }],
    points: known.map(point => `${point.name}${point.isBest ? ' ★' : ''}`),
  }
}

/** @param {string} title @param {Chart['y']} y @param {(step: CaseStep) => number | null} of @returns {Chart | undefined} */
const ofCases = (title, y, of) => {
  const lines = (whatIf?.drawn ?? []).map(([place, name]) => {
    const steps = whatIf?.result.cases[place]?.steps ?? []
    return { name, at: steps.map(({ at }) => at), values: steps.map(of) }
  })
  if (lines.every(({ at }) => at.length === 0)) return undefined
  const joined = onOneAxis(lines)
  return {
    title,
    x: {
      name: 'Time since the start',
      values: joined.at,
      write: figures.duration,
      axis: { incrs: durations },
    },
    y,
    lines: lines.map(({ name }, i) => ({ name, values: joined.values[i] ?? [] })),
  }
}

/** @type {Chart['y']} */
const duration = { name: 'Age, p95', write: figures.duration, axis: { incrs: durations }, scale: fromZero }
/** @type {Chart['y']} */
const share = { name: 'Hits', write: figures.share, scale: around }

/** @type {Record<import('../page.ts').ChartName, (drawn: Run[]) => Chart | undefined>} */
const makers = {
  rate: drawn =>
    overTime(
      {
        title: 'Requests per second',
        y: { write: figures.measured, scale: fromZero },
        isArea: true,
        measures: [
          { name: 'answered', of: (step, _, run) => step.answered / run.stepSeconds },
          { name: 'requested', of: (step, _, run) => step.due / run.stepSeconds },
        ],
      },
      drawn,
    ),
  latency: drawn =>
    overTime(
      {
        title: 'Latency over time',
        y: { write: latency, tick: latencyTick, scale: logarithmic },
        measures: [
          { name: 'p99', of: ({ p99 }) => p99 && Math.max(p99, 0.001) },
          { name: 'p50', of: ({ p50 }) => p50 && Math.max(p50, 0.001) },
        ],
      },
      drawn,
    ),
  percentiles,
  hits: drawn =>
    overTime(
      {
        title: 'Hit share over time',
        y: { write: figures.share, scale: whole },
        several: share,
        isArea: true,
        measures: [
          { name: 'hit', of: hitShare },
          { name: 'stale', of: shareOf('stale') },
        ],
      },
      drawn,
    ),
  age: drawn =>
    overTime(
      {
        title: 'Age of the weather that was served',
        y: duration,
        isArea: true,
        measures: [
          { name: 'median', of: ({ age50 }) => age50 },
          { name: 'oldest', of: ({ ageMax }) => ageMax },
        ],
      },
      drawn,
    ),
  weight,
  lateness: drawn =>
    drawn.every(({ result }) => result.steps.every(({ late }) => !late))
      ? undefined
      : overTime(
          {
            title: 'Largest delay from the due instant to the first byte',
            y: { write: latency, tick: latencyTick, scale: fromZero },
            isArea: true,
            measures: [{ name: 'delay', of: ({ late }) => late }],
          },
          drawn,
        ),
  hitsOverWeight: () => overWeight('Hits over provider weight', 'hits', share),
  ageOverWeight: () => overWeight('Age of the weather served over provider weight', 'age', duration),
  caseHits: () =>
    ofCases('Hits', { write: figures.share, scale: whole }, ({ hits, stale, misses }) =>
      hits + stale + misses === 0 ? null : hits / (hits + stale + misses),
    ),
  caseWeight: () =>
    ofCases(
      `Provider weight in each ${figures.duration(whatIf?.result.cases[0]?.stepSeconds)}`,
      { write: figures.count, tick: figures.short, scale: fromZero },
      step => step.weight,
    ),
  caseStretch: () =>
    whatIf?.drawn.some(([place]) => whatIf.result.cases[place]?.steps.some(({ stretch }) => stretch > 1))
      ? ofCases('Stretch of freshness', { write: figures.measured, scale: fromZero }, step => step.stretch)
      : undefined,
}

/** @type {(() => void)[]} */
const redraws = []
for (const place of document.querySelectorAll('.charts')) {
  const { of = '', charts = '' } = /** @type {HTMLElement} */ (place).dataset
  const drawn = of === 'all' ? runs.slice(0, mostLines) : runs.slice(Number(of), Number(of) + 1)
  for (const name of charts.split(' ')) {
    const chart = makers[/** @type {import('../page.ts').ChartName} */ (name)](drawn)
    if (!chart) continue
    const { figure, redraw } = figureOf(chart)
    redraws.push(redraw)
    place.append(figure)
  }
}

const redrawAll = () => {
  for (const redraw of redraws) redraw()
}
for (const query of ['(prefers-color-scheme: dark)', 'print'])
  matchMedia(query).addEventListener('change', redrawAll)
for (const select of document.querySelectorAll('select')) {
  select.value = chosenTheme()
  applyTheme(chosenTheme())
  select.addEventListener('change', () => {
    const theme = /** @type {import('../../../common/page/preferences.js').Theme} */ (select.value)
    keepTheme(theme)
    applyTheme(theme)
    redrawAll()
  })
}
for (const hidden of document.querySelectorAll('.theme, .hint')) hidden.removeAttribute('hidden')
document.getElementById('unscripted')?.remove()
