// The last hour as three charts. Lines differ in colour and kind, with values as text: under the pointer, or the newest.

import { colourOf } from '../../src/common/page/preferences.js'
import { stacked } from './history.js'
import { Component, createRef } from './preact.js'
import uPlot from './uplot.js'
import { figures, html, timeZone } from './view.js'

/** @typedef {import('./contract.ts').History} History */
/** @typedef {(number | null)[]} Values */

const kinds = /** @type {const} */ (['solid', 'dashed', 'dotted'])
/** @param {string} name @param {0 | 1 | 2} place in its chart @param {(history: History) => Values} values */
const line = (name, place, values, colour = `--line-${place + 1}`) => ({
  name,
  colour,
  kind: kinds[place],
  values,
})
/** @typedef {{ title: string, figure: 'measured' | 'share' | 'latency', isStacked?: true, lines: readonly ReturnType<typeof line>[] }} Drawn */

/** @type {readonly Drawn[]} */
const charts = [
  {
    title: 'Requests per second',
    figure: 'measured',
    lines: [
      line('requests', 0, history => history.requestsPerSecond),
      line('errors', 1, history => history.errorsPerSecond, '--line-bad'),
    ],
  },
  {
    title: 'Cache hit rate by tier',
    isStacked: true,
    figure: 'share',
    lines: [
      line('memory', 0, ({ hitShare }) => hitShare.memory),
      line('shared', 1, ({ hitShare }) => hitShare.shared),
      line('provider', 2, ({ hitShare }) => hitShare.provider),
    ],
  },
  {
    title: 'Latency percentiles',
    figure: 'latency',
    lines: [
      line('p50', 0, ({ p50 }) => p50),
      line('p90', 1, ({ p90 }) => p90),
      line('p99', 2, ({ p99 }) => p99),
    ],
  },
]

/** Round values, without the digits of measured ones. */
const ticks = {
  measured: figures.short,
  share: figures.share,
  latency: (/** @type {number} */ seconds) =>
    seconds > 0 && seconds < 1 ? `${figures.plain(seconds * 1000)} ms` : `${figures.plain(seconds)} s`,
}
/** As a canvas draws the kinds of lines. */
const dashes = { solid: [], dashed: [5, 3], dotted: [1.5, 3] }
const height = 132
/** In seconds: what a chart shows at least, when there is little to show. */
const shortest = 600

/** @param {Drawn} drawn @param {History} history @returns {uPlot.AlignedData} */
const dataOf = ({ lines, isStacked }, history) => {
  const raw = lines.map(({ values }) => values(history))
  const end = Date.parse(history.endsAt) / 1000
  const length = raw[0]?.length ?? 0
  const times = Array.from({ length }, (_, i) => end - (length - 1 - i) * history.stepSeconds)
  // The highest first, so that each lower area lies before it.
  return [times, ...(isStacked ? stacked(raw).reverse() : raw)]
}

/** In seconds since the epoch: where the lines begin. @param {History} history */
const firstKnown = ({ requestsPerSecond, stepSeconds, endsAt }) => {
  const index = requestsPerSecond.findIndex(value => value !== null)
  const steps = index < 0 ? 0 : requestsPerSecond.length - 1 - index
  return Date.parse(endsAt) / 1000 - steps * stepSeconds
}

/** @extends {Component<{ drawn: Drawn, history: History }, { at: number | null }>} */
class Chart extends Component {
  /** The place of the values under the pointer. */
  state = { at: /** @type {number | null} */ (null) }
  host = /** @type {import('./preact.js').RefObject<HTMLElement>} */ (createRef())
  /** @type {uPlot | undefined} */
  plot

  componentDidMount() {
    const host = this.host.current
    if (!host) return
    const { drawn, history } = this.props
    const axis = { stroke: colourOf('--muted'), ticks: { show: false }, font: '11px system-ui, sans-serif' }
    const lines = drawn.isStacked ? drawn.lines.toReversed() : drawn.lines
    const widthNow = () => Math.max(160, host.clientWidth)
    this.plot = new uPlot(
      {
        width: widthNow(),
        height,
        // Half a time of day fits beside the end of the axis.
        padding: [8, 20, 0, 0],
        tzDate: ts => uPlot.tzDate(new Date(ts * 1000), timeZone),
        legend: { show: false },
        cursor: { sync: { key: 'hour' }, drag: { x: false, y: false }, y: false, points: { size: 7 } },
        scales: {
          x: {
            time: true,
            range: (_, from, to) => [
              Math.max(from, Math.min(firstKnown(this.props.history), to - shortest)),
              to,
            ],
          },
          y: {
            range: (_, __, most) =>
              drawn.figure === 'share'
                ? [0, 1]
                : [0, most > 0 ? most * 1.1 : drawn.figure === 'latency' ? 0.01 : 1],
          },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 24,
            space: 46,
            values: (_, splits) => splits.map(split => figures.timeOfDay(split * 1000)),
          },
          {
            ...axis,
            grid: { stroke: colourOf('--hairline'), width: 1 },
            size: 58,
            gap: 4,
            space: 26,
            values: (_, splits) => splits.map(ticks[drawn.figure]),
          },
        ],
        series: [
          {},
          ...lines.map(({ colour, kind = 'solid' }, i) => {
            const isGround = drawn.isStacked || (i === 0 && drawn.figure === 'measured')
            return {
              stroke: colourOf(colour),
              width: kind === 'dotted' ? 2 : 1.6,
              dash: dashes[kind],
              points: { show: false },
              // Opaque, because lower areas lie before the higher ones.
              ...(isGround ? { fill: colourOf(colour.replace('line', 'area')) } : {}),
            }
          }),
        ],
        hooks: {
          setCursor: [
            ({ cursor: { idx = null } }) => {
              if (idx !== this.state.at) this.setState({ at: idx })
            },
          ],
        },
      },
      dataOf(drawn, history),
      host,
    )
    this.resizing = new ResizeObserver(() => {
      if (this.plot && widthNow() !== this.plot.width) this.plot.setSize({ width: widthNow(), height })
    })
    this.resizing.observe(host)
  }

  /** @param {{ history: History }} before */
  componentDidUpdate({ history }) {
    if (history !== this.props.history) this.plot?.setData(dataOf(this.props.drawn, this.props.history))
  }

  componentWillUnmount() {
    this.resizing?.disconnect()
    this.plot?.destroy()
  }

  render() {
    const { drawn, history } = this.props
    const { at } = this.state
    const write = figures[drawn.figure]
    const [first] = drawn.lines
    const known = (first?.values(history) ?? []).filter(value => value !== null)
    const most = known.length > 0 ? Math.max(...known) : null
    const time = at === null ? undefined : this.plot?.data[0][at]
    return html`<figure class="chart">
      <figcaption class="row between">
        <h3>${drawn.title}</h3>
        <span class="note">${time !== undefined && figures.timeOfDay(time * 1000, true)}</span>
      </figcaption>
      <ul class="legend note">
        ${drawn.lines.map(({ name, colour, kind, values }) => {
          const style = { width: '18px', borderTop: `${kind === 'dotted' ? 3 : 2}px ${kind} var(${colour})` }
          const all = values(history)
          return html`<li><i class="sample" style=${style}></i>${name} <b>${write(all[at ?? all.length - 1])}</b></li>`
        })}
      </ul>
      <div ref=${this.host} role="img"
        aria-label="${drawn.title}, ${first?.name}: now ${write(first?.values(history).at(-1))}, at most ${write(most)} in the last hour."></div>
    </figure>`
  }
}

/** @param {{ history: History }} props */
export const Charts = ({ history }) => html`<section class="panel" aria-labelledby="hour-title">
  <header><h2 id="hour-title">Last hour</h2></header>
  ${
    history.requestsPerSecond.every(value => value === null) &&
    html`<p class="note">No figures yet: they come with the first requests.</p>`
  }
  <div id="charts" class="cols">
    ${charts.map(drawn => html`<${Chart} key=${drawn.title} drawn=${drawn} history=${history} />`)}
  </div>
</section>`
