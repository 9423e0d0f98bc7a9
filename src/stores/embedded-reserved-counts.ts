// Keeps counts in the reserve and in memory while the embedded store's file can't be written, and writes them back once it
// can. A count is the whole sum of its day, so writing it back twice does no harm. embedded-reserve.ts is the file format.

import { messageOf } from '../errors.ts'
import { isUnwritten } from './embedded-attempt.ts'
import { openReserve, type Reserve, type ReservedCount } from './embedded-reserve.ts'
import { type RecordObserver, shown } from './records.ts'

export type ReservedCounts = {
  /** The store's file has all counts. */
  readonly isEmpty: boolean
  /** Undefined for a count that the store's file has. */
  usedOn(keyId: string, day: string): number | undefined
  /** Writes the reserve back and counts in the file; while that can't be written, counts in the reserve. */
  count<Value>(inFile: () => Value, count: Counting<Value>): Value
  /** Counts in the reserve, because the file could not be written. @throws any other `error` as it is */
  countInstead<Value>(error: unknown, count: Counting<Value>): Value
  /** Writes the reserve back if the file can be written, and closes it. */
  close(): void
}

/** Counts, and passes each changed count to `put`. */
type Counting<Value> = (put: (count: ReservedCount) => void) => Value

type Parts = {
  /** Path of the store's file. */
  readonly path: string
  /** The counts that the file lacks, or has lower. */
  readonly missing: (counts: readonly ReservedCount[]) => ReservedCount[]
  /** Raises counts in the file, all or none. */
  readonly raise: (counts: readonly ReservedCount[]) => void
  readonly observer: RecordObserver
}

// How often to retry the file while counts are in the reserve.
const retryEveryMs = 1_000

export const createReservedCounts = ({ path, missing, raise, observer }: Parts): ReservedCounts => {
  const held = new Map<string, ReservedCount>()
  const nameOf = (keyId: string, day: string) => `${day} ${keyId}`
  let reserve: Reserve | undefined
  // Only the process that wrote the reserve clears it: another one may still be writing.
  let isOurs = false
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  const pauseRetries = (): void => {
    isWaiting = true
    timer = setTimeout(() => {
      isWaiting = false
    }, retryEveryMs).unref()
  }
  /** True once all counts are in the file. @throws any error other than a failed write */
  const writeBack = (): boolean => {
    if (held.size === 0) return true
    if (isWaiting) return false
    try {
      raise([...held.values()])
    } catch (error) {
      if (!isUnwritten(error)) throw error
      pauseRetries()
      return false
    }
    observer.reserveWrittenBack(held.size)
    held.clear()
    counts.isEmpty = true
    if (isOurs) reserve?.clear()
    isOurs = false
    return true
  }
  /** @throws `reason` when the counts do not fit */
  const keep = (changed: readonly ReservedCount[], reason: unknown): void => {
    if (!reserve) throw reason
    // Counts of a former process, which are in the file by now.
    if (held.size === 0) reserve.clear()
    if (!reserve.put(changed)) throw reason
    if (held.size === 0) observer.reserveUsed(messageOf(reason))
    isOurs = true
    for (const count of changed) held.set(nameOf(count.keyId, count.day), count)
    counts.isEmpty = held.size === 0
  }
  const takeOver = (): void => {
    if (path === ':memory:') return
    try {
      reserve = openReserve(path)
    } catch (error) {
      observer.reserveMissing(messageOf(error))
      return
    }
    const { counts: found, damaged } = reserve.read()
    if (damaged > 0)
      observer.recordRefused({
        record: 'usage',
        name: shown(path),
        fault: `${damaged} counts of its reserve could not be read`,
      })
    for (const count of missing(found)) held.set(nameOf(count.keyId, count.day), count)
    counts.isEmpty = held.size === 0
    writeBack()
  }
  const countInReserve = <Value>(count: Counting<Value>, reason: unknown): Value => {
    const changed: ReservedCount[] = []
    const value = count(each => changed.push(each))
    keep(changed, reason)
    return value
  }
  const countInstead = <Value>(error: unknown, count: Counting<Value>): Value => {
    if (!isUnwritten(error)) throw error
    pauseRetries()
    return countInReserve(count, error)
  }

  const counts: ReservedCounts & { isEmpty: boolean } = {
    isEmpty: true,
    usedOn: (keyId, day) => held.get(nameOf(keyId, day))?.used,
    count: (inFile, count) =>
      writeBack()
        ? inFile()
        : countInReserve(count, new Error('the store could not be written a moment ago')),
    countInstead,
    close: () => {
      clearTimeout(timer)
      isWaiting = false
      try {
        writeBack()
      } finally {
        reserve?.close()
      }
    },
  }
  takeOver()
  return counts
}
