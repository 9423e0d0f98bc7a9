// Grid cells that were never requested, on a grid of 1/100 degree, so that every case meets an empty cache; their weather is loaded
// by coordinates.

export type Point = { readonly latitude: number; readonly longitude: number }

export const cellDegrees = 0.01
const [south, west] = [20.05, 87.55]
const [rows, columns] = [690, 540]
// Coprime with the number of cells, so that neighbouring numbers are far apart on the map.
const stride = 100_003

// A Redis keeps cells for longer than a gateway process lives.
const used = new WeakMap<object, number>()

/** So many cells that no other call for this system got. */
export const freshCells = (system: object, count: number): Point[] => {
  const first = used.get(system) ?? 0
  used.set(system, first + count)
  return Array.from({ length: count }, (_, i) => {
    const at = ((first + i) * stride) % (rows * columns)
    return {
      latitude: Number((south + Math.floor(at / columns) * cellDegrees).toFixed(2)),
      longitude: Number((west + (at % columns) * cellDegrees).toFixed(2)),
    }
  })
}

/** The name of a cell in its records. */
export const cellName = ({ latitude, longitude }: Point): string => `${latitude},${longitude}`
