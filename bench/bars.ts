// Draws a bar chart of named groups of two or three bars as an SVG that reads on light and on dark pages.

import { drawing, escaped, niceStep } from './chart.ts'

export type Bars = {
  readonly title: string
  /** The names of the bars of a group, at most three. */
  readonly kinds: readonly string[]
  readonly bars: readonly { readonly name: string; readonly values: readonly number[] }[]
  /** Digits after the point, of the figures beside the bars. */
  readonly digits: number
}

const width = 760
const [left, top, bottom, barHeight] = [128, 64, 16, 13]

/** The whole text of the file. */
export const bars = ({ title, kinds, bars: groups, digits }: Bars): string => {
  const groupHeight = kinds.length * barHeight + 8
  // For the figures behind the longest bar.
  const right = 56 + kinds.length * 36
  const height = top + groups.length * groupHeight + bottom + 20
  const most = Math.max(...groups.flatMap(({ values }) => values), 1e-9)
  const step = niceStep(most)
  const end = Math.ceil((most / step) * 1.001) * step
  const xOf = (value: number): number => left + (value / end) * (width - left - right)
  const floor = top + groups.length * groupHeight
  const parts: string[] = []
  for (let x = 0; x <= end + step / 2; x += step)
    parts.push(
      `<line class="grid" x1="${xOf(x).toFixed(1)}" x2="${xOf(x).toFixed(1)}" y1="${top - 6}" y2="${floor}"/>`,
      `<text x="${xOf(x).toFixed(1)}" y="${floor + 18}" text-anchor="middle">${Number(x.toPrecision(6)).toLocaleString('en-GB')}</text>`,
    )
  kinds.forEach((kind, i) => {
    parts.push(
      `<rect class="bar${i}" x="${left + i * 130}" y="36" width="12" height="12"/>`,
      `<text x="${left + i * 130 + 18}" y="47">${escaped(kind)}</text>`,
    )
  })
  const middle = (kinds.length * barHeight) / 2 + 3
  groups.forEach(({ name, values }, row) => {
    const y = top + row * groupHeight
    values.forEach((value, i) => {
      parts.push(
        `<rect class="bar${i}" x="${left}" y="${y + i * barHeight}" width="${(xOf(value) - left).toFixed(1)}" height="11"/>`,
      )
    })
    const label = values.map(value => value.toFixed(digits)).join(' / ')
    parts.push(
      `<text x="${left - 8}" y="${y + middle}" text-anchor="end">${escaped(name)}</text>`,
      `<text x="${(xOf(Math.max(...values)) + 8).toFixed(1)}" y="${y + middle}">${label}</text>`,
    )
  })
  return drawing({ title, width, height, left }, parts)
}
