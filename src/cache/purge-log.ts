// The purge log: purges as change records in the store. Every instance reads it at short intervals, so that none misses a
// purge while it is disconnected; what it may have missed all the same is stale. A hard purge also deletes entries from the
// shared tier.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { utcDayMs } from '../common/calendar.ts'
import type { ByteStore, FleetStore } from '../stores/store.ts'
import type { Cell } from '../weather/cell.ts'
import { keyFor } from './entry-codec.ts'
import { type PurgeOrder, type PurgeScope, readOrder, writeOrder } from './purge-scope.ts'
import type { Purge, Purges } from './purges.ts'

type ChangeLogStore = Pick<FleetStore, 'appendChangeRecord' | 'changeRecordsAfter'> &
  Pick<ByteStore, 'deleteBytes'>

export type PurgeOutcome = { readonly generation: number; readonly removed: number }

const topic = 'purges'
// While the last change record is kept, an instance notices that the log was lost.
const keepForMs = 400 * utcDayMs
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

/** @returns the purges that are in force from now on; undefined where there is no log: it never began, or was lost */
export const readPurges = async (
  store: Pick<FleetStore, 'changeRecordsAfter'>,
  purges: Purges<PurgeScope>,
): Promise<{ readonly added: readonly Purge<PurgeScope>[]; readonly isWhole: boolean } | undefined> => {
  const known = purges.generation
  const { records, complete } = await store.changeRecordsAfter(topic, known)
  // What was ordered before the first record is unknown to who reads the log for the first time.
  const isWhole = known > 0 && complete
  const [first] = records
  if (!first) return isWhole ? { added: [], isWhole } : undefined
  const added = records.flatMap(({ number, text }) => {
    const order = readOrder(text)
    return order ? [{ generation: number, ...order }] : []
  })
  for (const purge of added) purges.add(purge)
  purges.reach(records.at(-1)?.number ?? known)
  if (!isWhole) purges.miss(first.number)
  return { added, isWhole }
}

/**
 * As `readPurges`; where there is no log it begins with a soft purge of everything. That costs nothing where nothing was cached,
 * and covers what was ordered into a log that was lost.
 */
export const followPurges = async (
  store: Pick<FleetStore, 'appendChangeRecord' | 'changeRecordsAfter'>,
  purges: Purges<PurgeScope>,
  now: number,
): ReturnType<typeof readPurges> => {
  const read = await readPurges(store, purges)
  if (read) return read
  const text = writeOrder({ kind: 'soft', scope: { all: true } })
  await store.appendChangeRecord(topic, text, now + keepForMs, purges.generation)
  purges.restart()
  // Others may have begun it at the same time, and purged since.
  return readPurges(store, purges)
}
