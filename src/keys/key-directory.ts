// Looks keys up by hash, in a bounded cache or in the store. Reads the log of key changes every half second, and looks changed keys up
// again; while the store is away the others go on working.

import { LRUCache } from 'lru-cache'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { appendToLog, followLog } from '../stores/change-log.ts'
import { type FleetStore, type FoundKey, type KeyStore, StoreError } from '../stores/store.ts'
import { createCopiesById } from './copies-by-id.ts'

/** A copy of a key. Its owner must look it up again once it is not fresh. */
export type KeyCopy = {
  readonly found: FoundKey
  /** Ms since the epoch; 0 once the key has changed or the directory has dropped the copy. */
  freshUntil: number
}

export type KeyDirectory = ReturnType<typeof createKeyDirectory>

type DirectoryStore = Pick<KeyStore, 'findByHash'> &
  Pick<FleetStore, 'changeRecordsAfter' | 'appendChangeRecord'>

const topic = 'keys'
const readEveryMs = 500
// A copy of this age is looked up again in any case.
export const copyFreshForMs = 60_000
// After a failed look-up a copy is used for so long before the next look-up, which may fail slowly. A lost key is not looked up either.
const retryAfterMs = 1_000
// Instead of an instant. Such a copy proves only that the store had the key: records of keys are never deleted.
const changed = 0
// Two caches, so that a flood of wrong keys evicts no valid one.
const maxKnown = 50_000
const maxUnknown = 20_000

/** Notifies all instances that a key or subscriber was created or changed; call it afterwards. `id` names either. */
export const announceChange = async (
  store: Pick<FleetStore, 'appendChangeRecord'>,
  id: string,
  now: number,
): Promise<void> => {
  await appendToLog(store, topic, id, now)
}

export const createKeyDirectory = (store: DirectoryStore, clock: Clock) => {
  const copiesById = createCopiesById<KeyCopy>()
  // By size, because lru-cache allocates memory for `max` entries at the start.
  const known = new LRUCache<string, KeyCopy>({
    maxSize: maxKnown,
    sizeCalculation: () => 1,
    dispose: copy => {
      copy.freshUntil = changed
      copiesById.delete(copy)
    },
  })
  /** Hash → instant until which it counts as unknown, or as lost where there is a copy. */
  const unknown = new LRUCache<string, number>({ maxSize: maxUnknown, sizeCalculation: () => 1 })
  const lookUps = new Map<string, Promise<FoundKey | 'unknown'>>()

  const isFresh = (until: number): boolean => isStillToCome(clock, until, copyFreshForMs)

  const lookUp = (hash: string): Promise<FoundKey | 'unknown'> => {
    const answer = store.findByHash(hash).then(
      found => {
        // A look-up that began before a change was read may have the older key: it is not cached.
        const isLatest = lookUps.get(hash) === answer
        if (isLatest) lookUps.delete(hash)
        const lost = found ? undefined : known.peek(hash)
        if (isLatest && found) {
          const copy = { found, freshUntil: clock.now() + copyFreshForMs }
          known.set(hash, copy)
          copiesById.add(copy)
          unknown.delete(hash)
        } else if (isLatest) unknown.set(hash, clock.now() + (lost ? retryAfterMs : copyFreshForMs))
        if (lost) throw isGone(lost)
        return found ?? 'unknown'
      },
      (error: unknown) => {
        if (lookUps.get(hash) === answer) lookUps.delete(hash)
        const copy = known.peek(hash)
        if (!copy || copy.freshUntil === changed || !(error instanceof StoreError)) throw error
        copy.freshUntil = clock.now() + retryAfterMs
        return copy.found
      },
    )
    lookUps.set(hash, answer)
    return answer
  }

  const expire = (copies: Iterable<KeyCopy>): void => {
    for (const copy of copies) copy.freshUntil = changed
  }
  const readChanges = followLog(
    store,
    topic,
    {
      begin: 'begin',
      apply: ({ records, isWhole }) => {
        if (isWhole && records.length === 0) return
        // Changes that are missing from the log may concern any copy.
        if (!isWhole) expire(known.values())
        else for (const id of new Set(records.map(({ text }) => text))) expire(copiesById.of(id))
        unknown.clear()
        lookUps.clear()
      },
      // Keys may be created meanwhile by processes that reach the store.
      onFailure: () => unknown.clear(),
    },
    clock,
  )
  const timer = setInterval(() => void readChanges(), readEveryMs).unref()

  return {
    /** The copy of a key in this process, fresh or not. */
    copyOf: (hash: string): KeyCopy | undefined => known.get(hash),
    /**
     * The key of a hash, or `unknown`: synchronously from a fresh copy, else as a promise that rejects with StoreError when
     * the store fails, or has lost a key that was known here. While the store is away no key is `unknown`.
     */
    find: (hash: string): FoundKey | 'unknown' | Promise<FoundKey | 'unknown'> => {
      const copy = known.get(hash)
      if (copy && isFresh(copy.freshUntil)) return copy.found
      if (isFresh(unknown.get(hash) ?? 0)) return copy ? Promise.reject(isGone(copy)) : 'unknown'
      return lookUps.get(hash) ?? lookUp(hash)
    },
    /** Reads the log of key changes now and not at the next interval; never rejects. */
    readChanges,
    close: (): void => clearInterval(timer),
  }
}

const isGone = ({ found }: KeyCopy): StoreError =>
  new StoreError(`the record of key ${found.key.id} is gone from the store`)
