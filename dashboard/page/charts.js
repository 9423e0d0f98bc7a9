// The last hour as three charts: rate, hit share by tier, latency percentiles. Lines differ in colour and in kind, and their
// values stand beside them as text: those under the pointer, else the newest.

import { unknown } from '../../src/common/page/figures.js'
import { colourOf } from '../../src/common/page/preferences.js'
import { byId, element, setChildren, setText } from './dom.js'
import { stacked } from './history.js'
import uPlot from './uplot.js'

/** @typedef {import('./contract.ts').History} History */
/** @typedef {import('./texts.js').TextName} TextName */
/** @typedef {(number | null)[]} Values */

/** @typedef {(history: History) => Values} ValuesOf */

const kinds = /** @type {const} */ (['solid', 'dashed', 'dotted'])
/** @param {string} name as in texts, or as it is (p50) @param {0 | 1 | 2} place in its chart @param {ValuesOf} values */
const line = (name, place, values, colour = `--line-${place + 1}`) => ({
  name,
  colour,
  kind: kinds[place],
  values,
})
/** @typedef {ReturnType<typeof line>} Line */
/** @typedef {{ title: TextName, figure: 'measured' | 'share' | 'latency', isStacked?: true, lines: readonly Line[] }} Chart */

/** @type {readonly Chart[]} */
const charts = [
  {
    title: 'rate',
    figure: 'measured',
    lines: [
      line('requests', 0, history => history.requestsPerSecond),
      line('errorsShort', 1, history => history.errorsPerSecond, '--line-bad'),
    ],
  },
  {
    title: 'hitShareByTier',
    isStacked: true,
    figure: 'share',
    lines: [
      line('memoryTier', 0, ({ hitShare }) => hitShare.memory),
      line('sharedTier', 1, ({ hitShare }) => hitShare.shared),
      line('providerTier', 2, ({ hitShare }) => hitShare.provider),
    ],
  },
  {
    title: 'latencyPercentiles',
    figure: 'latency',
    lines: [
      line('p50', 0, ({ p50 }) => p50),
      line('p90', 1, ({ p90 }) => p90),
      line('p99', 2, ({ p99 }) => p99),
    ],
  },
]

/** As a canvas draws the kinds of lines. */
const dashes = { solid: [], dashed: [5, 3], dotted: [1.5, 3] }
const heightOfChart = 132
/** In seconds: what a chart shows at least, when there is little to show. */
const shortest = 600

/** A piece of the line, beside its name. @param {Line} line */
const strokeOf = ({ colour, kind }) => {
  const stroke = element('i', { class: 'stroke' })
  stroke.style.borderTop = `${kind === 'dotted' ? 3 : 2}px ${kind} var(${colour})`
  return stroke
}

/** @param {() => { text: import('./texts.js').Texts, figures: import('../../src/common/page/figures.js').Figures, timeZone: string }} words */
export const createCharts = words => {
  const host = byId('charts')
  /** @type {{ chart: Chart, plot: uPlot, values: HTMLElement[], note: HTMLElement, figure: HTMLElement }[]} */
  let made = []
  /** @type {History | undefined} */
  let history

  /** @param {string} name */
  const nameOf = name =>
    /^p\d/.test(name)
      ? `p${words().figures.count(Number(name.slice(1)))}`
      : words().text(/** @type {TextName} */ (name))

  /** @param {Chart} chart @returns {uPlot.AlignedData} */
  const dataOf = chart => {
    if (!history) return [[]]
    const raw = chart.lines.map(({ values }) => values(/** @type {History} */ (history)))
    const end = Date.parse(history.endsAt) / 1000
    const length = raw[0]?.length ?? 0
    const { stepSeconds } = history
    const times = Array.from({ length }, (_, i) => end - (length - 1 - i) * stepSeconds)
    // The highest first, so that each lower area lies before it.
    const lines = chart.isStacked ? stacked(raw).reverse() : raw
    return [times, ...lines]
  }

  /** In seconds since the epoch: where the lines begin. */
  const firstKnown = () => {
    if (!history) return 0
    const { requestsPerSecond, stepSeconds, endsAt } = history
    const index = requestsPerSecond.findIndex(value => value !== null)
    const steps = index < 0 ? 0 : requestsPerSecond.length - 1 - index
    return Date.parse(endsAt) / 1000 - steps * stepSeconds
  }

  /** @param {(typeof made)[number]} one */
  const writeValues = ({ chart, plot, values, note }) => {
    const { text, figures } = words()
    if (!history) return
    const last = history.requestsPerSecond.length - 1
    const index = plot.cursor.idx ?? last
    chart.lines.forEach((line, i) => {
      const target = values[i]
      if (target) setText(target, figures[chart.figure](line.values(/** @type {History} */ (history))[index]))
    })
    const [line] = chart.lines
    const known = (line?.values(history) ?? []).filter(value => value !== null)
    const at = plot.cursor.idx === null || plot.cursor.idx === undefined ? undefined : plot.data[0][index]
    setText(note, at === undefined ? '' : figures.timeOfDay(at * 1000, true))
    const most = known.length > 0 ? Math.max(...known) : null
    plot.root.setAttribute(
      'aria-label',
      text(
        'chartSummary',
        `${text(chart.title)}, ${nameOf(line?.name ?? '')}`,
        figures[chart.figure](line?.values(history)[last]),
        figures[chart.figure](most),
      ),
    )
  }

  /** @param {Chart} chart */
  const make = chart => {
    const { text, figures, timeZone } = words()
    const values = chart.lines.map(() => element('b', {}, unknown))
    const note = element('span', { class: 'note' })
    const figure = element(
      'figure',
      { class: 'chart' },
      element('figcaption', {}, element('h3', {}, text(chart.title)), note),
      element(
        'ul',
        { class: 'lines' },
        ...chart.lines.map((line, i) => element('li', {}, strokeOf(line), nameOf(line.name), ' ', values[i])),
      ),
    )
    host.append(figure)
    const ink = colourOf('--muted')
    const grid = { stroke: colourOf('--hairline'), width: 1 }
    const font = '11px system-ui, sans-serif'
    const lines = chart.isStacked ? [...chart.lines].reverse() : chart.lines
    const plot = new uPlot(
      {
        width: Math.max(160, figure.clientWidth),
        height: heightOfChart,
        // Half a time of day fits beside the end of the axis.
        padding: [8, 20, 0, 0],
        tzDate: ts => uPlot.tzDate(new Date(ts * 1000), timeZone),
        legend: { show: false },
        cursor: { sync: { key: 'hour' }, drag: { x: false, y: false }, points: { size: 7 } },
        scales: {
          x: {
            time: true,
            range: (_, from, to) => [Math.max(from, Math.min(firstKnown(), to - shortest)), to],
          },
          y: {
            range: (_, __, most) =>
              chart.figure === 'share'
                ? [0, 1]
                : [0, most > 0 ? most * 1.1 : chart.figure === 'latency' ? 0.01 : 1],
          },
        },
        axes: [
          {
            stroke: ink,
            grid: { show: false },
            ticks: { show: false },
            font,
            size: 24,
            space: 46,
            values: (_, splits) => splits.map(split => figures.timeOfDay(split * 1000)),
          },
          {
            stroke: ink,
            grid,
            ticks: { show: false },
            font,
            size: 58,
            gap: 4,
            space: 26,
            values: (_, splits) => splits.map(split => figures[chart.figure](split)),
          },
        ],
        series: [
          {},
          ...lines.map((line, i) => {
            const stroke = colourOf(line.colour)
            const isGround = chart.isStacked || (i === 0 && chart.figure === 'measured')
            // Opaque, because lower areas lie before the higher ones.
            const fill = isGround ? { fill: colourOf(line.colour.replace('line', 'area')) } : {}
            return {
              stroke,
              width: line.kind === 'dotted' ? 2 : 1.6,
              dash: dashes[line.kind],
              points: { show: false },
              ...fill,
            }
          }),
        ],
        hooks: {
          setCursor: [
            () => {
              const one = made.find(({ plot: own }) => own === plot)
              if (one) writeValues(one)
            },
          ],
        },
      },
      dataOf(chart),
      figure,
    )
    plot.root.setAttribute('role', 'img')
    return { chart, plot, values, note, figure }
  }

  const resizing = new ResizeObserver(() => {
    for (const { plot, figure } of made) {
      const width = Math.max(160, figure.clientWidth)
      if (width !== plot.width) plot.setSize({ width, height: heightOfChart })
    }
  })

  const update = () => {
    const isEmpty = !history || history.requestsPerSecond.every(value => value === null)
    byId('no-history').hidden = !isEmpty
    for (const one of made) {
      one.plot.setData(dataOf(one.chart))
      writeValues(one)
    }
  }

  return {
    /** Makes the charts again: in other colours. */
    draw: () => {
      for (const { plot, figure } of made) {
        resizing.unobserve(figure)
        plot.destroy()
      }
      setChildren(host, [])
      made = charts.map(make)
      for (const { figure } of made) resizing.observe(figure)
      update()
    },
    /** @param {History} whole */
    set: whole => {
      history = whole
      update()
    },
  }
}
