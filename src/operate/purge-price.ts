// The cost of a purge: the weight of loading everything again, what the budget has room for now, and how long it takes. It is
// an upper bound, because cells load only on demand.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { keyFor } from '../cache/entry-codec.ts'
import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { protocolIn } from '../provider/account.ts'
import { spanMs } from '../provider/spending-windows.ts'
import type { Store } from '../stores/store.ts'
import { type CellId, type Cells, inParts } from '../weather/cell.ts'
import { createBudgetAdmin, type Room } from './budget-admin.ts'
import type { PurgePrice } from './reports/purge-report.ts'

type PurgedCells = {
  readonly kind: PurgePrice['kind']
  readonly cells: Cells
  readonly namespaces: readonly string[]
}

const cellsAtOnce = 200

/** @param namespaces of all upstreams: a cell may have an entry of each, and is cached once. @throws StoreError */
export const priceOf = async (
  config: Config,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { kind, cells, namespaces }: PurgedCells,
): Promise<PurgePrice> => {
  let cached = 0
  for (const part of inParts(cells, cellsAtOnce)) {
    const found = new Set<CellId>()
    for (const namespace of namespaces) {
      const has = await store.hasBytes(part.map(({ id }) => keyFor(namespace, id)))
      for (const [i, { id }] of part.entries()) if (has[i]) found.add(id)
    }
    cached += found.size
    await nextTurn()
  }
  const { weightPerCell } = protocolIn(config)
  const { windows, closedUntil } = await createBudgetAdmin(config, { store, clock }).room(
    // After a soft purge the stale entry is served until the load succeeds.
    kind === 'soft' ? 'refresh' : 'cold',
  )
  const now = clock.now()
  const leastOf = (roomIn: (window: Room) => number): number =>
    closedUntil === null ? Math.min(cached, ...windows.map(roomIn)) : 0
  const fitsNow = leastOf(({ cells }) => cells)
  const endsAt = loadedAt(windows, cached, Math.max(now, closedUntil ?? 0))
  return {
    at: isoOf(now),
    kind,
    cells: cells.length,
    cached,
    weight: cached * weightPerCell,
    windows: windows.map(({ span: name, limit, left, endsAt }) => ({
      name,
      limit,
      left,
      resetsAt: isoOf(endsAt),
    })),
    closedUntil: closedUntil === null ? null : isoOf(closedUntil),
    fallbacks: config.provider.fallbacks.length,
    fitsNow,
    refusedNow: cached - fitsNow,
    oneKeyNow: leastOf(({ oneKey }) => oneKey),
    reloadedAt: endsAt === null ? null : isoOf(endsAt),
  }
}

type Limited = Pick<Room, 'span' | 'endsAt' | 'cells' | 'wholeCells'>

/** When so many cells are loaded if they get all the room of the windows from an instant on; null for never. */
export const loadedAt = (windows: readonly Limited[], cells: number, from: number): number | null => {
  const rooms = windows.map(window => ({ ...window }))
  let [at, left] = [from, cells]
  /** Restarts the windows that are over. False if one of them will never have room. */
  const goOn = (): boolean =>
    rooms.every(room => {
      if (room.endsAt > at) return true
      const lengthMs = spanMs[room.span]
      room.endsAt += (Math.floor((at - room.endsAt) / lengthMs) + 1) * lengthMs
      room.cells = room.wholeCells
      return room.cells > 0
    })
  while (goOn()) {
    const fitting = Math.max(0, Math.min(left, ...rooms.map(room => room.cells)))
    left -= fitting
    for (const room of rooms) room.cells -= fitting
    if (left === 0) return at
    at = Math.max(...rooms.filter(room => room.cells <= 0).map(({ endsAt }) => endsAt))
  }
  return null
}
