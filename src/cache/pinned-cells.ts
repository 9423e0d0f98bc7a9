// The cells of the most populous places, which are kept warm without demand.

import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Cell, Grid } from '../weather/cell.ts'

/**
 * The cells of the most populous places, largest first. Computes them again when the catalogue changes.
 * @param places how many
 */
export const mostPopulous = (
  catalogue: { readonly current: Catalogue },
  grid: Grid,
  places: number,
): (() => readonly Cell[]) => {
  let from: Catalogue | undefined
  let cells: readonly Cell[] = []
  return () => {
    const { current } = catalogue
    if (places > 0 && current !== from) {
      const chosen = current
        .all()
        .toSorted((a, b) => b.population - a.population)
        .slice(0, places)
        .map(({ latitude, longitude }) => grid.cellOf(latitude, longitude))
      cells = [...new Map(chosen.map(cell => [cell.id, cell])).values()]
      from = current
    }
    return cells
  }
}
