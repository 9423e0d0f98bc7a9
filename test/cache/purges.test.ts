// Without it a purge could miss a cell, or cover one that it must not.

import t, { type Test } from 'tap'
import { keyFor } from '../../src/cache/entry-codec.ts'
import {
  covers,
  createPurges,
  orderPurge,
  type PurgeOrder,
  readOrder,
  readPurges,
  writeOrder,
} from '../../src/cache/purges.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { type Cell, type CellId, createGrid } from '../../src/weather/cell.ts'
import { cellSetOf } from '../../src/weather/cell-set.ts'
import { manualClock } from '../support/manual-clock.ts'
import { workPerTurn } from './work-per-turn.ts'

const cell = (id: string) => ({ cell: id as CellId })
const begun = (generation: number) => ({ generation })
const box = { south: 23.5, west: 90, north: 24, east: 90.8 }
const all = { kind: 'soft', scope: { all: true } } as const

t.test('a box covers exactly the cells whose centre lies in it, edges included, on every grid', async t => {
  for (const inside of ['23.5,90', '23.5,90.8', '24,90', '24,90.8', '23.7,90.4'])
    t.ok(covers({ box }, inside), inside)
  for (const outside of ['23.4,90.4', '24.1,90.4', '23.7,89.9', '23.7,90.9', '-23.7,90.4', '90.4,23.7'])
    t.notOk(covers({ box }, outside), outside)
  for (const degrees of [0.1, 0.25, 0.05, 1 / 3]) {
    const grid = createGrid(degrees)
    const wide = [...grid.cellsIn({ south: 23, west: 89, north: 25, east: 92 })]
    const covered = wide.filter(({ id }) => covers({ box }, id))
    t.ok(covered.length > 0)
    t.strictSame(covered, [...grid.cellsIn(box)], `${degrees}°`)
  }
  t.ok(covers(cell('23.7,90.4'), '23.7,90.4'))
  t.notOk(covers(cell('23.7,90.4'), '23.7,90.5'))
  t.ok(covers({ all: true }, '-1,-1'))
})

t.test('a purge record is parsed as it was written, and an invalid one is refused', async t => {
  const orders: PurgeOrder[] = [
    all,
    { kind: 'hard', scope: cell('23.7,90.4') },
    { kind: 'hard', scope: { box } },
    { kind: 'hard', scope: { box: { south: -180, west: -180, north: 180, east: 180 } } },
    { kind: 'soft', scope: { area: 'district/3026', cells: cellSetOf([...grid.cellsIn(box)], 0.1) } },
  ]
  for (const order of orders) t.strictSame(readOrder(writeOrder(order)), order)
  const texts = ['', '{', 'null', '[]', '"all"', '{"kind":"hard"}', '{"kind":"gentle","scope":{"all":true}}']
  const scopes = [
    '{"all":false}',
    '{"cell":7}',
    '{"box":{"south":1,"west":null,"north":2,"east":3}}',
    '{"box":{"south":1e999,"west":1,"north":2,"east":3}}',
    '{"box":{"south":-181,"west":1,"north":2,"east":3}}',
    '{"box":{"south":1,"west":1,"north":2,"east":181}}',
    '{"box":{"south":"1","west":1,"north":2,"east":3}}',
    '{"cell":"<script>"}',
    '{"area":"district/3026","cells":["23.7,90.4"]}',
    '{"area":"<script>","cells":{"perDegree":10,"south":1,"west":1,"width":1,"bits":"B"}}',
    '{"area":"district/3026","cells":{"perDegree":10,"south":1,"west":1,"width":1,"bits":"="}}',
    `{"cell":"${'1'.repeat(1_000)},1"}`,
    '{"cell":"23.7,90.4,"}',
    '{"cell":"23.7,90.4\\n"}',
  ]
  for (const text of [...texts, ...scopes.map(scope => `{"kind":"hard","scope":${scope}}`)])
    t.equal(readOrder(text), undefined, text)
})

t.test('a purge covers what was loaded before it and lies in its scope; the strongest counts', async t => {
  const purges = createPurges()
  t.equal(purges.generation, 0)
  purges.add({ generation: 3, kind: 'soft', scope: cell('a') })
  t.equal(purges.generation, 3)
  t.equal(purges.of('a', begun(2)), 'soft')
  t.equal(purges.of('a', begun(3)), undefined)
  t.equal(purges.of('b', begun(0)), undefined)
  for (const kinds of [['hard', 'soft', 'soft'] as const, ['soft', 'soft', 'hard'] as const]) {
    const several = createPurges()
    for (const [i, kind] of kinds.entries()) several.add({ generation: i + 1, kind, scope: cell('a') })
    t.equal(several.of('a', begun(0)), 'hard', kinds.join(', '))
    t.equal(several.of('a', begun(1)), kinds[2], 'of those after its load')
  }
})

t.test('of more than a thousand purges the oldest are forgotten, and cover what is older', async t => {
  const purges = createPurges()
  for (let i = 1; i <= 1_000; i++) purges.add({ generation: i, kind: 'hard', scope: cell(`k${i};`) })
  t.equal(purges.of('other', begun(0)), undefined)
  t.equal(purges.of('k1;', begun(0)), 'hard')
  purges.add({ generation: 1_001, kind: 'soft', scope: cell('k1001;') })
  t.equal(purges.of('k1;', begun(0)), 'soft')
  t.equal(purges.of('other', begun(0)), 'soft', 'which keys it covered is forgotten too')
  t.equal(purges.of('k2;', begun(0)), 'hard')
  t.equal(purges.of('other', begun(1)), undefined)
})

t.test('where purges were missed older entries are stale, and a lost log begins anew', async t => {
  const purges = createPurges()
  purges.add({ generation: 3, kind: 'hard', scope: cell('a') })
  purges.add({ generation: 9, kind: 'soft', scope: cell('b') })
  purges.miss(9)
  t.equal(purges.of('c', begun(8)), 'soft')
  t.equal(purges.of('c', begun(9)), undefined)
  t.equal(purges.of('a', begun(2)), 'hard')
  purges.advanceTo(3)
  t.equal(purges.generation, 9, 'a number that is known already changes nothing')
  purges.restart()
  t.equal(purges.generation, 0)
  t.equal(purges.of('c', begun(0)), undefined)
  purges.add({ generation: 4, ...all })
  t.equal(purges.generation, 4)
  t.equal(purges.of('a', begun(3)), 'soft')
  t.equal(purges.of('a', begun(4)), undefined)
})

const clock = manualClock()
const namespace = 'q'
const grid = createGrid(0.1)
const [dhaka, khulna] = [grid.cellOf(23.71, 90.41), grid.cellOf(22.8, 89.5)]

/** A store with two cells, and a way to order purges in it. */
const setUp = async (t: Test) => {
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  for (const { id } of [dhaka, khulna])
    await store.writeBytes(keyFor(namespace, id), Buffer.from('weather'), clock.now() + 1_000)
  const cached = async () => {
    const bytes = [dhaka, khulna].map(({ id }) => store.readBytes(keyFor(namespace, id)))
    return (await Promise.all(bytes)).map(each => each !== undefined)
  }
  const order = (kind: 'soft' | 'hard', scope: PurgeOrder['scope'], cells = [dhaka]) =>
    orderPurge(store, { namespaces: [namespace], cells, now: clock.now() }, { kind, scope })
  return { store, cached, order }
}
/** Purges of a reader that has read the log up to a number. */
const readTo = (generation: number) => {
  const purges = createPurges()
  purges.advanceTo(generation)
  return purges
}

t.test('a hard purge removes shared entries, a soft one none; both are read in order', async t => {
  const { store, cached, order } = await setUp(t)
  const scope = { cell: dhaka.id }
  t.strictSame(await order('soft', scope), { generation: 1, removed: 0 })
  t.strictSame(await cached(), [true, true])
  t.strictSame(await order('hard', scope), { generation: 2, removed: 1 })
  t.strictSame(await cached(), [false, true])
  const purges = createPurges()
  const [first, second] = [
    { generation: 1, kind: 'soft', scope },
    { generation: 2, kind: 'hard', scope },
  ]
  t.strictSame(await readPurges(store, purges), { added: [first, second], isWhole: false })
  t.equal(purges.generation, 2)
  t.equal(purges.of(khulna.id, begun(0)), 'soft', 'from before the first record')
  t.equal(purges.of(dhaka.id, begun(1)), 'hard')
  t.strictSame(await readPurges(store, purges), { added: [], isWhole: true })
  t.strictSame(await readPurges(store, readTo(1)), { added: [second], isWhole: true })
})

t.test('thousands of cells are removed in steps, with a turn of the event loop after each', async t => {
  const { store, cached } = await setUp(t)
  const cells = [...grid.cellsIn({ south: 20, west: 87.5, north: 27, east: 93 })]
  t.ok(cells.length > 3_000, `${cells.length} cells`)
  const { most, all: removed } = await workPerTurn(async worked => {
    const counted = {
      ...store,
      deleteBytes: async (keys: readonly string[]) => {
        for (const _ of keys) worked()
        return store.deleteBytes(keys)
      },
    }
    const base = { namespaces: [namespace], cells, now: clock.now() }
    t.match(await orderPurge(counted, base, { kind: 'hard', scope: { all: true } }), { removed: 2 })
  })
  t.strictSame([most, removed], [200, cells.length])
  t.strictSame(await cached(), [false, false])
})

t.test('the cells of an area are one record, and several where they do not fit in one', async t => {
  const { store, cached } = await setUp(t)
  const area = 'division/30'
  const orderArea = async (kind: 'soft' | 'hard', cells: readonly Cell[], degrees: number) => {
    const base = { namespaces: [namespace], cells, now: clock.now() }
    return orderPurge(store, base, { kind, scope: { area, cells: cellSetOf(cells, degrees) } })
  }
  const country = { south: 20, west: 87.5, north: 27, east: 93 }
  const { generation } = await orderArea('soft', [...grid.cellsIn(country)], 0.1)
  t.equal(generation, 1, 'all cells of the country')

  const fine = createGrid(0.01)
  const wide = [...fine.cellsIn({ south: 22, west: 89, north: 24.5, east: 91.5 })]
  const [inside, outside] = [wide.filter((_, i) => i % 7 === 0), wide.filter((_, i) => i % 7 === 1)]
  const last = await orderArea('hard', [...inside, dhaka], 0.01)
  t.ok(last.generation > 2, `${last.generation - 1} records`)
  t.strictSame([last.removed, await cached()], [1, [false, true]])
  const purges = readTo(1)
  const read = await readPurges(store, purges)
  t.equal(read?.added.length, last.generation - 1)
  t.ok(read?.added.every(({ kind, scope }) => kind === 'hard' && 'cells' in scope && scope.area === area))
  t.ok(
    inside.every(({ id }) => purges.of(id, begun(1)) === 'hard'),
    'each cell is covered',
  )
  t.ok(
    outside.every(({ id }) => purges.of(id, begun(1)) === undefined),
    'and no other',
  )
  const mixed = [...inside.filter((_, i) => i % 2 === 0), ...inside.filter((_, i) => i % 2 === 1), dhaka]
  const { generation: end } = await orderArea('soft', mixed, 0.01)
  t.equal(end - last.generation, last.generation - 1, 'as many in whatever order the cells are given')
})

t.test('invalid change records are skipped, and later ones are still read', async t => {
  const { store, order } = await setUp(t)
  const keepUntil = clock.now() + 1_000
  for (const text of ['', 'hello', '{"kind":"hard"}', '{"kind":"later","scope":{"all":true}}'])
    await store.appendChangeRecord('purges', text, keepUntil)
  await store.appendChangeRecord('keys', '{"kind":"hard","scope":{"all":true}}', keepUntil)
  const purges = createPurges()
  t.match(await readPurges(store, purges), { added: [] })
  t.equal(purges.generation, 4)
  const { generation } = await order('soft', { all: true }, [])
  t.hasStrict(await readPurges(store, purges), { added: [{ generation, ...all }] })
})
