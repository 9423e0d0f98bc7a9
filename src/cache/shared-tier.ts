// The second tier: entries as bytes in a store that outlives the process and that instances share. It can only make
// things faster: a store that fails, and bytes that can't be believed, are told to the observer and count as absent.

import type { ByteStore } from '../stores/store.ts'
import type { Entry, Notes } from './entry.ts'

/** Bytes that are no entry of this key, and the reason in a word of low cardinality. */
type Refused = { readonly refused: string }

/** Turns entries into bytes and back; `notes` and `decode` refuse bytes they do not believe. */
export type Codec<Value> = {
  /** No entry is larger. */
  readonly mostBytes: number
  encode(entry: Entry<Value>, key: string): Buffer
  /** What is noted in them, at a fraction of what decoding costs. */
  notes(bytes: Buffer, key: string): Notes | Refused
  decode(bytes: Buffer, key: string): Entry<Value> | Refused
}

export type SharedTierObserver = {
  sharedTierFailed(step: 'read' | 'write' | 'flight', error: unknown): void
  /** Something lies under a key of the cache and is not served. */
  entryRefused(reason: string, key: string): void
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
): SharedTier<Value> => {
  const read = async (
    key: string,
    isWanted: ((notes: Notes) => boolean) | undefined,
  ): Promise<Entry<Value> | Refused | undefined> => {
    const bytes = await store.readBytes(key, codec.mostBytes)
    if (bytes === undefined) return undefined
    if (typeof bytes === 'string') return { refused: bytes }
    const notes = isWanted && codec.notes(bytes, key)
    if (notes && 'refused' in notes) return notes
    return notes && !isWanted?.(notes) ? undefined : codec.decode(bytes, key)
  }

  return {
    name,
    get: async (key, isWanted) => {
      try {
        const found = await read(key, isWanted)
        if (!found || !('refused' in found)) return found
        observer.entryRefused(found.refused, key)
      } catch (error) {
        observer.sharedTierFailed('read', error)
      }
      return undefined
    },
    set: async (key, entry, token) => {
      try {
        const expiresAt = Math.ceil(entry.fetchedAt + longestUseMs)
        return await store.writeBytes(key, codec.encode(entry, key), expiresAt, token)
      } catch (error) {
        observer.sharedTierFailed('write', error)
        return true
      }
    },
  }
}
