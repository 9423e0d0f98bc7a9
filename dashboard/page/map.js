// The map: the outline of the country and every cell, coloured by state and age, dotted by demand.

import { outline, perDegree } from './outline.js'

/** @typedef {import('./contract.ts').Cell} Cell */
/** @typedef {{ cell: Cell, x: number, y: number, box: SVGElement, dot: SVGElement | undefined, look: string }} Mark */

/** Of the drawing, for a degree of latitude. */
const unitsPerDegree = 100
const margin = 8
const zooms = [1, 1.5, 2, 3, 4]

/** Ages in seconds at which the colour of a fresh cell changes. */
export const ageSteps = [900, 3_600, 10_800]

/** @param {number | null} ageSeconds */
const ageClass = ageSeconds => {
  const step = ageSteps.findIndex(limit => (ageSeconds ?? 0) < limit)
  return `age-${step < 0 ? ageSteps.length : step}`
}

/** @param {Cell} cell @param {number} ageSeconds */
const lookOf = ({ state }, ageSeconds) => (state === 'fresh' ? `fresh ${ageClass(ageSeconds)}` : state)

/** @param {number} demand */
const dotRadius = demand => Math.min(2.9, 1 + Math.log10(1 + demand) * 0.9)

/** @param {string} tag @param {Record<string, string | number>} [attributes] @param {...SVGElement} children @returns {SVGElement} */
const drawn = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value))
  made.append(...children)
  return made
}

/** Patterns, so that no state is shown by its colour alone. */
const patterns = () =>
  drawn(
    'defs',
    {},
    drawn(
      'pattern',
      {
        id: 'pattern-stale',
        patternUnits: 'userSpaceOnUse',
        width: 4,
        height: 4,
        patternTransform: 'rotate(45)',
      },
      drawn('rect', { fill: 'var(--stale)', width: 4, height: 4 }),
      drawn('rect', { fill: 'var(--stale-line)', width: 1.5, height: 4 }),
    ),
    drawn(
      'pattern',
      { id: 'pattern-failed', patternContentUnits: 'objectBoundingBox', width: 1, height: 1 },
      drawn('rect', { fill: 'var(--failed)', width: 1, height: 1 }),
      drawn('path', { stroke: 'var(--failed-line)', d: 'M.18.18.82.82M.82.18.18.82', 'stroke-width': 0.16 }),
    ),
  )

/** How a state and an age look, in the colours of the house and the patterns of the map. @param {string} look */
export const dressOf = look => ({
  class: `cell ${look}`,
  fill:
    look === 'stale' || look === 'failed' ? `url(#pattern-${look})` : `var(--${look.replace('fresh ', '')})`,
  ...(look === 'absent'
    ? { stroke: 'var(--absent-edge)', 'stroke-width': 0.5, 'fill-opacity': 0.65 }
    : { stroke: 'none', 'stroke-width': 0, 'fill-opacity': 1 }),
})

/** @typedef {{ describe: (cell: Cell) => string, ageOf: (cell: Cell) => number, onOpen: (id: string) => void, onChoose: (line: string) => void }} Parts */

/** @param {HTMLElement} host takes the focus @param {Parts} parts */
export const createMap = (host, { describe, ageOf, onOpen, onChoose }) => {
  const land = drawn('g', { fill: 'var(--land)', stroke: 'var(--land-edge)', 'stroke-width': 0.8 })
  const boxes = drawn('g')
  const dots = drawn('g', { class: 'dots', 'pointer-events': 'none', 'stroke-width': 0.7 })
  const cursor = drawn('rect', {
    rx: 1.5,
    visibility: 'hidden',
    fill: 'none',
    stroke: 'var(--ink)',
    'stroke-width': 2,
    'pointer-events': 'none',
  })
  const svg = drawn('svg', { 'aria-hidden': 'true' }, patterns(), land, boxes, dots, cursor)
  host.append(svg)

  /** @type {Map<string, Mark>} */
  const marks = new Map()
  /** @type {Mark | undefined} */
  let chosen
  let cellDegrees = 0.1
  let west = 0
  let north = 0
  let narrowing = 1
  let zoom = 0

  /** @param {number} longitude */
  const xOf = longitude => (longitude - west) * unitsPerDegree * narrowing
  /** @param {number} latitude */
  const yOf = latitude => (north - latitude) * unitsPerDegree

  /** @param {readonly Cell[]} cells */
  const layOut = cells => {
    const latitudes = cells.map(({ latitude }) => latitude)
    const longitudes = cells.map(({ longitude }) => longitude)
    const half = cellDegrees / 2
    west = Math.min(...longitudes) - half
    north = Math.max(...latitudes) + half
    const south = Math.min(...latitudes) - half
    narrowing = Math.cos((((north + south) / 2) * Math.PI) / 180)
    const width = xOf(Math.max(...longitudes) + half)
    const height = yOf(south)
    svg.setAttribute('viewBox', `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`)
    svg.style.aspectRatio = `${width + 2 * margin} / ${height + 2 * margin}`
    const scale = unitsPerDegree / perDegree
    land.setAttribute('transform', `translate(${xOf(0)} ${yOf(0)}) scale(${scale * narrowing} ${scale})`)
    // Each area of land in its own element, below the cells.
    land.replaceChildren(...outline.map(d => drawn('path', { d, 'vector-effect': 'non-scaling-stroke' })))
    const w = cellDegrees * unitsPerDegree * narrowing
    const h = cellDegrees * unitsPerDegree
    const gap = h * 0.05
    cursor.setAttribute('width', `${w + 2 * gap}`)
    cursor.setAttribute('height', `${h + 2 * gap}`)
    const made = cells.map(cell => {
      const x = xOf(cell.longitude)
      const y = yOf(cell.latitude)
      const box = drawn('rect', {
        x: (x - w / 2 + gap).toFixed(2),
        y: (y - h / 2 + gap).toFixed(2),
        width: (w - 2 * gap).toFixed(2),
        height: (h - 2 * gap).toFixed(2),
        rx: 1,
        'data-cell': cell.id,
      })
      marks.set(cell.id, { cell, x, y, box, dot: undefined, look: '' })
      return box
    })
    boxes.replaceChildren(...made)
  }

  /** @param {Mark} mark */
  const paint = mark => {
    const { cell, box } = mark
    const look = lookOf(cell, ageOf(cell))
    if (look !== mark.look) {
      mark.look = look
      for (const [name, value] of Object.entries(dressOf(look))) box.setAttribute(name, String(value))
    }
    if (cell.demand < 0.05) {
      mark.dot?.remove()
      mark.dot = undefined
      return
    }
    if (!mark.dot) {
      mark.dot = drawn('circle', { cx: mark.x.toFixed(2), cy: mark.y.toFixed(2) })
      dots.append(mark.dot)
    }
    const radius = (dotRadius(cell.demand) * cellDegrees * 10).toFixed(1)
    if (mark.dot.getAttribute('r') !== radius) mark.dot.setAttribute('r', radius)
    // On a failed cell a ring, so that the cross under it stays in sight.
    const isRing = cell.state === 'failed'
    mark.dot.setAttribute('fill', isRing ? 'none' : 'var(--dot)')
    mark.dot.setAttribute('stroke', isRing ? 'var(--failed-line)' : 'var(--dot-edge)')
  }

  /** @param {Mark | undefined} mark */
  const choose = mark => {
    chosen = mark
    cursor.setAttribute('visibility', mark ? 'visible' : 'hidden')
    if (!mark) {
      onChoose('')
      return
    }
    cursor.setAttribute('x', `${mark.x - Number(cursor.getAttribute('width')) / 2}`)
    cursor.setAttribute('y', `${mark.y - Number(cursor.getAttribute('height')) / 2}`)
    host.dataset.chosen = mark.cell.id
    onChoose(describe(mark.cell))
  }

  /** The mark that costs least; what costs infinitely much is none. @param {(mark: Mark) => number} costOf */
  const leastBy = costOf => {
    /** @type {Mark | undefined} */
    let best
    let least = Number.POSITIVE_INFINITY
    for (const mark of marks.values()) {
      const cost = costOf(mark)
      if (cost >= least) continue
      least = cost
      best = mark
    }
    return best
  }

  /**
   * The cell that an arrow leads to: the next one of the row, or of the next row the one nearest to straight ahead. So every
   * cell can be reached, over gaps too.
   * @param {number} dx
   * @param {number} dy
   */
  const neighbour = (dx, dy) => {
    const from = chosen
    if (!from) return undefined
    return leastBy(mark => {
      const along = (mark.x - from.x) * dx + (mark.y - from.y) * dy
      const across = Math.abs((mark.x - from.x) * dy + (mark.y - from.y) * dx)
      return along < 1 || (dx !== 0 && across > 1) ? Number.POSITIVE_INFINITY : along * 1_000 + across
    })
  }

  /** The cell that is most in demand, where a walk begins. */
  const first = () => leastBy(({ cell }) => -cell.demand)

  /** @param {MouseEvent} event */
  const under = event => {
    const matrix = /** @type {SVGSVGElement} */ (svg).getScreenCTM()
    if (!matrix) return undefined
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse())
    const nearest = leastBy(mark => Math.hypot(mark.x - x, mark.y - y))
    const isNear = nearest && Math.hypot(nearest.x - x, nearest.y - y) < cellDegrees * unitsPerDegree
    return isNear ? nearest : undefined
  }

  /** @type {Record<string, [dx: number, dy: number]>} */
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }
  host.addEventListener('keydown', event => {
    const arrow = arrows[event.key]
    if (arrow && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault()
      choose(chosen ? (neighbour(...arrow) ?? chosen) : first())
      if (zoom > 0) cursor.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    } else if ((event.key === 'Enter' || event.key === ' ') && chosen) {
      event.preventDefault()
      onOpen(chosen.cell.id)
    }
  })
  host.addEventListener('focus', () => {
    if (!chosen && host.matches(':focus-visible')) choose(first())
  })
  host.addEventListener('pointermove', event => {
    const mark = under(event)
    if (mark && mark !== chosen) choose(mark)
  })
  host.addEventListener('click', event => {
    const mark = under(event)
    if (!mark) return
    choose(mark)
    onOpen(mark.cell.id)
  })

  return {
    /** @param {import('./contract.ts').Cells} cells every cell */
    setAll: cells => {
      const isSame =
        cells.cellDegrees === cellDegrees &&
        cells.cells.length === marks.size &&
        cells.cells.every(({ id }) => marks.has(id))
      cellDegrees = cells.cellDegrees
      if (!isSame) {
        marks.clear()
        boxes.replaceChildren()
        dots.replaceChildren()
        if (cells.cells.length > 0) layOut(cells.cells)
        if (chosen) choose(marks.get(chosen.cell.id))
      }
      for (const cell of cells.cells) {
        const mark = marks.get(cell.id)
        if (mark) mark.cell = cell
      }
    },
    /** Paints every cell again: ages change although nothing happens. */
    paint: () => {
      for (const mark of marks.values()) paint(mark)
      if (chosen) onChoose(describe(chosen.cell))
    },
    /** @param {string} id */
    choose: id => choose(marks.get(id)),
    /** @param {1 | -1} step @returns {{ isFirst: boolean, isLast: boolean }} */
    zoom: step => {
      zoom = Math.min(zooms.length - 1, Math.max(0, zoom + step))
      host.style.width = `${(zooms[zoom] ?? 1) * 100}%`
      svg.style.maxHeight = zoom === 0 ? '' : 'none'
      if (chosen) cursor.scrollIntoView({ block: 'center', inline: 'center' })
      return { isFirst: zoom === 0, isLast: zoom === zooms.length - 1 }
    },
  }
}
