// The purge log: purges as change records in the store. Every instance reads it at short intervals, so that none misses a
// purge while it is disconnected; what it may have missed all the same is stale. A hard purge also deletes entries from the
// shared tier.

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
// While the last change record is kept, an instance notices that the log was lost.
const keepForMs = 400 * utcDayMs
// The first record of a log, which purges nothing.
const begin = '{}'
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

/** What came after a change record that an instance knows. */
type PurgesRead = {
  readonly purges: readonly Purge<PurgeScope>[]
  /** The number of the newest record, a purge or not; undefined without any. */
  readonly newest: number | undefined
  /** Purges from before this number may be unknown; undefined where none is. */
  readonly missedBefore: number | undefined
}

/**
 * @param known the number of the last record that is known; 0 reads all that there are
 * @returns undefined where there is no log: it never began, or has lost the record that is known
 */
export const purgesAfter = async (
  store: Pick<FleetStore, 'changeRecordsAfter'>,
  known: number,
): Promise<PurgesRead | undefined> => {
  const { records, complete } = await store.changeRecordsAfter(topic, known)
  const isWhole = known > 0 && complete
  if (records.length === 0 && !isWhole) return undefined
  return {
    purges: records.flatMap(({ number, text }) => {
      const order = readOrder(text)
      return order ? [{ generation: number, ...order }] : []
    }),
    newest: records.at(-1)?.number,
    missedBefore: isWhole ? undefined : records[0]?.number,
  }
}

/** Goes on where there is no log: one that never began begins, one that was lost begins again with a soft purge of everything. */
export const beginLog = async (
  store: Pick<FleetStore, 'appendChangeRecord' | 'changeRecordsAfter'>,
  known: number,
  now: number,
): Promise<PurgesRead | undefined> => {
  const text = known === 0 ? begin : writeOrder({ kind: 'soft', scope: { all: true } })
  await store.appendChangeRecord(topic, text, now + keepForMs)
  // Others may have begun it at the same time, and purged since.
  return purgesAfter(store, 0)
}
