// Which grid cell a point belongs to. Weather is asked for, kept and answered per cell, at the cell's centre.
// Cells are counted in whole numbers; a point on an edge belongs to the cell north or east of it. Knows no places.

import type { Branded } from '../brand.ts'

/** A cell's name: its centre as `<latitude>,<longitude>`, so that equal names mean equal weather on any grid. */
export type CellId = Branded<'CellId'>

/** A cell and its centre, in decimal degrees. */
export type Cell = { readonly id: CellId; readonly latitude: number; readonly longitude: number }

export type Grid = { cellOf(latitude: number, longitude: number): Cell }

/** @param cellDegrees edge of a cell, 1/n of a degree for a whole n from 1 to 100 */
export const createGrid = (cellDegrees: number): Grid => {
  const perDegree = Math.round(1 / cellDegrees)
  // Multiplying may round a point over an edge, so edges are compared as points are given, in degrees: one division of
  // whole numbers is the number an edge's decimals are read as.
  const indexOf = (degrees: number): number => {
    const nearest = Math.round(degrees * perDegree)
    if (degrees >= (2 * nearest + 1) / (2 * perDegree)) return nearest + 1
    return degrees < (2 * nearest - 1) / (2 * perDegree) ? nearest - 1 : nearest
  }
  // Dividing whole numbers and cutting at four decimals gives every centre one spelling; "+ 0" turns -0 into 0.
  const centre = (degrees: number): number => Number((indexOf(degrees) / perDegree).toFixed(4)) + 0

  return {
    cellOf: (latitude, longitude) => {
      const cell = { latitude: centre(latitude), longitude: centre(longitude) }
      return { id: `${cell.latitude},${cell.longitude}` as CellId, ...cell }
    },
  }
}
