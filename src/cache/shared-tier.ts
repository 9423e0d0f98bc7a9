// The second tier: entries as bytes in a store that outlives the process and that instances share. It can only make
// things faster: a store that fails and bytes that do not decode are told to the observer and count as absent.

import type { ByteStore } from '../stores/store.ts'
import type { Entry, Notes } from './entry.ts'

/** Turns entries into bytes and back; `notes` and `decode` answer undefined for bytes they do not know. */
export type Codec<Value> = {
  encode(entry: Entry<Value>): Buffer
  /** What is noted in them, at a fraction of what decoding costs. */
  notes(bytes: Buffer, key: string): Notes | undefined
  decode(bytes: Buffer, key: string): Entry<Value> | undefined
}

export type SharedTierObserver = {
  sharedTierFailed(step: 'read' | 'write' | 'decode' | 'flight', error?: unknown): void
}

export type SharedTier<Value> = {
  /** What it is made of, in the word that answers and metrics use. */
  readonly name: string
  /** @param isWanted by what is noted with it; an entry that is not wanted counts as absent */
  get(key: string, isWanted?: (notes: Notes) => boolean): Promise<Entry<Value> | undefined>
  /**
   * False when a later flight of the key has written, so that what the tier holds is newer than the entry.
   * @param token of the flight that loaded the entry, if one was given
   */
  set(key: string, entry: Entry<Value>, token?: number): Promise<boolean>
}

/** @param longestUseMs the time after its fetch until which an entry may be served at all */
export const createSharedTier = <Value>(
  {
    name,
    store,
    longestUseMs,
  }: { name: string; store: Pick<ByteStore, 'readBytes' | 'writeBytes'>; longestUseMs: number },
  codec: Codec<Value>,
  observer: SharedTierObserver,
): SharedTier<Value> => ({
  name,
  get: async (key, isWanted) => {
    try {
      const bytes = await store.readBytes(key)
      if (!bytes) return undefined
      const notes = isWanted && codec.notes(bytes, key)
      if (notes && !isWanted(notes)) return undefined
      const entry = codec.decode(bytes, key)
      if (!entry) observer.sharedTierFailed('decode')
      return entry
    } catch (error) {
      observer.sharedTierFailed('read', error)
      return undefined
    }
  },
  set: async (key, entry, token) => {
    try {
      const expiresAt = Math.ceil(entry.fetchedAt + longestUseMs)
      return await store.writeBytes(key, codec.encode(entry), expiresAt, token)
    } catch (error) {
      observer.sharedTierFailed('write', error)
      return true
    }
  },
})
