import t from 'tap'
import { createGrid } from '../../src/weather/cell.ts'

const tenth = createGrid(0.1)

t.test('a cell is named by its centre, in the shortest decimals', t => {
  t.strictSame(tenth.cellOf(23.8103, 90.4125), { id: '23.8,90.4', latitude: 23.8, longitude: 90.4 })
  t.strictSame(tenth.cellOf(20, 93), { id: '20,93', latitude: 20, longitude: 93 })
  t.equal(createGrid(0.05).cellOf(23.8103, 90.4125).id, '23.8,90.4')
  t.equal(createGrid(0.05).cellOf(23.8303, 90.4325).id, '23.85,90.45')
  t.equal(createGrid(1).cellOf(23.5, 90.49).id, '24,90')
  t.end()
})

t.test('an edge belongs to the cell north and east of it, and the points beside it to their own', t => {
  t.equal(tenth.cellOf(23.85, 90.35).id, '23.9,90.4')
  t.equal(tenth.cellOf(23.8499999, 90.3499999).id, '23.8,90.3')
  t.equal(tenth.cellOf(-0.05, -0.05).id, '0,0')
  t.equal(tenth.cellOf(-0.0500001, 0).id, '-0.1,0')
  t.end()
})

t.test('minus zero and zero are one cell', t => {
  t.strictSame(tenth.cellOf(-0, -0), tenth.cellOf(0, 0))
  t.ok(Object.is(tenth.cellOf(-0.01, -0.01).latitude, 0))
  t.end()
})

t.test('every point lies in its cell, a step away lies in the next, and ids never collide', t => {
  for (const degrees of [1, 0.5, 0.25, 0.1, 0.05, 1 / 30, 0.01]) {
    const grid = createGrid(degrees)
    const centres = new Map<string, string>()
    for (let i = 0; i < 4_000; i++) {
      const latitude = 20 + ((i * 7.000_13) % 7)
      const longitude = 87.5 + ((i * 3.3301) % 5.5)
      const cell = grid.cellOf(latitude, longitude)
      // The centre is cut at four decimals, and an edge is shared.
      if (
        Math.abs(cell.latitude - latitude) > degrees / 2 + 1e-4 ||
        Math.abs(cell.longitude - longitude) > degrees / 2 + 1e-4
      )
        t.fail(`${latitude},${longitude} is outside ${cell.id} at ${degrees}°`)
      if (grid.cellOf(latitude + degrees, longitude).id === cell.id) t.fail(`${cell.id} is two cells high`)
      t.strictSame(grid.cellOf(cell.latitude, cell.longitude).id, cell.id, 'the centre lies in its own cell')
      const place = `${Math.floor(latitude / degrees + 0.5)}/${Math.floor(longitude / degrees + 0.5)}`
      if ((centres.get(cell.id) ?? place) !== place) t.fail(`${cell.id} names two cells at ${degrees}°`)
      centres.set(cell.id, place)
    }
    t.equal(new Set(centres.values()).size, centres.size, 'and no cell has two names')
  }
  t.end()
})
