// The scope of a purge: one cell, a box, or everything. Encodes it for a change record and tests which cells it covers. Pure.

import * as z from 'zod'
import type { Box, CellId } from '../weather/cell.ts'
import type { PurgeKind } from './purges.ts'

export type PurgeScope =
  | { readonly all: true }
  | { readonly cell: CellId }
  /** Cells whose centre lies in it. */
  | { readonly box: Box }

export type PurgeOrder = { readonly kind: PurgeKind; readonly scope: PurgeScope }

// Anyone with access to the store can write a change record, so edges and cell names are validated.
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

/** The purge in a change record, or undefined when it is not valid. */
export const readOrder = (text: string): PurgeOrder | undefined => {
  try {
    return order.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export const covers = (scope: PurgeScope, id: string): boolean => {
  if ('all' in scope) return true
  if ('cell' in scope) return scope.cell === id
  const [latitude = Number.NaN, longitude = Number.NaN] = id.split(',').map(Number)
  const { south, west, north, east } = scope.box
  return latitude >= south && latitude <= north && longitude >= west && longitude <= east
}
