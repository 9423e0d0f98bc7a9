// What a purge is about: one cell, a box, or everything. How it is written in a notice, and which cells lie in it. Pure.

import * as z from 'zod'
import type { PurgeKind } from '../cache/purges.ts'
import type { Box, CellId } from '../weather/cell.ts'

export type PurgeScope =
  | { readonly all: true }
  | { readonly cell: CellId }
  /** Cells whose centre lies in it. */
  | { readonly box: Box }

export type PurgeOrder = { readonly kind: PurgeKind; readonly scope: PurgeScope }

// What stands in a notice may be anybody's: edges are degrees, and a cell is named as cells are.
const degrees = z.number().min(-180).max(180)
const cellForm = /^-?\d{1,3}(\.\d{1,4})?,-?\d{1,3}(\.\d{1,4})?$/

const order = z.object({
  kind: z.enum(['soft', 'hard']),
  scope: z.union([
    z.object({ all: z.literal(true) }),
    z.object({
      cell: z
        .string()
        .regex(cellForm)
        .transform(id => id as CellId),
    }),
    z.object({ box: z.object({ south: degrees, west: degrees, north: degrees, east: degrees }) }),
  ]),
})

export const writeOrder = (given: PurgeOrder): string => JSON.stringify(given)

/** The order in a notice, or undefined when it is not one. */
export const readOrder = (text: string): PurgeOrder | undefined => {
  try {
    return order.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export const covers = (scope: PurgeScope, id: CellId): boolean => {
  if ('all' in scope) return true
  if ('cell' in scope) return scope.cell === id
  const [latitude = Number.NaN, longitude = Number.NaN] = id.split(',').map(Number)
  const { south, west, north, east } = scope.box
  return latitude >= south && latitude <= north && longitude >= west && longitude <= east
}
