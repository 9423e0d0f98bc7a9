// Draws lines over a common axis, in panels one below the other, as an SVG that reads on light and on dark pages.

/** About four to six steps of 1, 2 or 5 times a power of ten. */
export const niceStep = (most: number): number => {
  const power = 10 ** Math.floor(Math.log10(most / 4))
  return power * ([1, 2, 5, 10].find(factor => most / (power * factor) <= 6) ?? 10)
}

type Line = { readonly name: string; readonly points: readonly (readonly [x: number, y: number])[] }

export type Chart = {
  readonly title: string
  /** @property text the text of a tick; the number itself when not given */
  readonly x: {
    readonly label: string
    readonly min?: number
    readonly max: number
    readonly step: number
    readonly text?: (at: number) => string
  }
  /** Points of a `log` panel are powers of ten: 3 stands for 1,000. */
  readonly panels: readonly { readonly label: string; readonly lines: readonly Line[]; readonly log?: true }[]
}

const width = 760
const panelHeight = 190
const [left, right, top, gap, bottom] = [64, 92, 44, 44, 48]

const style = `
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .ground { fill: #ffffff } .grid { stroke: #d0d7de } .axis { stroke: #57606a }
  polyline { fill: none; stroke-width: 2; stroke-linejoin: round }
  .line0 { stroke: #0969da } .line1 { stroke: #bc4c00 } .line2 { stroke: #6e7781; stroke-dasharray: 6 4 }
  .name0, .bar0 { fill: #0969da } .name1, .bar1 { fill: #bc4c00 } .name2, .bar2 { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .ground { fill: #0d1117 } .grid { stroke: #30363d } .axis { stroke: #8b949e }
    .line0 { stroke: #58a6ff } .line1 { stroke: #f0883e } .line2 { stroke: #8b949e }
    .name0, .bar0 { fill: #58a6ff } .name1, .bar1 { fill: #f0883e } .name2 { fill: #8b949e }
  }`

export const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

const fromZero = (values: readonly number[]) => {
  const most = Math.max(...values, 1e-9)
  const step = niceStep(most)
  return {
    least: 0,
    ceiling: Math.ceil((most / step) * 1.02) * step,
    step,
    textOf: (y: number) => Number(y.toPrecision(6)).toLocaleString('en-GB'),
  }
}

const powersOfTen = (values: readonly number[]) => {
  const least = Math.floor(Math.min(...values))
  const ceiling = Math.max(Math.ceil(Math.max(...values)), least + 1)
  return { least, ceiling, step: Math.ceil((ceiling - least) / 6), textOf: powerOfTen }
}

/** The number with this logarithm, as people write it: 0.01, 100, 10k, 1M. */
export const powerOfTen = (exponent: number): string => {
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P']
  const thousands = Math.max(0, Math.floor(exponent / 3))
  return `${Number((10 ** (exponent - 3 * thousands)).toPrecision(1))}${prefixes[thousands]}`
}

/** The whole text of the file. */
export const chart = ({ title, x, panels }: Chart): string => {
  const height = top + panels.length * (panelHeight + gap) - gap + bottom
  const { min = 0, text = String } = x
  const xOf = (value: number): number => left + ((value - min) / (x.max - min)) * (width - left - right)
  const parts: string[] = []
  panels.forEach(({ label, lines, log }, i) => {
    const floor = top + i * (panelHeight + gap) + panelHeight
    const { least, ceiling, step, textOf } = (log ? powersOfTen : fromZero)(
      lines.flatMap(({ points }) => points.map(([, y]) => y)),
    )
    const yOf = (value: number): number => floor - ((value - least) / (ceiling - least)) * (panelHeight - 16)
    for (let y = least; y <= ceiling + step / 2; y += step)
      parts.push(
        `<line class="grid" x1="${left}" x2="${width - right}" y1="${yOf(y).toFixed(1)}" y2="${yOf(y).toFixed(1)}"/>`,
        `<text x="${left - 8}" y="${(yOf(y) + 4).toFixed(1)}" text-anchor="end">${textOf(y)}</text>`,
      )
    for (let at = min; at <= x.max; at += x.step)
      parts.push(
        `<line class="axis" x1="${xOf(at).toFixed(1)}" x2="${xOf(at).toFixed(1)}" y1="${floor}" y2="${floor + 4}"/>`,
        `<text x="${xOf(at).toFixed(1)}" y="${floor + 18}" text-anchor="middle">${text(at)}</text>`,
      )
    parts.push(
      `<line class="axis" x1="${left}" x2="${width - right}" y1="${floor}" y2="${floor}"/>`,
      `<text x="${left}" y="${floor - panelHeight + 6}">${escaped(label)}</text>`,
    )
    const placed: number[] = []
    lines.forEach(({ name, points }, n) => {
      const at = points.map(([px, py]) => `${xOf(px).toFixed(1)},${yOf(py).toFixed(1)}`).join(' ')
      let nameY = yOf(points.at(-1)?.[1] ?? 0) + 4
      // Names of lines with nearby ends are placed one below the other.
      while (placed.some(other => Math.abs(other - nameY) < 14)) nameY += 14
      placed.push(nameY)
      parts.push(
        `<polyline class="line${n}" points="${at}"/>`,
        `<text class="name${n}" x="${width - right + 8}" y="${nameY.toFixed(1)}">${escaped(name)}</text>`,
      )
    })
  })
  parts.push(
    `<text x="${(left + width - right) / 2}" y="${height - 10}" text-anchor="middle">${escaped(x.label)}</text>`,
  )
  return drawing({ title, width, height, left }, parts)
}

/** The whole text of a drawing: its title over its parts. */
export const drawing = (
  {
    title,
    width,
    height,
    left,
  }: { title: string; width: number; height: number /** Where the title begins. */; left: number },
  parts: readonly string[],
): string => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">
<style>${style}
</style>
<rect class="ground" width="${width}" height="${height}"/>
<text class="title" x="${left}" y="24">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`
