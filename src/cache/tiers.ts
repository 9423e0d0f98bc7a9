// The two tiers of the cache. Memory: an LRU cache in this process, bounded by bytes, including data derived from a value such as rendered
// bodies. Shared: bytes in the store, for all instances and across restarts; failures of the store and invalid bytes count as a miss.

import { LRUCache } from 'lru-cache'
import type { ByteStore } from '../stores/store.ts'
import type { Entry, EntryMetadata, PurgeKind } from './freshness.ts'

export type MemoryEntry<Value> = Entry<Value> & {
  /** The strongest purge that covers the entry. */
  purged: PurgeKind | undefined
  /** When a read last moved it to the front of the tier, ms since the epoch. */
  movedAt: number
  readonly derived: Derived
}

/** What the reader of an entry derives from its value and keeps as long as the entry: it goes with the entry. */
export type Derived = {
  /** The reader's own. A WeakMap by value would have the garbage collector walk through all of it in one pause. */
  data: unknown
  /**
   * Sets the size of the data, replacing the previous size. It counts as the entry's and may evict others. Does nothing once the
   * entry has left memory.
   */
  readonly setBytes: (bytes: number) => void
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
    movedAt: Number.NEGATIVE_INFINITY,
    derived: {
      data: undefined,
      setBytes: bytes => {
        if (memory.peek(key) !== kept) return
        // lru-cache ignores a new size when the same value is set again.
        memory.delete(key)
        memory.set(key, kept, { size: kept.bytes + bytes })
      },
    },
  }
  memory.set(key, kept, { size: entry.bytes })
  return kept
}

/** Invalid bytes, with the reason as a metric label. */
type Refused = { readonly refused: string }

/** Encodes and decodes entries; `metadata` and `decode` refuse invalid bytes. */
export type Codec<Value> = {
  /** No entry is larger. */
  readonly maxBytes: number
  encode(entry: Entry<Value>, key: string): Buffer
  /** Only the entry's metadata, at a fraction of the cost of decoding. */
  metadata(bytes: Buffer, key: string): EntryMetadata | Refused
  decode(bytes: Buffer, key: string): Entry<Value> | Refused
}

export type SharedTierObserver = {
  onSharedTierFailure(step: 'read' | 'write' | 'lease', error: unknown): void
  /** The bytes of an entry are invalid and count as a miss. */
  onEntryRefused(reason: string, key: string): void
}

export type SharedTier<Value> = ReturnType<typeof createSharedTier<Value>>

export type SharedTierStore = {
  readonly name: string
  readonly store: Pick<ByteStore, 'readBytes' | 'writeBytes'>
  /** How long after its fetch an entry may be served now. */
  readonly longestUseMs: () => number
}

export const createSharedTier = <Value>(
  tier: SharedTierStore,
  codec: Codec<Value>,
  observer: SharedTierObserver,
) => {
  const { name, store } = tier
  const read = async (
    key: string,
    isWanted?: (metadata: EntryMetadata) => boolean,
  ): Promise<Entry<Value> | Refused | undefined> => {
    const bytes = await store.readBytes(key, codec.maxBytes)
    if (bytes === undefined) return undefined
    if (typeof bytes === 'string') return { refused: bytes }
    const metadata = isWanted && codec.metadata(bytes, key)
    if (metadata && 'refused' in metadata) return metadata
    return metadata && !isWanted?.(metadata) ? undefined : codec.decode(bytes, key)
  }

  return {
    /** The kind of store, as it appears in `cache-status` and metrics. */
    name,
    /** @param isWanted checks the metadata before decoding; an unwanted entry counts as a miss */
    get: async (
      key: string,
      isWanted?: (metadata: EntryMetadata) => boolean,
    ): Promise<Entry<Value> | undefined> => {
      try {
        const found = await read(key, isWanted)
        if (!found || !('refused' in found)) return found
        observer.onEntryRefused(found.refused, key)
      } catch (error) {
        observer.onSharedTierFailure('read', error)
      }
      return undefined
    },
    /**
     * False when the holder has lost its lease: another instance may have written a newer entry.
     * @param holder of the lease, if there is one
     */
    set: async (key: string, entry: Entry<Value>, holder?: string): Promise<boolean> => {
      try {
        // Kept to the end of its timeline, because a change of the settings may let it be served for longer.
        const expiresAt = Math.ceil(Math.max(entry.fetchedAt + tier.longestUseMs(), entry.coversUntil ?? 0))
        return await store.writeBytes(key, codec.encode(entry, key), expiresAt, holder)
      } catch (error) {
        observer.onSharedTierFailure('write', error)
        return true
      }
    },
  }
}
