// Grid cells that were never requested, on a grid of 1/100 degree, so that every case meets an empty cache. The cells of a
// case depend on its number alone; a second run of it gets others, since the first are cached by then.

export type Point = { readonly latitude: number; readonly longitude: number }

export const cellDegrees = 0.01
const [south, west] = [20.05, 87.55]
const [rows, columns] = [690, 540]
const total = rows * columns
// Coprime with the total, so that neighbouring numbers are far apart on the map.
const stride = 100_003
const perCase = 8

export type FreshCells = {
  /** Cells for a case, at most 8. */
  of(number: number, count: number): Point[]
}

const createFreshCells = (): FreshCells => {
  const used = new Set<number>()
  let spare = 1
  return {
    of: (number, count) => {
      const first = used.has(number) ? total - perCase * ++spare : number * perCase
      used.add(number)
      return Array.from({ length: count }, (_, i) => pointAt((((first + i) * stride) % total) + total))
    },
  }
}

const known = new WeakMap<object, FreshCells>()

/** The fresh cells of a system: its Redis keeps cells for longer than a gateway process lives. */
export const freshCellsOf = (system: object): FreshCells => {
  const before = known.get(system)
  if (before) return before
  const cells = createFreshCells()
  known.set(system, cells)
  return cells
}

const pointAt = (index: number): Point => {
  const at = index % total
  return {
    latitude: Number((south + Math.floor(at / columns) * cellDegrees).toFixed(2)),
    longitude: Number((west + (at % columns) * cellDegrees).toFixed(2)),
  }
}

/** The name of a cell in its records. */
export const cellName = ({ latitude, longitude }: Point): string => `${latitude},${longitude}`
