// Keeps counts in the reserve and in memory while the embedded store's file can't be written, and writes them back once it
// can. A count is the whole sum of its day, so writing it back twice does no harm. embedded-reserve.ts is the file format.

import { messageOf } from '../errors.ts'
import { isUnwritten } from './embedded-attempt.ts'
import { openReserve, type Reserve, type ReservedCount } from './embedded-reserve.ts'
import { type RecordObserver, shown } from './records.ts'

export type ReservedCounts = {
  /** Undefined for a count that the store's file has. */
  usedOn(keyId: string, day: string): number | undefined
  /**
   * Counts in the file, or in the reserve while the file can't be written.
   * @param inFile counts in one transaction
   * @param count does the same and passes each changed count to `put`
   */
  count<Value>(inFile: () => Value, count: (put: (count: ReservedCount) => void) => Value): Value
  /** Writes the reserve back if the file can be written, and closes it. */
  close(): void
}

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
    if (isOurs) reserve?.clear()
    isOurs = false
    return true
  }
  /** @throws `reason` when the counts do not fit */
  const keep = (counts: readonly ReservedCount[], reason: unknown): void => {
    if (!reserve) throw reason
    // Counts of a former process, which are in the file by now.
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
    writeBack()
  }
  takeOver()

  return {
    usedOn: (keyId, day) => (held.size === 0 ? undefined : held.get(nameOf(keyId, day))?.used),
    count: (inFile, count) => {
      let reason: unknown = new Error('the store could not be written a moment ago')
      if (writeBack())
        try {
          return inFile()
        } catch (error) {
          if (!isUnwritten(error)) throw error
          reason = error
          pauseRetries()
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
        writeBack()
      } finally {
        reserve?.close()
      }
    },
  }
}
