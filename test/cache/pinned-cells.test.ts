// Without it the places with few people could be kept warm, or those of a catalogue that is gone.

import t from 'tap'
import { mostPopulous } from '../../src/cache/pinned-cells.ts'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'
import { createGrid } from '../../src/weather/cell.ts'

const grid = createGrid(0.1)

/** A catalogue of places by their latitude and population. */
const catalogueOf = (...places: (readonly [latitude: number, population: number])[]): Catalogue =>
  ({
    all: () => places.map(([latitude, population]) => ({ latitude, longitude: 90.4, population })),
  }) as unknown as Catalogue

t.test('the cells of the most populous places are pinned once each, until the catalogue changes', async t => {
  const catalogue = { current: catalogueOf([22, 1], [23.7, 900], [23.71, 800], [24, 50], [25, 700]) }
  const [pinned, none] = [mostPopulous(catalogue, grid, 3), mostPopulous(catalogue, grid, 0)]
  const nothing = none()
  const latitudes = () => pinned().map(({ latitude }) => latitude)
  t.strictSame(latitudes(), [23.7, 25])
  t.equal(pinned(), pinned(), 'the same list for the same cells')
  catalogue.current = catalogueOf([26, 2])
  t.strictSame(latitudes(), [26])
  t.strictSame(nothing, [])
  t.equal(none(), nothing, 'also of none')
  t.strictSame(mostPopulous(catalogue, grid, 1)(), [grid.cellOf(26, 90.4)])
})
