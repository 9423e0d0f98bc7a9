// The keys that are known to have no usable entry in either tier, so that their next read needs a load. They come from failed
// cold loads, hard purges, and reads of the shared tier that found nothing; a key that was never read is not among them.
// Another instance may load one meanwhile, so some are looked up again at intervals.

import { LRUCache } from 'lru-cache'

const maxKeys = 50_000
// Each is a read of the shared tier.
const maxLookUps = 64

export type Uncached = {
  add(key: string): void
  delete(key: string): void
  has(key: string): boolean
  /**
   * Looks some of them up again, the oldest look-up first, and forgets those that are not in demand.
   * @param lookUp adds or deletes the key
   */
  check(isInDemand: (key: string) => boolean, lookUp: (key: string) => Promise<unknown>): Promise<void>
}

export const createUncached = (): Uncached => {
  // By size, because lru-cache allocates `max` entries at once.
  const keys = new LRUCache<string, true>({ maxSize: maxKeys, sizeCalculation: () => 1 })
  return {
    add: key => void keys.set(key, true),
    delete: key => void keys.delete(key),
    has: key => keys.has(key),
    check: async (isInDemand, lookUp) => {
      const oldest = [...keys.rkeys()]
      for (const key of oldest) if (!isInDemand(key)) keys.delete(key)
      await Promise.all(
        oldest
          .filter(key => keys.has(key))
          .slice(0, maxLookUps)
          .map(lookUp),
      )
    },
  }
}
