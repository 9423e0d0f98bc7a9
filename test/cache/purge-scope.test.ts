// Which cells a purge covers, and how it is written down.

import t from 'tap'
import { covers, type PurgeOrder, readOrder, writeOrder } from '../../src/cache/purges.ts'
import { type CellId, createGrid } from '../../src/weather/cell.ts'

const id = (text: string) => text as CellId
const box = { south: 23.5, west: 90, north: 24, east: 90.8 }

t.test('a box covers the cells whose centre lies in it, edges included', t => {
  for (const inside of ['23.5,90', '23.5,90.8', '24,90', '24,90.8', '23.7,90.4'])
    t.ok(covers({ box }, id(inside)), inside)
  for (const outside of ['23.4,90.4', '24.1,90.4', '23.7,89.9', '23.7,90.9', '-23.7,90.4', '90.4,23.7'])
    t.notOk(covers({ box }, id(outside)), outside)
  t.end()
})

t.test('a box covers exactly the cells that the grid finds in it, on several grids', t => {
  const wide = { south: 23, west: 89, north: 25, east: 92 }
  for (const degrees of [0.1, 0.25, 0.05, 1 / 3]) {
    const grid = createGrid(degrees)
    const covered = grid.cellsIn(wide).filter(cell => covers({ box }, cell.id))
    t.ok(covered.length > 0)
    t.strictSame(covered, grid.cellsIn(box), `${degrees}°`)
  }
  t.end()
})

t.test('a cell covers itself alone, and all covers everything', t => {
  t.ok(covers({ cell: id('23.7,90.4') }, id('23.7,90.4')))
  t.notOk(covers({ cell: id('23.7,90.4') }, id('23.7,90.5')))
  t.ok(covers({ all: true }, id('-1,-1')))
  t.end()
})

t.test('a purge record is parsed as it was written, and an invalid one is refused', t => {
  const orders: PurgeOrder[] = [
    { kind: 'soft', scope: { all: true } },
    { kind: 'hard', scope: { cell: id('23.7,90.4') } },
    { kind: 'hard', scope: { box } },
  ]
  for (const order of orders) t.strictSame(readOrder(writeOrder(order)), order)
  for (const text of [
    '',
    '{',
    'null',
    '[]',
    '"all"',
    '{"kind":"hard"}',
    '{"kind":"gentle","scope":{"all":true}}',
    '{"kind":"hard","scope":{"all":false}}',
    '{"kind":"hard","scope":{"cell":7}}',
    '{"kind":"hard","scope":{"box":{"south":1,"west":null,"north":2,"east":3}}}',
    '{"kind":"hard","scope":{"box":{"south":1e999,"west":1,"north":2,"east":3}}}',
    '{"kind":"hard","scope":{"box":{"south":-181,"west":1,"north":2,"east":3}}}',
    '{"kind":"hard","scope":{"box":{"south":"1","west":1,"north":2,"east":3}}}',
    '{"kind":"hard","scope":{"cell":"<script>"}}',
    `{"kind":"hard","scope":{"cell":"${'1'.repeat(1_000)},1"}}`,
    '{"kind":"hard","scope":{"cell":"23.7,90.4,"}}',
    '{"kind":"hard","scope":{"cell":"23.7,90.4\\n"}}',
  ])
    t.equal(readOrder(text), undefined, text)
  t.end()
})
