// The first tier: entries in this process, least recently used out first, bounded by the bytes that they and what is kept
// beside them account for.

import { LRUCache } from 'lru-cache'
import type { Entry } from './entry.ts'

export type MemoryTier<Value> = {
  get(key: string): Entry<Value> | undefined
  /** Looks without counting as a use. */
  peek(key: string): Entry<Value> | undefined
  set(key: string, entry: Entry<Value>): void
  delete(key: string): void
  /** Accounts for bytes that are kept beside an entry, instead of those said before; nothing when it is gone. */
  weigh(key: string, value: Value, bytesBeside: number): void
  deleteWhere(matches: (key: string, entry: Entry<Value>) => boolean): void
  readonly size: number
  readonly bytes: number
}

export const createMemoryTier = <Value>(maxBytes: number): MemoryTier<Value> => {
  const entries = new LRUCache<string, Entry<Value>>({
    maxSize: maxBytes,
    sizeCalculation: entry => entry.bytes,
  })
  return {
    get: key => entries.get(key),
    peek: key => entries.peek(key),
    set: (key, entry) => {
      entries.set(key, entry)
    },
    delete: key => {
      entries.delete(key)
    },
    weigh: (key, value, bytesBeside) => {
      const entry = entries.peek(key)
      if (entry?.value === value) entries.set(key, entry, { size: entry.bytes + bytesBeside })
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
