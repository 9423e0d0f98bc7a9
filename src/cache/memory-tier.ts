// The first tier: entries in this process, least recently used out first, bounded by the bytes of the entries and of what
// is kept beside them. Whoever keeps something beside a value tells the entry its size; what it keeps is its own affair.

import { LRUCache } from 'lru-cache'
import type { Entry } from './entry.ts'

/** An entry as this tier has it. */
export type MemoryEntry<Value> = Entry<Value> & {
  /**
   * Sets how many bytes are kept beside the value, instead of those set before; they count as the entry's until it leaves
   * memory, and may move others out. Nothing happens once the entry has left.
   */
  readonly setExtraBytes: (bytes: number) => void
}

export type MemoryTier<Value> = {
  get(key: string): MemoryEntry<Value> | undefined
  /** Looks without counting as a use. */
  peek(key: string): MemoryEntry<Value> | undefined
  /** Takes an entry in, instead of the one under this key; one larger than the whole tier is not kept. */
  set(key: string, entry: Entry<Value>): MemoryEntry<Value>
  delete(key: string): void
  deleteWhere(matches: (key: string, entry: Entry<Value>) => boolean): void
  readonly size: number
  readonly bytes: number
}

export const createMemoryTier = <Value>(maxBytes: number): MemoryTier<Value> => {
  const entries = new LRUCache<string, MemoryEntry<Value>>({ maxSize: maxBytes })
  return {
    get: key => entries.get(key),
    peek: key => entries.peek(key),
    set: (key, entry) => {
      const kept: MemoryEntry<Value> = {
        ...entry,
        setExtraBytes: bytes => {
          if (entries.peek(key) !== kept) return
          // The library leaves the size of a value as it is when the same value is set again.
          entries.delete(key)
          entries.set(key, kept, { size: kept.bytes + bytes })
        },
      }
      entries.set(key, kept, { size: entry.bytes })
      return kept
    },
    delete: key => {
      entries.delete(key)
    },
    deleteWhere: matches => {
      for (const [key, entry] of [...entries.entries()]) if (matches(key, entry)) entries.delete(key)
    },
    get size() {
      return entries.size
    },
    get bytes() {
      return entries.calculatedSize
    },
  }
}
