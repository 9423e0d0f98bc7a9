// A chart of lines over a common axis, as HTML that needs no script to be read: the lines are an SVG that stretches with the
// page, its labels are text, and its values a table. page/report.js adds the values under the pointer and the arrow keys,
// which it reads from that table.

import { details, escaped, type Html, table } from '../../page/html.ts'
import { lengthOf, type Scale, type Tick } from './scale.ts'

export type Line = {
  readonly name: string
  /** One for each x; null where there is none. */
  readonly values: readonly (number | null)[]
  /** Filled down to the axis. */
  readonly isArea?: boolean
  /** In the colour of what is bad, whatever its place. */
  readonly isBad?: boolean
}

export type LineChart = {
  readonly title: string
  readonly note?: string | undefined
  readonly x: {
    /** The name of x, as the head of the table's first column. */
    readonly label: string
    readonly values: readonly number[]
    readonly scale: Scale
    readonly write: (value: number) => string
  }
  readonly y: { readonly scale: Scale; readonly write: (value: number) => string }
  readonly lines: readonly Line[]
  /** A level to compare with, such as a limit. */
  readonly level?: { readonly name: string; readonly value: number } | undefined
  /** The summary of the table. */
  readonly tableTitle: string
}

/** The number of line styles; further lines repeat them. */
const looks = 8
const lookOf = (at: number, { isBad }: { readonly isBad?: boolean } = {}): string =>
  isBad ? 'look-bad' : `look-${at % looks}`

// Units of the drawing, which is stretched to the room there is.
const size = 1000
const unit = (share: number): string => (share * size).toFixed(1).replace(/\.0$/, '')

/** The path of a line with gaps where there is no value. */
const pathOf = (points: readonly (readonly [x: number, y: number] | null)[]): string => {
  let path = ''
  let isDown = false
  points.forEach((point, i) => {
    if (point) {
      const [x, y] = [unit(point[0]), unit(1 - point[1])]
      path += isDown ? `L${x} ${y}` : `M${x} ${y}`
      // A value between gaps is a dot.
      if (!isDown && !points[i + 1]) path += 'h0'
    }
    isDown = point !== null
  })
  return path
}

/** The path of the area below a line, one closed shape for each run of values. */
const areaOf = (points: readonly (readonly [x: number, y: number] | null)[]): string => {
  let path = ''
  let run: (readonly [number, number])[] = []
  for (const point of [...points, null]) {
    if (point) run.push(point)
    else if (run.length > 0) {
      const [first, last] = [run[0]?.[0] ?? 0, run.at(-1)?.[0] ?? 0]
      path += `M${unit(first)} ${size}${run.map(([x, y]) => `L${unit(x)} ${unit(1 - y)}`).join('')}L${unit(last)} ${size}Z`
      run = []
    }
  }
  return path
}

const labels = (ticks: readonly Tick[], scale: Scale, side: 'left' | 'bottom'): Html =>
  ticks
    .map(
      ({ at, text, isMinor }) =>
        `<span${isMinor ? ' class="minor"' : ''} style="${side}:${lengthOf(scale.shareOf(at))}">${escaped(text)}</span>`,
    )
    .join('')

export type Frame = {
  readonly x: Scale
  readonly y: Scale
  readonly drawing: Html
  readonly label: string
  /** Where each row of the table lies, as shares of the width. */
  readonly at: readonly number[]
}

// Drawings have sizes and colours of their own, for where a page is served under a policy that lets no style through.
const bare = 'fill="none" stroke="currentColor" aria-hidden="true"'

/** A drawing between its two axes. */
export const frameOf = ({ x, y, drawing, label, at }: Frame): Html => {
  const grid = y.ticks.map(tick => `M0 ${unit(1 - y.shareOf(tick.at))}H${size}`).join('')
  const widest = y.ticks.reduce((most, { text }) => (text.length > most.length ? text : most), '')
  return `<div class="frame"><div class="y" aria-hidden="true"><b>${escaped(widest)}</b>${labels(y.ticks, y, 'bottom')}</div><div class="plot" role="img" aria-label="${escaped(label)}" data-at="${at.map(share => (share * 100).toFixed(2)).join(' ')}"><svg width="100%" height="200" viewBox="0 0 ${size} ${size}" preserveAspectRatio="none" ${bare}><path class="grid" d="${grid}"/>${drawing}</svg></div><div class="x" aria-hidden="true">${labels(x.ticks, x, 'left')}</div></div>`
}

const legend = (lines: readonly Line[], level: LineChart['level']): Html => {
  const sample = (look: string): Html =>
    `<svg class="sample" width="24" height="10" viewBox="0 0 24 10" ${bare}><path class="${look}" d="M1 5H23"/></svg>`
  const names = [
    ...lines.map((line, i) => [lookOf(i, line), line.name]),
    ...(level ? [['level', level.name]] : []),
  ]
  return `<ul class="legend">${names.map(([look = '', name = '']) => `<li>${sample(look)}${escaped(name)}</li>`).join('')}</ul>`
}

/** The chart with its title, legend and table. */
export const lineChart = ({ title, note, x, y, lines, level, tableTitle }: LineChart): Html => {
  const shares = x.values.map(x.scale.shareOf)
  const drawn = lines.map((line, i) => {
    const points = shares.map((share, at) => {
      const value = line.values[at]
      return value === null || value === undefined ? null : ([share, y.scale.shareOf(value)] as const)
    })
    const look = lookOf(i, line)
    const area = line.isArea ? `<path class="area ${look}" d="${areaOf(points)}"/>` : ''
    return [area, `<path class="line ${look}" d="${pathOf(points)}"/>`] as const
  })
  // Lines lie over all areas, the first on top.
  const drawing = [0, 1].flatMap(layer => drawn.map(parts => parts[layer]).toReversed()).join('')
  const limit = level
    ? `<path class="line level" d="M0 ${unit(1 - y.scale.shareOf(level.value))}H${size}"/>`
    : ''
  const rows = x.values.map((value, at) => [
    escaped(x.write(value)),
    ...lines.map(({ values }) => {
      const figure = values[at]
      return figure === null || figure === undefined ? '–' : escaped(y.write(figure))
    }),
  ])
  const columns = [{ head: x.label }, ...lines.map(({ name }) => ({ head: name, isNumber: true }))]
  return `<figure class="chart"><figcaption><b>${escaped(title)}</b>${note === undefined ? '' : ` <small>${escaped(note)}</small>`}</figcaption>${legend(lines, level)}${frameOf({ x: x.scale, y: y.scale, drawing: drawing + limit, label: title, at: shares })}${details(tableTitle, table(title, columns, rows))}</figure>`
}
