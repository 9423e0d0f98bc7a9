// A chart of points over two figures, such as hits over what they cost, with a table of them. A line joins the points that no
// other beats; see pareto.ts for which these are.

import { type Column, details, escaped, type Html, table } from '../../page/html.ts'
import { frameOf } from './line-chart.ts'
import { lengthOf, type Scale } from './scale.ts'

export type Point = {
  /** A short name that stands beside it. */
  readonly name: string
  readonly x: number
  readonly y: number
  /** Whether no other beats it. */
  readonly isBest: boolean
}

export type ScatterChart = {
  readonly title: string
  readonly note?: string | undefined
  readonly x: { readonly label: string; readonly scale: Scale; readonly write: (value: number) => string }
  readonly y: { readonly label: string; readonly scale: Scale; readonly write: (value: number) => string }
  readonly points: readonly Point[]
  /** The head of the names in the table. */
  readonly nameLabel: string
  readonly tableTitle: string
}

const unit = (share: number): string => (share * 1000).toFixed(1)

type Side = 'after' | 'before' | 'above' | 'below'

/** On which side of its point each name stands, so that names do not lie on each other: as on a phone, where it is narrow. */
const sidesOf = (
  points: readonly { readonly name: string; readonly at: readonly [number, number] }[],
): Side[] => {
  const [width, height] = [280, 280]
  type Box = readonly [left: number, bottom: number, right: number, top: number]
  const taken: Box[] = points.map(({ at: [x, y] }) => {
    const [left, bottom] = [x * width, y * height]
    return [left - 7, bottom - 7, left + 7, bottom + 7]
  })
  const overlap = (a: Box, b: Box): boolean => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
  return points.map(({ name, at: [x, y] }) => {
    const [left, bottom, wide] = [x * width, y * height, name.length * 7]
    const boxes: Record<Side, Box> = {
      after: [left + 9, bottom - 8, left + 9 + wide, bottom + 8],
      before: [left - 9 - wide, bottom - 8, left - 9, bottom + 8],
      above: [left - wide / 2, bottom + 8, left + wide / 2, bottom + 24],
      below: [left - wide / 2, bottom - 24, left + wide / 2, bottom - 8],
    }
    const inside = ([from, , to]: Box): boolean => from >= 0 && to <= width
    const sides = Object.keys(boxes) as Side[]
    const side =
      sides.find(each => inside(boxes[each]) && !taken.some(other => overlap(boxes[each], other))) ??
      (x > 0.5 ? 'before' : 'after')
    taken.push(boxes[side])
    return side
  })
}

/** The chart with its title and table. */
export const scatterChart = (chart: ScatterChart): Html => {
  const { title, note, x, y, nameLabel, tableTitle } = chart
  const points = chart.points.toSorted((a, b) => a.x - b.x)
  const best = points.filter(({ isBest }) => isBest)
  const rises = (i: number): number => Math.sign((best[i]?.y ?? 0) - (best[i - 1]?.y ?? 0))
  // Where more than these two figures decide, the best are no line in them.
  const isLine = new Set(best.slice(1).flatMap((_, i) => rises(i + 1) || [])).size <= 1
  const front = (isLine ? best : []).map(
    (point, i) =>
      `${i === 0 ? 'M' : 'L'}${unit(x.scale.shareOf(point.x))} ${unit(1 - y.scale.shareOf(point.y))}`,
  )
  const placed = points.map(point => ({
    ...point,
    at: [x.scale.shareOf(point.x), y.scale.shareOf(point.y)] as const,
  }))
  const sides = sidesOf(placed)
  const dots = placed.map(({ at: [left, bottom], ...point }, i) => {
    return `<span class="point ${sides[i]}${point.isBest ? ' best' : ''}" style="left:${lengthOf(left)};bottom:${lengthOf(bottom)}"><i></i><b>${escaped(point.name)}</b></span>`
  })
  const frame = frameOf({
    x: x.scale,
    y: y.scale,
    drawing: `<path class="line front" d="${front.join('')}"/>`,
    label: title,
    at: points.map(point => x.scale.shareOf(point.x)),
  }).replace('</svg></div>', `</svg>${dots.join('')}</div>`)
  const columns: Column[] = [
    { head: nameLabel },
    { head: x.label, isNumber: true },
    { head: y.label, isNumber: true },
  ]
  const rows = points.map(point => [
    `${escaped(point.name)}${point.isBest ? ' ★' : ''}`,
    escaped(x.write(point.x)),
    escaped(y.write(point.y)),
  ])
  return `<figure class="chart scatter"><figcaption><b>${escaped(title)}</b>${note === undefined ? '' : ` <small>${escaped(note)}</small>`}</figcaption><p class="axis-name">↑ ${escaped(y.label)}</p>${frame}<p class="axis-name end">${escaped(x.label)} →</p>${details(tableTitle, table(title, columns, rows))}</figure>`
}
