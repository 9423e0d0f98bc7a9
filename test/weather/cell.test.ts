// Without it a point on an edge could get the weather of another cell, or one cell could have two names.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { createGrid } from '../../src/weather/cell.ts'

const tenth = createGrid(0.1)
const box = { south: 20, north: 27, west: 87.5, east: 93 }
/** Cells per degree of the grids whose edges and centres are written out in a few decimals. */
const decimalEdges = [1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100]
const allGrids = [...decimalEdges, 3, 7, 9, 30, 60, 97]

const indexOf = (perDegree: number, degrees: number): number =>
  Math.round(createGrid(1 / perDegree).cellOf(degrees, 0).latitude * perDegree)

/** The adjacent floating-point number above (1) or below (-1). */
const beside = (value: number, direction: 1 | -1): number => {
  const bits = new BigInt64Array(new Float64Array([value]).buffer)
  bits[0] = (bits[0] ?? 0n) + BigInt(value > 0 ? direction : -direction)
  return new Float64Array(bits.buffer)[0] ?? Number.NaN
}

t.test('a cell is named by its centre, in the shortest decimals', async t => {
  t.strictSame(tenth.cellOf(23.8103, 90.4125), { id: '23.8,90.4', latitude: 23.8, longitude: 90.4 })
  t.strictSame(tenth.cellOf(20, 93), { id: '20,93', latitude: 20, longitude: 93 })
  t.equal(createGrid(0.05).cellOf(23.8103, 90.4125).id, '23.8,90.4')
  t.equal(createGrid(0.05).cellOf(23.8303, 90.4325).id, '23.85,90.45')
  t.equal(createGrid(1).cellOf(23.5, 90.49).id, '24,90')
  t.strictSame(tenth.cellOf(-0, -0), tenth.cellOf(0, 0), 'minus zero and zero are one cell')
  t.ok(Object.is(tenth.cellOf(-0.01, -0.01).latitude, 0))
  t.equal(tenth.cellOf(-23.8103, -90.4125).id, '-23.8,-90.4', 'the four quarters of the world are alike')
})

t.test('a cell is one object, and stays equal when more cells are requested than are memoised', async t => {
  const grid = createGrid(0.01)
  const first = grid.cellOf(23.81, 90.41)
  t.equal(grid.cellOf(23.8101, 90.4099), first)
  const cells = grid.cellsIn({ south: 20, west: 88, north: 22, east: 90 })
  t.equal([...cells].length, cells.length)
  t.equal(
    grid.cellOf(23.81, 90.41),
    first,
    'a walk over very many cells takes no place of those that are kept',
  )
  for (const { latitude, longitude } of cells) grid.cellOf(latitude, longitude)
  t.strictSame(grid.cellOf(23.81, 90.41), first)
})

t.test('a name from outside changes no cell, whatever it says', async t => {
  for (const perDegree of [1, 10, 100]) {
    const [grid, untouched] = [createGrid(1 / perDegree, box), createGrid(1 / perDegree, box)]
    const [dhaka, corner] = [untouched.cellOf(23.71, 90.41), untouched.cellOf(box.south, box.east)]
    // Beyond the globe, so far that their indices add up to those of Dhaka or come near.
    const places = [-3, -2, -1, 1, 2, 3].flatMap(rows => [
      [dhaka.latitude + rows / perDegree, dhaka.longitude - (rows * 100_000) / perDegree],
      [dhaka.latitude + rows * 360, dhaka.longitude],
      [dhaka.latitude, dhaka.longitude + rows * 360],
    ])
    const names = places.map(numbers => numbers.map(number => Number(number.toFixed(4))).join(','))
    const strange = ['', ',', '23.7', 'NaN,90.4', '1e1,1e1', '23.7,90.4,1', ' 23.7,90.4', '48.9,2.4']
    for (const name of [...names, ...strange]) t.equal(grid.cellNamed(name), undefined, name)
    t.strictSame(grid.cellOf(23.71, 90.41), dhaka)
    t.equal(grid.cellNamed(dhaka.id), grid.cellOf(23.71, 90.41), 'a right name is found, once')
    t.strictSame(grid.cellNamed(corner.id), corner, 'a cell on the edge of the area is in it')
  }
})

t.test('every place of the catalogue lies in its cell, and in the same one as the centre', async t => {
  const file = new URL('../../locations.json', import.meta.url)
  type Place = { latitude: number; longitude: number }
  const places = JSON.parse(readFileSync(file, 'utf8')).locations as Place[]
  t.ok(places.length > 5_000, `${places.length} places`)
  for (const perDegree of allGrids) {
    const grid = createGrid(1 / perDegree)
    // Other centres are rounded to four decimals.
    const most = 0.5 / perDegree + (decimalEdges.includes(perDegree) ? 1e-9 : 5e-5 + 1e-9)
    for (const { latitude, longitude } of places) {
      const cell = grid.cellOf(latitude, longitude)
      const away = Math.max(Math.abs(cell.latitude - latitude), Math.abs(cell.longitude - longitude))
      if (away > most) t.fail(`${latitude},${longitude} is ${away}° from ${cell.id} at 1/${perDegree}°`)
      if (grid.cellOf(cell.latitude, cell.longitude).id !== cell.id) t.fail(`${cell.id} is not in itself`)
    }
  }
})

t.test('a hair on either side of any edge lies in the two cells that share it', async t => {
  const wrong: string[] = []
  for (const perDegree of allGrids) {
    let edges = 0
    for (let index = -90 * perDegree; index < 90 * perDegree; index++) {
      const edge = (2 * index + 1) / (2 * perDegree)
      const around = [beside(edge, -1), edge - 1e-9, edge, edge + 1e-9].map(at => indexOf(perDegree, at))
      edges += 1
      if (String(around) !== String([index, index, index + 1, index + 1]))
        wrong.push(`around ${edge} at 1/${perDegree}° lie ${around}, not ${index} and ${index + 1}`)
    }
    t.equal(edges, 180 * perDegree, `${edges} edges at 1/${perDegree}°`)
  }
  t.strictSame(wrong.slice(0, 5), [])
})

t.test('an edge written in decimals belongs to the cell north and east of it, on every grid', async t => {
  const wrong: string[] = []
  for (const perDegree of decimalEdges) {
    const grid = createGrid(1 / perDegree)
    for (let index = -180 * perDegree; index < 180 * perDegree; index++) {
      const written = Number(`${((2 * index + 1) * 10_000) / (2 * perDegree)}e-4`)
      const { longitude } = grid.cellOf(0, written)
      if (Math.round(longitude * perDegree) !== index + 1)
        wrong.push(`${written} at 1/${perDegree}° lies in ${longitude}`)
    }
  }
  t.strictSame(wrong.slice(0, 5), [])
  t.equal(tenth.cellOf(23.85, 90.35).id, '23.9,90.4')
  t.equal(tenth.cellOf(-0.05, -0.05).id, '0,0')
  t.equal(tenth.cellOf(-0.0500001, 0).id, '-0.1,0')
})
