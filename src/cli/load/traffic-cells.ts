// The cells of requests that were recorded without one, by the configured catalogue and grid; where these can't be read, only
// what was recorded is known, and that is said.

import { InputError } from '../../errors.ts'
import type { CellOf } from '../../load/traffic/cell-of-place.ts'
import type { Terminal } from '../terminal.ts'

export const configuredCellOf = async (terminal: Terminal): Promise<CellOf> => {
  // Imported here, so that the other commands start without the catalogue.
  const { createCellOf, recordedCell } = await import('../../load/traffic/cell-of-place.ts')
  const { createCatalogue } = await import('../../catalogue/catalogue.ts')
  const { catalogueFile } = await import('../../catalogue/catalogue-file.ts')
  const { readSnapshot } = await import('../../catalogue/snapshot-reader.ts')
  const { createGrid } = await import('../../weather/cell.ts')
  try {
    const { catalogue, cache } = terminal.config()
    const places = createCatalogue(await readSnapshot(catalogueFile(catalogue.path)))
    return createCellOf(places, places.bounds, createGrid(cache.cellDegrees))
  } catch (thrown) {
    if (!(thrown instanceof InputError)) throw thrown
    terminal.remark(`Cells that were not recorded are unknown: ${thrown.message}`)
    return recordedCell
  }
}
