// Which cells are in demand over the fleet: requested here, in demand before this instance started, or reported to the store by any
// instance. Also warms the cache with them at a start.

import type { FleetStore } from '../stores/store.ts'
import type { Box, Cell, Grid } from '../weather/cell.ts'
import type { Demand } from './demand.ts'
import { createHeartbeat, type Fleet, type HeartbeatParts } from './heartbeat.ts'
import type { MemoryTier } from './tiers.ts'
import { eachInTurns } from './turns.ts'

export type FleetDemandParts = Omit<HeartbeatParts, 'demand' | 'namespace' | 'store'> & {
  readonly store: Pick<FleetStore, 'heartbeat' | 'wanted'>
  readonly demand: Demand<Cell>
  readonly grid: Grid
  /** Those of all upstreams; demand is recorded under the first. */
  readonly namespaces: readonly string[]
  /** Those of the grid: more cells than it has can't be in demand. */
  readonly bounds: Box
  readonly cellDegrees: number
}

const knownForMs = 600_000

export type FleetDemand = ReturnType<typeof createFleetDemand>

export const createFleetDemand = (parts: FleetDemandParts) => {
  const { store, demand, grid, namespaces, demandForMs, clock } = parts
  const maxCells = cellsIn(parts.bounds, parts.cellDegrees)
  let fleet: Fleet = { instances: 1, variants: 1, wanted: 0 }
  // The fleet's demand before this instance took part in it.
  let atStart: { readonly at: number; readonly ids: ReadonlySet<string> } = { at: 0, ids: new Set() }
  const since = (): number => clock.now() - demandForMs
  const isRecentStart = (): boolean => Math.abs(clock.now() - atStart.at) <= demandForMs

  /** The cells in demand over the fleet, latest first. @throws StoreError */
  const cells = async (): Promise<Cell[]> => {
    // Another upstream may have been the first before a change of the list.
    const lists = await Promise.all(namespaces.map(namespace => store.wanted(namespace, since())))
    const names = lists.length === 1 ? (lists[0] ?? []) : [...new Set(lists.flat())]
    const found: Cell[] = []
    await eachInTurns(names, name => {
      const cell = grid.cellNamed(name)
      if (cell) found.push(cell)
    })
    return found
  }
  // Those of the fleet a while ago: a cell that only another gateway's consumers request is counted once.
  let known: { readonly at: number; readonly ids: ReadonlySet<string> } = {
    at: Number.NEGATIVE_INFINITY,
    ids: new Set(),
  }
  const readKnown = (): void => {
    if (Math.abs(clock.now() - known.at) < knownForMs) return
    known = { at: clock.now(), ids: known.ids }
    const note = (found: readonly Cell[]): void => {
      known = { at: known.at, ids: new Set(found.map(({ id }) => id)) }
    }
    // Without the store the next period tries again.
    cells().then(note, () => {})
  }

  const includes = (id: string): boolean =>
    (demand.of(id)?.lastRequestedAt ?? 0) >= since() || (isRecentStart() && atStart.ids.has(id))

  return {
    heartbeat: createHeartbeat({
      ...parts,
      namespace: namespaces[0] ?? '',
      onHeartbeat: seen => {
        fleet = { ...seen, wanted: Math.min(seen.wanted, maxCells) }
        parts.onHeartbeat(fleet)
      },
    }),
    /** At the last heartbeat. */
    fleet: (): Fleet => fleet,
    /** The instant since which a request makes a cell count as in demand, ms since the epoch. */
    since,
    includes,
    /** How many cells are in demand over the fleet, or are kept warm without demand. */
    wantedWith: (pinned: readonly Cell[]): number => {
      if (pinned.length > 0) readKnown()
      return fleet.wanted + pinned.filter(({ id }) => !includes(id) && !known.ids.has(id)).length
    },
    /** Does something with the id of each cell requested here, or in demand over the fleet at the start, in turns. */
    each: async (act: (id: string) => void): Promise<void> => {
      const from = since()
      const walked = new Set<string>()
      const once = (id: string): void => {
        if (walked.has(id)) return
        walked.add(id)
        act(id)
      }
      await eachInTurns(demand.keys(), id => {
        if ((demand.of(id)?.lastRequestedAt ?? 0) >= from) once(id)
      })
      if (isRecentStart()) await eachInTurns([...atStart.ids], once)
    },
    cells,
    /** These cells were in demand when this instance started. */
    startedWith: (cells: readonly Cell[]): void => {
      atStart = { at: clock.now(), ids: new Set(cells.map(({ id }) => id)) }
    },
  }
}

/** How many cells a grid has. The centre of a cell on the edge may lie outside the bounds. */
const cellsIn = ({ south, west, north, east }: Box, cellDegrees: number): number => {
  const cellsOver = (from: number, to: number): number => Math.ceil((to - from) / cellDegrees) + 2
  return cellsOver(south, north) * cellsOver(west, east)
}

// Each read of the shared tier is a round trip: read in batches, and check the deadline in between.
const warmAtOnce = 256

/**
 * Copies cells in demand over the fleet from the shared tier into memory, within this time: those that were requested last, as many as
 * fit.
 */
export const warmCells = async (
  {
    warm,
    memory,
  }: {
    readonly warm: (cell: Cell, mayEvict: false) => Promise<boolean>
    readonly memory: Pick<MemoryTier<unknown>, 'get' | 'size' | 'calculatedSize' | 'maxSize'>
  },
  fleetDemand: Pick<FleetDemand, 'cells' | 'startedWith'>,
  warmForMs: number,
): Promise<{ warmed: number; wanted: number }> => {
  const deadline = performance.now() + warmForMs
  const cells = await fleetDemand.cells().catch(() => [])
  /** Whether memory has no room for another entry of the average size. */
  const isFull = (): boolean => memory.calculatedSize * (memory.size + 1) > memory.maxSize * memory.size
  let warmed = 0
  let tried = 0
  while (tried < cells.length && !isFull() && performance.now() < deadline) {
    const part = cells.slice(tried, tried + warmAtOnce)
    const found = await Promise.all(part.map(cell => warm(cell, false)))
    warmed += found.filter(Boolean).length
    tried += warmAtOnce
  }
  // The first ones are to leave memory last.
  await eachInTurns(cells.slice(0, tried).toReversed(), ({ id }) => void memory.get(id))
  fleetDemand.startedWith(cells)
  return { warmed, wanted: cells.length }
}
