// The purge log: purges as change records in the store. Every instance reads it at short intervals, so that none misses a
// purge while it is disconnected. A hard purge also deletes entries from the shared tier.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Purge } from '../cache/purges.ts'
import { utcDayMs } from '../calendar.ts'
import type { ByteStore, FleetStore } from '../stores/store.ts'
import type { Cell } from '../weather/cell.ts'
import { keyFor } from './cache-namespace.ts'
import { type PurgeOrder, type PurgeScope, readOrder, writeOrder } from './purge-scope.ts'

type ChangeLogStore = Pick<FleetStore, 'appendChangeRecord' | 'changeRecordsAfter'> &
  Pick<ByteStore, 'deleteBytes'>

export type PurgeOutcome = { readonly generation: number; readonly removed: number }

const topic = 'purges'
// Longer than any configuration serves an entry.
const keepForMs = 30 * utcDayMs
// A fine grid has hundreds of thousands of cells: deleted in steps, so that the event loop is free in between.
const removedAtOnce = 1_000

/**
 * Purges a scope over the fleet.
 * @param cells the cells in scope, whose entries a hard purge deletes from the shared tier
 */
export const orderPurge = async (
  store: ChangeLogStore,
  { namespace, cells, now }: { namespace: string; cells: readonly Cell[]; now: number },
  order: PurgeOrder,
): Promise<PurgeOutcome> => {
  // Recorded before the deletion, so that it covers entries read from the old bytes meanwhile.
  const generation = await store.appendChangeRecord(topic, writeOrder(order), now + keepForMs)
  let removed = 0
  for (let i = 0; order.kind === 'hard' && i < cells.length; i += removedAtOnce) {
    removed += await store.deleteBytes(
      cells.slice(i, i + removedAtOnce).map(({ id }) => keyFor(namespace, id)),
    )
    await nextTurn()
  }
  return { generation, removed }
}

/** The purges after the given one, in order. Change records that are not valid purges are skipped. */
export const purgesAfter = async (store: ChangeLogStore, generation: number): Promise<Purge<PurgeScope>[]> =>
  (await store.changeRecordsAfter(topic, generation)).records.flatMap(({ number, text }) => {
    const order = readOrder(text)
    return order ? [{ generation: number, ...order }] : []
  })
