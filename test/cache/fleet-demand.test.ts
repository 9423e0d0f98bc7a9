// Without it a gateway could start cold beside a warm store, or forget what another upstream's cells were in demand.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createFleetDemand, type FleetDemand, warmCells } from '../../src/cache/fleet-demand.ts'
import { ReadThrough } from '../../src/cache/read-through.ts'
import { createMemoryTier } from '../../src/cache/tiers.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { partsOn, textEntry } from './cache-set-up.ts'
import { workPerTurn } from './work-per-turn.ts'

const grid = createGrid(0.1)
const [dhaka, sylhet, khulna] = [grid.cellOf(23.7, 90.4), grid.cellOf(24.9, 91.9), grid.cellOf(22.8, 89.5)]
const minute = 60_000
const hour = 60 * minute
const settled = () => new Promise(resolve => setTimeout(resolve))

/** The demand of one instance; the store has these cells of each namespace. */
const setUp = (wanted: Readonly<Record<string, readonly string[]>>, cellNamed = grid.cellNamed) => {
  const clock = manualClock()
  const demand = createDemand<Cell>()
  const topics: string[] = []
  const fleetDemand = createFleetDemand({
    store: {
      heartbeat: async ({ topic }) => {
        topics.push(topic)
        return { instances: 3, variants: 2, wanted: 1e9 }
      },
      wanted: async namespace => [...(wanted[namespace] ?? [])],
    },
    demand,
    grid: { ...grid, cellNamed },
    namespaces: Object.keys(wanted),
    bounds: { south: 20, west: 88, north: 21, east: 90 },
    cellDegrees: 0.1,
    settings: () => 'a',
    demandForMs: 2 * hour,
    report: () => '{}',
    clock,
    onHeartbeat: () => {},
    onHeartbeatFailure: () => {},
  })
  return { clock, demand, fleetDemand, topics }
}

const idsOf = async (fleetDemand: FleetDemand): Promise<string[]> => {
  const ids: string[] = []
  await fleetDemand.each(id => ids.push(id))
  return ids.toSorted()
}

t.test('cells in demand under any upstream are in demand, each once', async t => {
  const ids = async (wanted: Readonly<Record<string, readonly string[]>>): Promise<string[]> =>
    (await setUp(wanted).fleetDemand.cells()).map(({ id }) => id)
  t.strictSame(await ids({ one: [dhaka.id, 'no cell', sylhet.id] }), [dhaka.id, sylhet.id])
  t.strictSame(await ids({ one: [dhaka.id], two: [sylhet.id, dhaka.id] }), [dhaka.id, sylhet.id])
  t.strictSame(await ids({ one: [] }), [])
})

t.test('a cell that is kept warm, and requested only of another gateway, counts once', async t => {
  const wanted = { one: [dhaka.id] }
  const { clock, fleetDemand } = setUp(wanted)
  const pinned = [dhaka, sylhet]
  t.equal(fleetDemand.wantedWith([]), 0)
  t.equal(fleetDemand.wantedWith(pinned), 2, 'nothing is known yet')
  await settled()
  t.equal(fleetDemand.wantedWith(pinned), 1)
  wanted.one.push(sylhet.id)
  clock.advance(10 * minute - 1)
  fleetDemand.wantedWith(pinned)
  await settled()
  t.equal(fleetDemand.wantedWith(pinned), 1)
  clock.advance(1)
  fleetDemand.wantedWith(pinned)
  await settled()
  t.equal(fleetDemand.wantedWith(pinned), 0)
})

t.test('a list of very many cells is read in parts, with a turn of the event loop for each', async t => {
  const names = Array.from({ length: 5_000 }, (_, i) => grid.cellOf(i / 100, 90).id)
  const { most, all } = await workPerTurn(async worked => {
    const { fleetDemand } = setUp({ one: names }, name => {
      worked()
      return grid.cellNamed(name)
    })
    t.equal((await fleetDemand.cells()).length, 5_000)
  })
  t.strictSame([most, all], [1_000, 5_000])
  const { fleetDemand, demand, clock } = setUp({ one: [] })
  for (let i = 0; i < 5_000; i++) demand.record(`${i}`, dhaka, clock.now())
  t.strictSame(
    await workPerTurn(worked => fleetDemand.each(worked)),
    { most, all },
    'and so are those in demand',
  )
})

t.test('the fleet is this instance until a heartbeat, and wants no more cells than there are', async t => {
  const { fleetDemand, topics } = setUp({ one: [], two: [] })
  t.strictSame(fleetDemand.fleet(), { instances: 1, variants: 1, wanted: 0 })
  await fleetDemand.heartbeat.send()
  t.strictSame(fleetDemand.fleet(), { instances: 3, variants: 2, wanted: 12 * 22 })
  t.strictSame(topics, ['one'], 'the demand is that of the first upstream')
})

t.test('memory starts with the cells that were requested last, as many as fit', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const load = async () => t.fail('nothing is loaded') as never
  const { parts } = partsOn(t, { store, clock }, { load, memory: createMemoryTier(3) })
  const cells = Array.from({ length: 300 }, (_, i) => grid.cellOf(20 + i / 10, 90))
  const ids = cells.map(({ id }) => id)
  // The second one has left the shared tier.
  for (const id of ids.toSpliced(1, 1)) await parts.shared.set(id, textEntry({ fetchedAt: clock.now() }))
  const { warm } = new ReadThrough(parts)
  const { fleetDemand } = setUp({ one: ids })
  const reads: string[] = []
  const counted = (cell: Cell, mayEvict: false): Promise<boolean> => {
    reads.push(cell.id)
    return warm(cell, mayEvict)
  }
  const found = await warmCells({ warm: counted, memory: parts.memory }, fleetDemand, 60_000)
  t.strictSame(found, { warmed: 3, wanted: 300 })
  t.strictSame([...parts.memory.keys()], [ids[0], ids[2], ids[3]], 'the first one leaves last')
  t.notOk(parts.uncached.has(ids[4] ?? ''), 'the shared tier has it')
  t.equal(reads.length, 256, 'no more are read when memory is full')
  const roomy = createMemoryTier<string>(256)
  const { warm: warmRoomy } = new ReadThrough({ ...parts, memory: roomy })
  const warmed = await warmCells({ warm: warmRoomy, memory: roomy }, fleetDemand, 60_000)
  t.equal(warmed.warmed, 256, 'one that just fits is kept')
})

t.test('what was in demand at the start is in demand as long as a request would make it', async t => {
  const { fleetDemand, demand, clock } = setUp({ one: [dhaka.id, sylhet.id] })
  const warmed: string[] = []
  const warm = async ({ id }: Cell): Promise<boolean> => warmed.push(id) === 1
  const memory = createMemoryTier(1)
  t.strictSame(await warmCells({ warm, memory }, fleetDemand, 60_000), { warmed: 1, wanted: 2 })
  t.strictSame(warmed, [dhaka.id, sylhet.id])
  demand.record(dhaka.id, dhaka, clock.now())
  demand.record(khulna.id, khulna, clock.now() + hour)
  clock.advance(2 * hour)
  t.strictSame(await idsOf(fleetDemand), [khulna.id, dhaka.id, sylhet.id].toSorted())
  t.equal(fleetDemand.includes(sylhet.id), true)
  clock.advance(1)
  t.strictSame(await idsOf(fleetDemand), [khulna.id])
  t.equal(fleetDemand.includes(sylhet.id), false)
  for (const [ms, ids] of [
    [hour - 1, [khulna.id]],
    [1, []],
  ] as const) {
    clock.advance(ms)
    t.strictSame(await idsOf(fleetDemand), ids)
    t.equal(fleetDemand.includes(khulna.id), ids.length > 0)
  }
})
