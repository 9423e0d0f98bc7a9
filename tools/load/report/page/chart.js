// A chart of a report, drawn by uPlot: with a legend, values by pointer and arrow keys, and a table of all values.

import { colourOf } from 'abohawa/common/page/preferences.js'
import uPlot from 'uplot'
import { pointLabels } from './point-labels.js'

/** @typedef {(value: number) => string} Write */
/** @typedef {(number | null | undefined)[]} Values */
/**
 * @typedef {object} Chart
 * @property {string} title
 * @property {string} [note]
 * @property {{ name: string, values: number[], write: Write, tick?: Write, axis?: uPlot.Axis, scale?: uPlot.Scale, timeZone?: string }} x ascending; with a zone, seconds since the epoch
 * @property {{ name?: string, write: Write, tick?: Write, axis?: uPlot.Axis, scale: uPlot.Scale }} y
 * @property {{ name: string, values: Values, isArea?: boolean }[]} lines
 * @property {string[]} [points] the names of points; then the chart has points instead of lines
 */

// Lines differ by dashes as well as colour.
const looks = [
  { colour: '--line-1', dash: [] },
  { colour: '--line-3', dash: [7, 4] },
  { colour: '--line-2', dash: [2, 3] },
  { colour: '--ink', dash: [10, 3, 2, 3] },
  { colour: '--muted', dash: [14, 4] },
  { colour: '--line-1', dash: [2, 6] },
  { colour: '--line-3', dash: [3, 3] },
  { colour: '--ink', dash: [4, 8] },
]
export const mostLines = looks.length

/**
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name @param {string} className @param {(Node | string)[]} children
 */
const made = (name, className, ...children) => {
  const element = document.createElement(name)
  if (className) element.className = className
  element.append(...children)
  return element
}

/** A piece of a line for the legend. @param {{ colour: string, dash: number[] }} look */
const sampleOf = ({ colour, dash }) => {
  const sample = made('span', 'sample')
  sample.innerHTML = `<svg width="26" height="4"><path d="M0 2h26" stroke="${colourOf(colour)}" stroke-width="2" stroke-dasharray="${dash.join(' ')}"/></svg>`
  return sample
}

/** @param {number} place of a line */
const lookOf = place => looks[place % mostLines] ?? { colour: '--ink', dash: [] }

const font = '12px system-ui, sans-serif'

/** @param {Chart} chart */
const tableOf = ({ title, x, y, lines, points }) => {
  /** @param {string[]} texts @param {boolean} isHead */
  const rowOf = (texts, isHead) =>
    made(
      'tr',
      '',
      ...texts.map((text, i) => made(isHead || i === 0 ? 'th' : 'td', i === 0 ? '' : 'number', text)),
    )
  const heads = [...(points ? ['Setting'] : []), x.name, ...lines.map(({ name }) => name)]
  const rows = x.values.flatMap((at, i) => {
    const values = lines.map(line => line.values[i])
    if (values.every(value => value === null || value === undefined)) return []
    const name = points ? [points[i] ?? ''] : []
    return rowOf([...name, x.write(at), ...values.map(value => textOf(y, value))], false)
  })
  const body = made('tbody', '', ...rows)
  const scroll = made('div', 'scroll', made('table', '', made('thead', '', rowOf(heads, true)), body))
  scroll.tabIndex = 0
  scroll.role = 'group'
  scroll.ariaLabel = title
  return scroll
}

/** @param {Chart['y']} y @param {number | null | undefined} value */
const textOf = (y, value) => (value === null || value === undefined ? '–' : y.write(value))

/** Draws when the figure has a width; `redraw` draws again for another theme. @param {Chart} chart */
export const figureOf = chart => {
  const { title, note, x, y, lines, points } = chart
  const remark = made('small', '', note ?? '')
  const values = lines.map(() => made('b', ''))
  const legend = made('ul', 'legend')
  const host = made('div', points ? 'plot points' : 'plot')
  const details = made('details', '', made('summary', '', 'Values as a table'))
  const caption = made('figcaption', '', made('h3', '', title), remark)
  const figure = made('figure', 'chart', caption, legend, host, details)
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(tableOf(chart))
  })

  /** @type {uPlot | undefined} */
  let plot
  let at = -1
  /** Shows the values at a place; undefined shows none. @param {number | undefined} place */
  const write = place => {
    const name = points && place !== undefined ? `${points[place]}, ${x.name}: ` : ''
    const where = place === undefined ? '' : `${name}${x.write(x.values[place] ?? 0)}`
    remark.textContent = where || (note ?? '')
    const texts = lines.map(line => (place === undefined ? '' : textOf(y, line.values[place])))
    values.forEach((value, i) => {
      value.textContent = texts[i] ?? ''
    })
    if (place === undefined) return
    at = place
    host.ariaValueNow = String(place)
    host.ariaValueText = [where, ...lines.map(({ name }, i) => `${name} ${texts[i]}`)].join(', ')
  }
  /** @param {number} place */
  const show = place => {
    const next = Math.max(0, Math.min(x.values.length - 1, place))
    const value = lines.map(line => line.values[next]).find(each => typeof each === 'number')
    plot?.setCursor({
      left: plot.valToPos(x.values[next] ?? 0, 'x'),
      top: typeof value === 'number' ? plot.valToPos(value, 'y') : 0,
    })
    write(next)
  }
  const hide = () => {
    plot?.setCursor({ left: -10, top: -10 })
    write(undefined)
  }

  const redraw = () => {
    const width = host.clientWidth
    if (width === 0) return
    plot?.destroy()
    legend.replaceChildren(
      ...lines.map(({ name }, i) =>
        made('li', '', ...(points ? [] : [sampleOf(lookOf(i))]), `${name} `, values[i] ?? ''),
      ),
    )
    const grid = { stroke: colourOf('--hairline'), width: 1 }
    const axis = { stroke: colourOf('--muted'), font, ticks: { show: false }, grid }
    /** A logarithmic axis has marks without text. @param {Write} mark */
    const marks = mark => (/** @type {uPlot} */ _, /** @type {(number | null)[]} */ splits) =>
      splits.map(split => (split === null ? '' : mark(split)))
    plot = new uPlot(
      {
        width,
        height: points ? 280 : 210,
        padding: [10, 24, 0, 0],
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { size: 8 } },
        tzDate: at => uPlot.tzDate(new Date(at * 1000), x.timeZone ?? 'UTC'),
        scales: { x: { time: x.timeZone !== undefined, ...x.scale }, y: y.scale },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 28,
            space: 64,
            values: marks(x.tick ?? x.write),
            ...x.axis,
          },
          {
            ...axis,
            space: 30,
            size: (_, texts) => 18 + 6.4 * Math.max(3, ...(texts ?? []).map(text => text.length)),
            values: marks(y.tick ?? y.write),
            ...y.axis,
          },
        ],
        series: [
          {},
          ...lines.map(({ isArea }, i) => {
            const { colour, dash } = lookOf(i)
            const stroke = colourOf(colour)
            const fill = isArea ? colourOf('--area-1') : undefined
            return points
              ? { paths: () => null, points: { show: true, size: 9, stroke, fill: stroke } }
              : { stroke, dash, width: 2, points: { show: x.values.length === 1 }, ...(fill && { fill }) }
          }),
        ],
        hooks: {
          setCursor: [({ cursor: { left = -1, idx } }) => write(left < 0 ? undefined : (idx ?? undefined))],
          draw: [
            ({ ctx, valToPos }) => {
              const scale = devicePixelRatio
              ctx.font = `${12 * scale}px system-ui, sans-serif`
              ctx.fillStyle = colourOf('--ink')
              ctx.textAlign = 'left'
              ctx.textBaseline = 'middle'
              const named = (points ?? []).map((name, i) => ({
                name,
                x: valToPos(x.values[i] ?? 0, 'x', true),
                y: valToPos(lines[0]?.values[i] ?? 0, 'y', true),
              }))
              const labels = pointLabels(named, {
                widthOf: text => ctx.measureText(text).width,
                size: 12 * scale,
                gap: 9 * scale,
                right: ctx.canvas.width,
              })
              for (const { text, x, y } of labels) ctx.fillText(text, x, y)
            },
          ],
        },
      },
      /** @type {uPlot.AlignedData} */ ([x.values, ...lines.map(line => line.values)]),
      host,
    )
  }

  host.tabIndex = 0
  host.role = 'slider'
  host.ariaLabel = title
  host.ariaValueMin = '0'
  host.ariaValueMax = String(Math.max(0, x.values.length - 1))
  host.ariaValueNow = '0'
  host.addEventListener('focus', () => {
    if (host.matches(':focus-visible')) show(Math.max(0, at))
  })
  host.addEventListener('blur', hide)
  host.addEventListener('keydown', event => {
    /** @type {Record<string, number>} */
    const targets = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      Home: 0,
      End: x.values.length - 1,
    }
    const target = targets[event.key]
    if (event.key === 'Escape') hide()
    if (target === undefined) return
    event.preventDefault()
    show(target)
  })
  new ResizeObserver(() => {
    if (host.clientWidth !== plot?.width) redraw()
  }).observe(host)
  return { figure, redraw }
}
