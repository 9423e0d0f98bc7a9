// Many cells of one grid as a short text, readable without a catalogue: a bit for each cell of the box around them, six to a character.

import * as z from 'zod'
import type { Cell } from './cell.ts'

const finest = 100
const index = z
  .int()
  .min(-180 * finest)
  .max(180 * finest)

/** Row 0 is `south` and column 0 `west`, counted in cells from 0°; `bits` has row by row, from the lowest bit of each character on. */
export const cellSet = z.object({
  perDegree: z.int().min(1).max(finest),
  south: index,
  west: index,
  width: z
    .int()
    .min(1)
    .max(360 * finest),
  bits: z.string().regex(/^[\w-]+$/),
})
export type CellSet = Readonly<z.infer<typeof cellSet>>

// That of base64url: none of it is escaped in JSON.
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const bitsEach = 6

/** @param cells at least one @param cellDegrees the edge of a cell of their grid */
export const cellSetOf = (cells: readonly Cell[], cellDegrees: number): CellSet => {
  const perDegree = Math.round(1 / cellDegrees)
  const places = cells.map(({ latitude, longitude }) => ({
    row: Math.round(latitude * perDegree),
    column: Math.round(longitude * perDegree),
  }))
  // Not spread as arguments of Math.min: a fine grid has hundreds of thousands.
  const south = places.reduce((least, { row }) => Math.min(least, row), Number.POSITIVE_INFINITY)
  const west = places.reduce((least, { column }) => Math.min(least, column), Number.POSITIVE_INFINITY)
  const east = places.reduce((most, { column }) => Math.max(most, column), Number.NEGATIVE_INFINITY)
  const width = east - west + 1
  const values: number[] = []
  for (const { row, column } of places) {
    const place = (row - south) * width + column - west
    const at = Math.floor(place / bitsEach)
    values[at] = (values[at] ?? 0) | (1 << (place % bitsEach))
  }
  return { perDegree, south, west, width, bits: Array.from(values, value => digits[value ?? 0]).join('') }
}

/** Whether the cell of this name is one of them. A cell of another grid never is. */
export const hasCell = ({ perDegree, south, west, width, bits }: CellSet, id: string): boolean => {
  const [latitude = Number.NaN, longitude = Number.NaN] = id.split(',').map(Number)
  const [row, column] = [Math.round(latitude * perDegree), Math.round(longitude * perDegree)]
  const isOnGrid = centreOf(row, perDegree) === latitude && centreOf(column, perDegree) === longitude
  if (!isOnGrid || row < south || column < west || column >= west + width) return false
  const place = (row - south) * width + column - west
  return ((digitAt(bits, Math.floor(place / bitsEach)) >> (place % bitsEach)) & 1) === 1
}

export const countCells = ({ bits }: CellSet): number => {
  let count = 0
  for (let i = 0; i < bits.length; i += 1)
    for (let value = digitAt(bits, i); value > 0; value >>= 1) count += value & 1
  return count
}

const digitAt = (bits: string, at: number): number => digits.indexOf(bits[at] ?? 'A')
// As cell.ts spells a centre.
const centreOf = (steps: number, perDegree: number): number => Number((steps / perDegree).toFixed(4))
