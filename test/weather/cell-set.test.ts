// Without it a purge of an area could miss cells, or a forged record could name cells without end.

import t from 'tap'
import { createGrid } from '../../src/weather/cell.ts'
import { cellSet, cellSetOf, countCells, hasCell } from '../../src/weather/cell-set.ts'

t.test('a set has the cells that it was made of and no others, on every grid', async t => {
  for (const degrees of [0.1, 0.25, 0.05, 0.01, 1 / 3]) {
    const grid = createGrid(degrees)
    const all = [...grid.cellsIn({ south: 23.1, west: 89.2, north: 24.3, east: 90.9 })]
    // A pattern without a period of six bits or of a row.
    const inside = all.filter((_, i) => (i * i) % 7 < 3)
    const set = cellSet.parse(JSON.parse(JSON.stringify(cellSetOf(inside.toReversed(), degrees))))
    t.ok(inside.length > 3 && inside.length < all.length)
    t.strictSame(
      all.filter(({ id }) => hasCell(set, id)),
      inside,
      `${degrees}°`,
    )
    t.equal(countCells(set), inside.length)
    for (const outside of [...grid.cellsIn({ south: 24.5, west: 89, north: 25.2, east: 89.6 })])
      t.notOk(hasCell(set, outside.id), outside.id)
  }
})

t.test('a cell of another grid, on the other side of the globe or with no name is in no set', async t => {
  const grid = createGrid(0.1)
  const set = cellSetOf([grid.cellOf(23.7, 90.4), grid.cellOf(23.8, 90.4)], 0.1)
  for (const other of ['23.75,90.4', '23.7,90.45', '-23.7,90.4', '90.4,23.7', '23.7', 'a,b', '', '23.7,90.3'])
    t.notOk(hasCell(set, other), other)
  t.ok(hasCell(set, '23.7,90.4'))
  const west = [...createGrid(0.5).cellsIn({ south: -1, west: -1, north: 1, east: 1 })]
  const around = cellSetOf(west, 0.5)
  for (const { id } of west) t.ok(hasCell(around, id), id)
})

t.test('a set that no gateway wrote is refused', async t => {
  const good = cellSetOf([createGrid(0.1).cellOf(23.7, 90.4)], 0.1)
  t.ok(cellSet.safeParse(good).success)
  for (const bad of [
    { perDegree: 0 },
    { perDegree: 1e9 },
    { south: 0.5 },
    { west: -1e9 },
    { width: 0 },
    { width: 1e6 },
    { bits: '' },
    { bits: 'A A' },
    { bits: 7 },
  ])
    t.notOk(cellSet.safeParse({ ...good, ...bad }).success, JSON.stringify(bad))
})
