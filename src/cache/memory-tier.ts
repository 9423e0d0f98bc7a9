// The memory tier: an LRU cache of entries in this process, bounded by their bytes. Callers that keep derived data beside a
// value (such as rendered bodies) report its size through `setExtraBytes`, so that the bound covers it too.

import { LRUCache } from 'lru-cache'
import type { Entry } from './freshness.ts'
import type { PurgeKind } from './purges.ts'

/** An entry in this tier. */
export type MemoryEntry<Value> = Entry<Value> & {
  /** The strongest purge that covers the entry. */
  purged: PurgeKind | undefined
  /**
   * Sets the size of the data kept beside the value, replacing the previous size. It counts as the entry's and may evict
   * others. Does nothing once the entry has left memory.
   */
  readonly setExtraBytes: (bytes: number) => void
}

export type MemoryTier<Value> = LRUCache<string, MemoryEntry<Value>>

export const createMemoryTier = <Value>(maxBytes: number): MemoryTier<Value> =>
  new LRUCache({ maxSize: maxBytes })

/** Replaces the entry of this key. An entry larger than the whole tier is not kept. */
export const keepEntry = <Value>(
  memory: MemoryTier<Value>,
  key: string,
  entry: Entry<Value>,
  purged?: PurgeKind,
): MemoryEntry<Value> => {
  const kept: MemoryEntry<Value> = {
    ...entry,
    purged,
    setExtraBytes: bytes => {
      if (memory.peek(key) !== kept) return
      // lru-cache ignores a new size when the same value is set again.
      memory.delete(key)
      memory.set(key, kept, { size: kept.bytes + bytes })
    },
  }
  memory.set(key, kept, { size: entry.bytes })
  return kept
}
