// The second tier: entries as bytes in a store that outlives the process and that instances share. It can only make
// things faster: a store that fails and bytes that do not decode are reported to the observer and count as absent.

import { type Entry, type FreshnessPolicy, usableUntil } from './entry.ts'

/** Where bytes are kept; the store lets an entry go after `expiresAt` (ms since the epoch) by itself. */
export interface ByteStore {
  readBytes(key: string): Promise<Buffer | undefined>
  writeBytes(key: string, bytes: Buffer, expiresAt: number): Promise<void>
}

/** Turns entries into bytes and back; `decode` answers undefined for bytes it does not know. */
export type Codec<Value> = {
  encode(entry: Entry<Value>): Buffer
  decode(bytes: Buffer, key: string): Entry<Value> | undefined
}

export type SharedTierObserver = {
  sharedTierFailed(step: 'read' | 'write' | 'decode', error?: unknown): void
}

export type SharedTier<Value> = {
  get(key: string): Promise<Entry<Value> | undefined>
  set(key: string, entry: Entry<Value>): Promise<void>
}

export const createSharedTier = <Value>(
  store: ByteStore,
  codec: Codec<Value>,
  policy: FreshnessPolicy,
  observer: SharedTierObserver,
): SharedTier<Value> => ({
  get: async key => {
    try {
      const bytes = await store.readBytes(key)
      if (!bytes) return undefined
      const entry = codec.decode(bytes, key)
      if (!entry) observer.sharedTierFailed('decode')
      return entry
    } catch (error) {
      observer.sharedTierFailed('read', error)
      return undefined
    }
  },
  set: async (key, entry) => {
    try {
      await store.writeBytes(key, codec.encode(entry), usableUntil(entry, policy))
    } catch (error) {
      observer.sharedTierFailed('write', error)
    }
  },
})
