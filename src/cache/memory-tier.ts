// The first tier: entries in this process, least recently used out first, bounded by the bytes they account for.

import { LRUCache } from 'lru-cache'
import type { Entry } from './entry.ts'

export type MemoryTier<Value> = {
  get(key: string): Entry<Value> | undefined
  set(key: string, entry: Entry<Value>): void
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
    set: (key, entry) => {
      entries.set(key, entry)
    },
    get size() {
      return entries.size
    },
    get bytes() {
      return entries.calculatedSize
    },
  }
}
