// A line chart as SVG, for figures that people would rather look at: panels below one another over one axis. Readable
// on light and dark pages.

type Panel = {
  readonly label: string
  readonly points: readonly (readonly [x: number, y: number])[]
  readonly max?: number
}

export type Chart = {
  readonly title: string
  readonly x: { readonly label: string; readonly max: number; readonly step: number }
  readonly panels: readonly Panel[]
}

const width = 720
const panelHeight = 170
const margin = { left: 70, right: 20, top: 56, between: 44, bottom: 48 }

export const chart = ({ title, x, panels }: Chart): string => {
  const height = margin.top + panels.length * (panelHeight + margin.between) + margin.bottom - margin.between
  const innerWidth = width - margin.left - margin.right
  const xOf = (value: number) => margin.left + (value / x.max) * innerWidth
  const ticks = Array.from({ length: Math.floor(x.max / x.step) + 1 }, (_, i) => i * x.step)
  const drawn = panels.map(({ label, points, max }, i) => {
    const top = margin.top + i * (panelHeight + margin.between)
    const most = max ?? niceAbove(Math.max(...points.map(([, y]) => y)))
    const yOf = (value: number) => top + panelHeight * (1 - value / most)
    const line = points.map(([px, py]) => `${xOf(px).toFixed(1)},${yOf(py).toFixed(1)}`).join(' ')
    const levels = [0, 0.25, 0.5, 0.75, 1].map(share => share * most)
    return [
      ...levels.map(
        level =>
          `<line class="grid" x1="${margin.left}" x2="${width - margin.right}" y1="${yOf(level)}" y2="${yOf(level)}"/>` +
          `<text class="small" x="${margin.left - 8}" y="${yOf(level) + 4}" text-anchor="end">${level.toLocaleString('en')}</text>`,
      ),
      ...ticks.map(
        tick =>
          `<line class="grid" x1="${xOf(tick)}" x2="${xOf(tick)}" y1="${top}" y2="${top + panelHeight}"/>`,
      ),
      `<text x="${margin.left}" y="${top - 10}">${label}</text>`,
      `<polyline class="line line${i}" points="${line}"/>`,
    ].join('\n')
  })
  const foot = height - margin.bottom
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<style>
  text { font: 13px system-ui, sans-serif; fill: #333 }
  .title { font-size: 16px; font-weight: 600 }
  .small { font-size: 11px; fill: #666 }
  .grid { stroke: #8884; stroke-width: 1 }
  .line { fill: none; stroke-width: 2 }
  .line0 { stroke: #1f6fb4 }
  .line1 { stroke: #b4591f }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .small { fill: #aaa }
    .line0 { stroke: #6db3f2 }
    .line1 { stroke: #f2a66d }
  }
</style>
<text class="title" x="${margin.left}" y="24">${title}</text>
${drawn.join('\n')}
${ticks.map(tick => `<text class="small" x="${xOf(tick)}" y="${foot + 16}" text-anchor="middle">${tick.toLocaleString('en')}</text>`).join('\n')}
<text x="${margin.left + innerWidth / 2}" y="${foot + 36}" text-anchor="middle">${x.label}</text>
</svg>
`
}

// The next of 1, 2, 4, 6, 8 times a power of ten.
const niceAbove = (value: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)))
  return [1, 2, 4, 6, 8, 10].map(step => step * power).find(step => step >= value) ?? value
}
