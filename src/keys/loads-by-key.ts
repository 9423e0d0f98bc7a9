// Counts the cells that this process loaded for each key in the running UTC day, which is the day of the provider's limit. For operators:
// no limit depends on it.

import { LRUCache } from 'lru-cache'
import { utcDayMs } from '../common/calendar.ts'

/** `share`: 0 to 1, what the cells weigh of the limit of the day; null where it has none. */
export type Loads = { readonly keyId: string; readonly cells: number; readonly share: number | null }

export type LoadsByKey = ReturnType<typeof createLoadsByKey>

type Parts = {
  /** Ms since the epoch. */
  readonly now: () => number
  readonly weightPerCell: () => number
  /** In weight; undefined without a limit. */
  readonly limitOfDay: () => number | undefined
  /** Counts each cell in the store too. */
  readonly countLoad: (keyId: string) => void
}

// Beyond it the key whose last load is oldest is forgotten.
const maxKeys = 10_000

export const createLoadsByKey = ({ now, weightPerCell, limitOfDay, countLoad }: Parts) => {
  // By size, because lru-cache allocates memory for `max` entries at the start.
  const counts = new LRUCache<string, number>({ maxSize: maxKeys, sizeCalculation: () => 1 })
  let day = Number.NaN
  const today = () => {
    const current = Math.floor(now() / utcDayMs)
    if (current !== day) counts.clear()
    day = current
    return counts
  }
  const share = (cells: number, limit: number | undefined): number | null =>
    limit === undefined ? null : Math.min(1, (cells * weightPerCell()) / limit)
  return {
    /** Counts one cell. */
    record: (keyId: string): void => {
      const counted = today()
      counted.set(keyId, (counted.peek(keyId) ?? 0) + 1)
      countLoad(keyId)
    },
    /** Today's, in no particular order. */
    all: (): Loads[] => {
      const limit = limitOfDay()
      return [...today().entries()].map(([keyId, cells]) => ({ keyId, cells, share: share(cells, limit) }))
    },
    /** The share of the key that loaded most today. */
    topShare: (): number | null => {
      let most = 0
      for (const cells of today().values()) most = Math.max(most, cells)
      return share(most, limitOfDay())
    },
  }
}
