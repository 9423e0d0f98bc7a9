// Maps points to grid cells. Weather is fetched, cached and served per cell, for its centre. A point on an edge belongs to the cell north
// or east of it.

import type { Branded } from '../common/brand.ts'

/** A cell's name: its centre as `<latitude>,<longitude>`, so that equal names mean equal weather on any grid. */
export type CellId = Branded<'CellId'>

/** A cell and its centre, in decimal degrees. */
export type Cell = { readonly id: CellId; readonly latitude: number; readonly longitude: number }

/** Cells that may be made one by one: the finest grid has hundreds of thousands in a country. */
export type Cells = Iterable<Cell> & { readonly length: number }

/** The cells in parts, so that the event loop is free in between. */
export function* inParts(cells: Cells, most: number): Generator<Cell[]> {
  let part: Cell[] = []
  for (const cell of cells) {
    part.push(cell)
    if (part.length < most) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}

export type Grid = ReturnType<typeof createGrid>

export type Box = Readonly<Record<'south' | 'west' | 'north' | 'east', number>>

// The first exceeds the columns of the finest grid, the second the number of the country’s cells on a usual one.
const indicesApart = 100_000
const maxKnown = 20_000

/**
 * @param cellDegrees edge of a cell, 1/n of a degree for a whole n from 1 to 100
 * @param area where the cells lie that may be named, by default the globe; all points lie on it
 */
export const createGrid = (
  cellDegrees: number,
  area: Box = { south: -90, west: -180, north: 90, east: 180 },
) => {
  const perDegree = Math.round(1 / cellDegrees)
  // Multiplying may round a point over an edge, so a point is compared with edges in degrees: dividing two whole numbers
  // gives exactly the number that an edge's decimals are parsed as.
  const indexOf = (degrees: number): number => {
    const nearest = Math.round(degrees * perDegree)
    if (degrees >= (2 * nearest + 1) / (2 * perDegree)) return nearest + 1
    return degrees < (2 * nearest - 1) / (2 * perDegree) ? nearest - 1 : nearest
  }
  // Dividing whole numbers and rounding to four decimals gives every centre one spelling; "+ 0" turns -0 into 0.
  const centre = (degrees: number): number => Number((indexOf(degrees) / perDegree).toFixed(4)) + 0

  const cellAround = (latitude: number, longitude: number): Cell => {
    const centres = { latitude: centre(latitude), longitude: centre(longitude) }
    return { id: `${centres.latitude},${centres.longitude}` as CellId, ...centres }
  }

  // One object per cell, so that data kept with it is kept once.
  let known = new Map<number, Cell>()
  const indexAt = (latitude: number, longitude: number): number =>
    indexOf(latitude) * indicesApart + indexOf(longitude)
  const cellOf = (latitude: number, longitude: number): Cell => {
    const place = indexAt(latitude, longitude)
    const before = known.get(place)
    if (before) return before
    const cell = cellAround(latitude, longitude)
    if (known.size >= maxKnown) known = new Map()
    known.set(place, cell)
    return cell
  }
  /** For a walk over very many cells: keeping them would take 20 ms at a time of V8, and the place of those that are in use. */
  const passingCell = (latitude: number, longitude: number): Cell =>
    known.get(indexAt(latitude, longitude)) ?? cellAround(latitude, longitude)
  const within = (from: number, to: number): number[] => {
    const first = indexOf(from)
    const centres = Array.from({ length: Math.max(0, indexOf(to) - first + 1) }, (_, i) =>
      centre((first + i) / perDegree),
    )
    return centres.filter(degrees => degrees >= from && degrees <= to)
  }

  // False for NaN. The centre of a cell on the edge may lie beyond it.
  const isBetween = (degrees: number, from: number, to: number): boolean =>
    indexOf(degrees) >= indexOf(from) && indexOf(degrees) <= indexOf(to)

  return {
    cellOf,
    /** The cell of this name, or undefined when none in the area of this grid has it. */
    cellNamed: (id: string): Cell | undefined => {
      const [latitude = Number.NaN, longitude = Number.NaN] = id.split(',').map(Number)
      // Names come from outside: beyond the globe one has the place of another cell, so it is checked first.
      if (!isBetween(latitude, area.south, area.north) || !isBetween(longitude, area.west, area.east))
        return undefined
      return cellAround(latitude, longitude).id === id ? cellOf(latitude, longitude) : undefined
    },
    /** All cells whose centre lies in a box, edges included. */
    cellsIn: ({ south, west, north, east }: Box): Cells => {
      const [latitudes, longitudes] = [within(south, north), within(west, east)]
      return {
        length: latitudes.length * longitudes.length,
        *[Symbol.iterator]() {
          for (const latitude of latitudes)
            for (const longitude of longitudes) yield passingCell(latitude, longitude)
        },
      }
    },
  }
}
