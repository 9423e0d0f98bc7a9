// Purges as the fleet hears of them: notices in the store that every instance reads at short intervals, so that none is
// missed by one that was away. A hard purge also removes what the shared tier holds.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Purge } from '../cache/purges.ts'
import { utcDayMs } from '../calendar.ts'
import type { ByteStore, FleetStore } from '../stores/store.ts'
import type { Cell } from '../weather/cell.ts'
import { type PurgeOrder, type PurgeScope, readOrder, writeOrder } from './purge-scope.ts'
import { keyFor } from './question.ts'

type NoticeStore = Pick<FleetStore, 'appendNotice' | 'noticesAfter'> & Pick<ByteStore, 'deleteBytes'>

export type PurgeOutcome = { readonly generation: number; readonly removed: number }

const topic = 'purges'
// Longer than any entry can be in use, whatever the configuration.
const keepForMs = 30 * utcDayMs
// A fine grid has hundreds of thousands of cells: removed in steps, so that a gateway answers in between.
const removedAtOnce = 1_000

/**
 * Declares what is in scope stale or gone, over the fleet.
 * @param cells those that may lie in the shared tier, for a hard purge
 */
export const orderPurge = async (
  store: NoticeStore,
  { question, cells, now }: { question: string; cells: readonly Cell[]; now: number },
  order: PurgeOrder,
): Promise<PurgeOutcome> => {
  // Announced first: what is loaded from the old bytes meanwhile is covered by it.
  const generation = await store.appendNotice(topic, writeOrder(order), now + keepForMs)
  let removed = 0
  for (let i = 0; order.kind === 'hard' && i < cells.length; i += removedAtOnce) {
    removed += await store.deleteBytes(
      cells.slice(i, i + removedAtOnce).map(({ id }) => keyFor(question, id)),
    )
    await nextTurn()
  }
  return { generation, removed }
}

/** The purges after the given one, in their order; notices that are none are left out. */
export const purgesAfter = async (store: NoticeStore, generation: number): Promise<Purge<PurgeScope>[]> =>
  (await store.noticesAfter(topic, generation)).notices.flatMap(({ number, text }) => {
    const order = readOrder(text)
    return order ? [{ generation: number, ...order }] : []
  })
