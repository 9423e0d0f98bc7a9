// What a key's hash stands for, from a bounded copy in this process or from the store. Hears of changed keys by change records
// in the store that it reads at short intervals, so a copy is never behind by more than that; while the store is away
// known keys go on working from their copies. Whether a key may be used is for the authentication.

import { LRUCache } from 'lru-cache'
import { utcDayMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { type FleetStore, type FoundKey, type KeyStore, StoreError } from '../stores/store.ts'

export type KeyDirectory = {
  /** The key of a hash, if this process has a copy that is fresh. */
  copyOf(hash: string): FoundKey | undefined
  /**
   * The key of a hash, or `unknown`, which is never said from memory alone while the store is away: at once from a copy,
   * else a promise that rejects with StoreError when the store fails.
   */
  find(hash: string): FoundKey | 'unknown' | Promise<FoundKey | 'unknown'>
  /** Reads the change records now instead of at the next interval; never rejects. */
  hear(): Promise<void>
  close(): void
}

type DirectoryStore = Pick<KeyStore, 'findByHash'> &
  Pick<FleetStore, 'changeRecordsAfter' | 'appendChangeRecord'>

const topic = 'keys'
// Long after every copy was looked up again: while the last change record is there, a store that lost it is noticed.
const keepForMs = 400 * utcDayMs
const hearEveryMs = 500
// Copies are looked up again at this age in any case.
const freshForMs = 60_000
// After a look-up that failed a copy is used for so long before the store is asked again, which may take its time to fail.
const retryAfterMs = 1_000
// Apart, so that a flood of wrong keys throws no good one out.
const mostKnown = 50_000
const mostUnknown = 20_000

/** Tells all instances that a key or subscriber is new or changed, after it is; `id` names either. */
export const announceChange = async (
  store: Pick<FleetStore, 'appendChangeRecord'>,
  id: string,
  now: number,
): Promise<void> => {
  await store.appendChangeRecord(topic, id, now + keepForMs)
}

type Copy = { readonly found: FoundKey; freshUntil: number }

export const createKeyDirectory = (store: DirectoryStore, clock: Clock): KeyDirectory => {
  const known = new LRUCache<string, Copy>({ max: mostKnown })
  /** Hash → the instant until which it counts as unknown. */
  const unknown = new LRUCache<string, number>({ max: mostUnknown })
  const lookUps = new Map<string, Promise<FoundKey | 'unknown'>>()

  // A clock that was put back makes nothing fresh for longer.
  const isFresh = (until: number): boolean => {
    const left = until - clock.now()
    return left > 0 && left <= freshForMs
  }

  const copyOf = (hash: string): FoundKey | undefined => {
    const copy = known.get(hash)
    return copy && isFresh(copy.freshUntil) ? copy.found : undefined
  }

  const lookUp = (hash: string): Promise<FoundKey | 'unknown'> => {
    const answer = store.findByHash(hash).then(
      found => {
        // What began before a change that was heard of meanwhile may be older than it.
        if (lookUps.get(hash) !== answer) return found ?? 'unknown'
        lookUps.delete(hash)
        const freshUntil = clock.now() + freshForMs
        if (found) {
          known.set(hash, { found, freshUntil })
          unknown.delete(hash)
        } else {
          unknown.set(hash, freshUntil)
          known.delete(hash)
        }
        return found ?? 'unknown'
      },
      (error: unknown) => {
        if (lookUps.get(hash) === answer) lookUps.delete(hash)
        const copy = known.peek(hash)
        if (!copy || !(error instanceof StoreError)) throw error
        copy.freshUntil = clock.now() + retryAfterMs
        return copy.found
      },
    )
    lookUps.set(hash, answer)
    return answer
  }

  let heard: number | undefined
  let hearing: Promise<void> | undefined
  const forget = (concerns: (found: FoundKey) => boolean): void => {
    for (const [hash, { found }] of [...known.entries()]) if (concerns(found)) known.delete(hash)
    unknown.clear()
    lookUps.clear()
  }
  const readChangeRecords = async (): Promise<void> => {
    try {
      const { records, complete } = await store.changeRecordsAfter(topic, heard ?? 0)
      const changed = new Set(records.map(({ text }) => text))
      // What was said before this process first listened, or while it could not, may concern any copy.
      if (heard === undefined || !complete) forget(() => true)
      else if (changed.size > 0)
        forget(({ key, subscriber }) => changed.has(key.id) || changed.has(subscriber.id))
      heard = records.at(-1)?.number ?? (complete ? heard : undefined)
      // Without any change record a store that loses everything would look as it did before, so there is always one.
      if (heard === undefined) await announceChange(store, 'begin', clock.now())
    } catch {
      // A store that is away is told of by its own observer. Keys may be made meanwhile where it is not.
      unknown.clear()
    }
  }
  const hear = (): Promise<void> => {
    hearing ??= readChangeRecords().finally(() => {
      hearing = undefined
    })
    return hearing
  }
  const timer = setInterval(() => void hear(), hearEveryMs).unref()

  return {
    copyOf,
    find: hash => {
      const copy = copyOf(hash)
      if (copy) return copy
      if (!known.has(hash) && isFresh(unknown.get(hash) ?? 0)) return 'unknown'
      return lookUps.get(hash) ?? lookUp(hash)
    },
    hear,
    close: () => clearInterval(timer),
  }
}
