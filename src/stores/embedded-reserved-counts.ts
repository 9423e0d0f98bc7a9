// Counts while the embedded store's file can't be written: they are kept in the reserve and here, and go into the file
// once it can be written again. A count stands as the whole of its day, so it may go there more than once. How the
// reserve keeps them is embedded-reserve's.

import { messageOf } from '../errors.ts'
import { isUnwritten } from './embedded-attempt.ts'
import { openReserve, type Reserve, type ReservedCount } from './embedded-reserve.ts'
import { type RecordObserver, shown } from './records.ts'

export type ReservedCounts = {
  /** Undefined for a count that is in the file. */
  usedOn(keyId: string, day: string): number | undefined
  /**
   * Counts in the file, or in the reserve where that can't be written.
   * @param inFile counts in one transaction
   * @param count does the same and hands over each count that changed
   */
  count<Value>(inFile: () => Value, count: (put: (count: ReservedCount) => void) => Value): Value
  /** Puts what the reserve has into the file, if it can be written, and lets go of the reserve. */
  close(): void
}

type Parts = {
  /** Of the store's file. */
  readonly path: string
  /** Those of the counts that the file has lower or not at all. */
  readonly missing: (counts: readonly ReservedCount[]) => ReservedCount[]
  /** Raises counts in the file, all or none. */
  readonly raise: (counts: readonly ReservedCount[]) => void
  readonly observer: RecordObserver
}

// How often the file is tried while counts are in the reserve.
const tryEveryMs = 1_000

export const createReservedCounts = ({ path, missing, raise, observer }: Parts): ReservedCounts => {
  const held = new Map<string, ReservedCount>()
  const nameOf = (keyId: string, day: string) => `${day} ${keyId}`
  let reserve: Reserve | undefined
  // What another process put there is not for this one to clear: it may be at it still.
  let isOurs = false
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  const wait = (): void => {
    isWaiting = true
    timer = setTimeout(() => {
      isWaiting = false
    }, tryEveryMs).unref()
  }
  /** Whether all counts are in the file. @throws when it fails otherwise than by not being written */
  const merge = (): boolean => {
    if (held.size === 0) return true
    if (isWaiting) return false
    try {
      raise([...held.values()])
    } catch (error) {
      if (!isUnwritten(error)) throw error
      wait()
      return false
    }
    observer.reserveMerged(held.size)
    held.clear()
    if (isOurs) reserve?.clear()
    isOurs = false
    return true
  }
  /** @throws `reason` when the counts do not fit */
  const keep = (counts: readonly ReservedCount[], reason: unknown): void => {
    if (!reserve) throw reason
    // Of a former process, and in the file since.
    if (held.size === 0) reserve.clear()
    if (!reserve.put(counts)) throw reason
    if (held.size === 0) observer.reserveUsed(messageOf(reason))
    isOurs = true
    for (const count of counts) held.set(nameOf(count.keyId, count.day), count)
  }
  const takeOver = (): void => {
    if (path === ':memory:') return
    try {
      reserve = openReserve(path)
    } catch (error) {
      observer.reserveMissing(messageOf(error))
      return
    }
    const { counts, damaged } = reserve.read()
    if (damaged > 0)
      observer.recordRefused({
        record: 'usage',
        name: shown(path),
        fault: `${damaged} counts of its reserve could not be read`,
      })
    for (const count of missing(counts)) held.set(nameOf(count.keyId, count.day), count)
    merge()
  }
  takeOver()

  return {
    usedOn: (keyId, day) => (held.size === 0 ? undefined : held.get(nameOf(keyId, day))?.used),
    count: (inFile, count) => {
      let reason: unknown = new Error('the store could not be written a moment ago')
      if (merge())
        try {
          return inFile()
        } catch (error) {
          if (!isUnwritten(error)) throw error
          reason = error
          wait()
        }
      const changed: ReservedCount[] = []
      const value = count(each => changed.push(each))
      keep(changed, reason)
      return value
    },
    close: () => {
      clearTimeout(timer)
      isWaiting = false
      try {
        merge()
      } finally {
        reserve?.close()
      }
    },
  }
}
