// Purges as change records in a real store: what a purge deletes, and how it is read.

import t from 'tap'
import { keyFor } from '../../src/cache/entry-codec.ts'
import { createPurges, followPurges, orderPurge, readPurges } from '../../src/cache/purges.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'

const clock = manualClock()
const namespace = 'q'
const grid = createGrid(0.1)
const dhaka = grid.cellOf(23.71, 90.41)
const khulna = grid.cellOf(22.8, 89.5)
const openFilled = async () => {
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  for (const { id } of [dhaka, khulna])
    await store.writeBytes(keyFor(namespace, id), Buffer.from('weather'), clock.now() + 1_000)
  const isCached = async (cell: typeof dhaka) =>
    (await store.readBytes(keyFor(namespace, cell.id))) !== undefined
  return { store, isCached }
}

t.test(
  'a hard purge removes entries of the shared tier and returns their number, a soft one removes nothing',
  async t => {
    const { store, isCached } = await openFilled()
    const base = { namespace, cells: [dhaka], now: clock.now() }
    const soft = await orderPurge(store, base, { kind: 'soft', scope: { cell: dhaka.id } })
    t.strictSame(soft, { generation: 1, removed: 0 })
    t.ok(await isCached(dhaka))
    const hard = await orderPurge(store, base, { kind: 'hard', scope: { cell: dhaka.id } })
    t.strictSame(hard, { generation: 2, removed: 1 })
    t.notOk(await isCached(dhaka))
    t.ok(await isCached(khulna), 'the cell outside is left alone')
    const purges = createPurges()
    const [first, second] = [
      { generation: 1, kind: 'soft', scope: { cell: dhaka.id } },
      { generation: 2, kind: 'hard', scope: { cell: dhaka.id } },
    ]
    t.strictSame(
      await readPurges(store, purges),
      { added: [first, second], isWhole: false },
      'in their order',
    )
    t.equal(purges.generation, 2)
    t.equal(purges.of(khulna.id, { generation: 0 }), 'soft', 'from before the first record')
    t.equal(purges.of(dhaka.id, { generation: 1 }), 'hard')
    t.strictSame(await readPurges(store, purges), { added: [], isWhole: true })
    const later = createPurges()
    later.reach(1)
    t.strictSame(await readPurges(store, later), { added: [second], isWhole: true })
  },
)

t.test('thousands of cells are removed in steps, and all are counted', async t => {
  const { store, isCached } = await openFilled()
  const cells = grid.cellsIn({ south: 20, west: 87.5, north: 27, east: 93 })
  t.ok(cells.length > 3_000, `${cells.length} cells`)
  const { removed } = await orderPurge(
    store,
    { namespace, cells, now: clock.now() },
    { kind: 'hard', scope: { all: true } },
  )
  t.equal(removed, 2)
  t.notOk((await isCached(dhaka)) || (await isCached(khulna)))
})

t.test('invalid change records are skipped, and later ones are still read', async t => {
  const { store } = await openFilled()
  const keepUntil = clock.now() + 1_000
  for (const text of ['', 'hello', '{"kind":"hard"}', '{"kind":"later","scope":{"all":true}}'])
    await store.appendChangeRecord('purges', text, keepUntil)
  await store.appendChangeRecord('elsewhere', '{"kind":"hard","scope":{"all":true}}', keepUntil)
  const purges = createPurges()
  t.match(await readPurges(store, purges), { added: [] })
  t.equal(purges.generation, 4)
  const { generation } = await orderPurge(
    store,
    { namespace, cells: [], now: clock.now() },
    { kind: 'soft', scope: { all: true } },
  )
  t.match(await readPurges(store, purges), { added: [{ generation, kind: 'soft', scope: { all: true } }] })
})

const all = { kind: 'soft', scope: { all: true } }

t.test('a log begins with a soft purge of all, and so it does again where it was lost', async t => {
  const { store } = await openFilled()
  const purges = createPurges()
  t.equal(await readPurges(store, purges), undefined)
  t.match(await followPurges(store, purges, clock.now()), { added: [{ generation: 1, ...all }] })
  t.strictSame(await followPurges(store, purges, clock.now()), { added: [], isWhole: true }, 'once')

  // The log of this one had seven records, and was lost with them.
  const other = createPurges()
  other.add({ generation: 7, kind: 'hard', scope: { cell: khulna.id } })
  const lost = await openFilled()
  t.match(await followPurges(lost.store, other, clock.now()), {
    added: [{ generation: 8, ...all }],
    isWhole: false,
  })
  t.equal(other.of(dhaka.id, { generation: 7 }), 'soft')
  t.equal(other.of(dhaka.id, { generation: 8 }), undefined)
  const third = createPurges()
  third.reach(7)
  t.match(await followPurges(lost.store, third, clock.now()), { added: [{ generation: 8 }], isWhole: false })
})

t.test('a reader behind more purges than the log keeps learns from which number on it knows all', async t => {
  const { store } = await openFilled()
  const base = { namespace, cells: [], now: clock.now() }
  const order = () => orderPurge(store, base, { kind: 'soft', scope: { cell: dhaka.id } })
  for (let i = 0; i < 1_002; i++) await order()
  const behind = (known: number) => {
    const purges = createPurges()
    purges.reach(known)
    return purges
  }
  for (const known of [0, 1]) {
    const purges = behind(known)
    const read = await readPurges(store, purges)
    t.match([read?.added.length, read?.isWhole, purges.generation], [1_000, false, 1_002])
    t.equal(purges.of(khulna.id, { generation: 2 }), 'soft')
    t.equal(purges.of(khulna.id, { generation: 3 }), undefined)
  }
  t.match(await readPurges(store, behind(500)), { isWhole: true })
})
