// Purges as change records in a real store: what a purge deletes, and how it is read.

import t from 'tap'
import { openEmbeddedStore } from '../../src/stores/embedded/embedded-store.ts'
import { keyFor } from '../../src/timelines/cache-namespace.ts'
import { beginLog, orderPurge, purgesAfter } from '../../src/timelines/purge-log.ts'
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
    t.strictSame(
      await purgesAfter(store, 0),
      {
        purges: [
          { generation: 1, kind: 'soft', scope: { cell: dhaka.id } },
          { generation: 2, kind: 'hard', scope: { cell: dhaka.id } },
        ],
        newest: 2,
        missedBefore: 1,
      },
      'in their order',
    )
    t.match(await purgesAfter(store, 1), {
      purges: [{ generation: 2 }],
      newest: 2,
      missedBefore: undefined,
    })
    t.strictSame(await purgesAfter(store, 2), { purges: [], newest: undefined, missedBefore: undefined })
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
  t.match(await purgesAfter(store, 0), { purges: [], newest: 4 })
  const { generation } = await orderPurge(
    store,
    { namespace, cells: [], now: clock.now() },
    { kind: 'soft', scope: { all: true } },
  )
  t.match(await purgesAfter(store, 0), {
    purges: [{ generation, kind: 'soft', scope: { all: true } }],
    newest: generation,
  })
})

t.test(
  'a log begins with a record that purges nothing, once more where it was lost with a purge of all',
  async t => {
    const { store } = await openFilled()
    t.equal(await purgesAfter(store, 0), undefined)
    const begun = { purges: [], newest: 1, missedBefore: 1 }
    t.strictSame(await beginLog(store, 0, clock.now()), begun)
    t.strictSame(await purgesAfter(store, 0), begun)
    t.strictSame(
      await beginLog(store, 0, clock.now()),
      { purges: [], newest: 2, missedBefore: 1 },
      'two at once',
    )
    t.equal(await purgesAfter(store, 7), undefined, 'the seventh is not there')
    // Ordered into the new log before this instance notices it.
    await orderPurge(
      store,
      { namespace, cells: [], now: clock.now() },
      { kind: 'hard', scope: { cell: dhaka.id } },
    )
    const purges = [
      { generation: 3, kind: 'hard', scope: { cell: dhaka.id } },
      { generation: 4, kind: 'soft', scope: { all: true } },
    ]
    t.strictSame(await beginLog(store, 7, clock.now()), { purges, newest: 4, missedBefore: 1 })
    t.strictSame(await purgesAfter(store, 1), { purges, newest: 4, missedBefore: undefined })
  },
)

t.test('a reader behind more purges than the log keeps learns from which number on it knows all', async t => {
  const { store } = await openFilled()
  const base = { namespace, cells: [], now: clock.now() }
  const order = () => orderPurge(store, base, { kind: 'soft', scope: { cell: dhaka.id } })
  for (let i = 0; i < 1_002; i++) await order()
  const all = await purgesAfter(store, 0)
  t.match([all?.purges.length, all?.newest, all?.missedBefore], [1_000, 1_002, 3])
  t.match((await purgesAfter(store, 1))?.missedBefore, 3)
  t.equal((await purgesAfter(store, 500))?.missedBefore, undefined)
})
