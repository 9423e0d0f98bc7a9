// Makes page/outline.js, the outline that the map of the dashboard draws, from a GeoJSON file of areas:
// `node dashboard/draw-outline.ts AREAS.geojson > dashboard/page/outline.js`. Points are moved to a grid, so
// that areas which share a border still share it afterwards. The gateway never runs this.

import { readFileSync } from 'node:fs'

type Point = readonly [longitude: number, latitude: number]
type Areas = {
  readonly features: readonly {
    readonly geometry:
      | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Point[])[] }
      | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly (readonly Point[])[])[] }
  }[]
}

/** Of the grid, per degree: two kilometres, a fifth of a cell. */
const perDegree = 50
/** Islands that are smaller than this many squares of the grid are left out. */
const smallest = 6

const snapped = (ring: readonly Point[]): Point[] => {
  const kept: Point[] = []
  for (const [longitude, latitude] of ring) {
    const point: Point = [Math.round(longitude * perDegree), Math.round(latitude * perDegree)]
    // Back and forth on one line, or a point in the middle of one.
    while (kept.length > 1 && turn(kept.at(-2) as Point, kept.at(-1) as Point, point) === 0) kept.pop()
    if (kept.at(-1)?.join() !== point.join()) kept.push(point)
  }
  if (kept.length > 1 && kept[0]?.join() === kept.at(-1)?.join()) kept.pop()
  return kept
}

const turn = ([ax, ay]: Point, [bx, by]: Point, [cx, cy]: Point): number =>
  (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)

const areaOf = (ring: readonly Point[]): number =>
  Math.abs(
    ring.reduce((sum, [x, y], i) => {
      const [nextX, nextY] = ring[(i + 1) % ring.length] as Point
      return sum + x * nextY - nextX * y
    }, 0) / 2,
  )

/** Of SVG, in squares of the grid, with the north up. */
const pathOf = (ring: readonly Point[]): string =>
  ring
    .map(([x, y], i) => {
      const [beforeX, beforeY] = ring[i - 1] ?? [0, 0]
      return i === 0 ? `M${x} ${-y}l` : `${x - beforeX} ${beforeY - y}`
    })
    .join(' ')
    .replace('l ', 'l')
    .replaceAll(' -', '-')
    .concat('z')

const [, , path = ''] = process.argv
const { features } = JSON.parse(readFileSync(path, 'utf8')) as Areas
const areas = features.map(({ geometry }) =>
  (geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates)
    .flat()
    .map(snapped)
    .filter(ring => areaOf(ring) >= smallest)
    .map(pathOf)
    .join(''),
)
process.stdout.write(`// Written by ../draw-outline.ts: the eight divisions of Bangladesh as paths of SVG, in ${perDegree}ths of a degree, east and south.
// From the boundaries in the R package bangladesh 1.0.0, MIT licence, copyright 2022 its authors (docs/catalogue.md).

export const perDegree = ${perDegree}

/** One path for each division. */
export const outline = [
${areas.map(area => `  '${area}',`).join('\n')}
]
`)
