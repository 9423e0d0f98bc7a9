// Keeps counts in the reserve while the embedded store's file can't be written, and writes them back once it can. A count is
// the whole sum of its day, so writing it back twice does no harm. The reserve belongs to all processes on the file: it is
// read again and changed only under the file's write lock, so that none counts from what another one has outdated.
// embedded/reserve.ts is the file format.

import { messageOf } from '../../common/errors.ts'
import { type RecordObserver, shown } from '../records.ts'
import { isLocked, isUnwritten } from './attempt.ts'
import { openReserve, type Reserve, type ReservedCount } from './reserve.ts'

export type ReservedCounts = {
  /** Undefined for a count that the store's file has. */
  usedOn(keyId: string, day: string): number | undefined
  /**
   * Writes the reserve back and counts in the file; while that can't be written, counts in the reserve.
   * @throws the error of the file when the reserve can't take the counts either
   */
  count<Value>(count: Counting<Value>): Value
  /** Writes the reserve back if the file can be written, and closes it. */
  close(): void
}

/**
 * Counts, and passes each changed count to `put`. May be called again where the first time had no effect.
 * @param isInFile the file has all counts, so that none needs to be looked up in the reserve
 */
type Counting<Value> = (put: (count: ReservedCount) => void, isInFile: boolean) => Value

type Parts = {
  /** Path of the store's file. */
  readonly path: string
  /** Runs a step as one write transaction on the file. */
  readonly inFile: <Value>(step: () => Value) => Value
  /** Runs a step that writes nothing to the file, while nobody else may. */
  readonly locked: <Value>(step: () => Value) => Value
  /** The counts that the file lacks, or has lower. */
  readonly missing: (counts: readonly ReservedCount[]) => ReservedCount[]
  /** Raises a count in the file. */
  readonly raise: (count: ReservedCount) => void
  readonly put: (count: ReservedCount) => void
  readonly observer: RecordObserver
}

// How often to retry the file while counts are in the reserve.
const retryEveryMs = 1_000

export const createReservedCounts = (parts: Parts): ReservedCounts => {
  const { path, inFile, locked, missing, raise, put, observer } = parts
  let reserve: Reserve | undefined
  /** This process has counted in the reserve, and not in the file since. */
  let isInUse = false
  let isWaiting = false
  let timer: NodeJS.Timeout | undefined

  const pauseRetries = (): void => {
    isWaiting = true
    clearTimeout(timer)
    timer = setTimeout(() => {
      isWaiting = false
    }, retryEveryMs).unref()
  }
  // Only what is in the file for good is cleared. What can't be is found there again, and then lacks nothing.
  const clearWritten = (from: Reserve): void => {
    try {
      locked(() => {
        if (missing(from.read().counts).length === 0) from.clear()
      })
    } catch {
      // The counts that were just written stay: their callers must not count them again.
    }
  }
  /** Raises the file to the reserve, and runs a step in the same transaction. */
  const afterWritingBack = <Value>(from: Reserve | undefined, step: () => Value): Value => {
    const { value, counts } = inFile(() => {
      const found = from === undefined || from.isEmpty() ? undefined : from.read().counts
      for (const count of missing(found ?? [])) raise(count)
      return { value: step(), counts: found?.length }
    })
    if (from && counts !== undefined) clearWritten(from)
    if (isInUse || counts) observer.reserveWrittenBack(counts ?? 0)
    isInUse = false
    return value
  }
  /** @throws `reason` when the counts do not fit */
  const countInReserve = <Value>(count: Counting<Value>, reason: unknown): Value => {
    const changed: ReservedCount[] = []
    const value = count(each => changed.push(each), false)
    if (!reserve?.put(changed)) throw reason
    if (!isInUse) observer.reserveUsed(messageOf(reason))
    isInUse = true
    return value
  }
  const takeOver = (): void => {
    if (path === ':memory:') return
    try {
      reserve = openReserve(path)
    } catch (error) {
      observer.reserveMissing(messageOf(error))
      return
    }
    if (reserve.isEmpty()) return
    const { damaged } = reserve.read()
    if (damaged > 0)
      observer.recordRefused({
        record: 'usage',
        name: shown(path),
        fault: `${damaged} counts of its reserve could not be read`,
      })
    writeBackIfPossible(reserve)
  }
  const writeBackIfPossible = (from: Reserve): void => {
    try {
      afterWritingBack(from, () => {})
    } catch (error) {
      // The next count writes it back, or the next start.
      if (!isUnwritten(error) && !isLocked(error)) throw error
      pauseRetries()
    }
  }
  takeOver()

  return {
    usedOn: (keyId, day) => reserve?.find(keyId, day)?.used,
    count: count => {
      let reason: unknown
      // Another process may have written the reserve back.
      if (!isWaiting || reserve?.isEmpty() !== false)
        try {
          return afterWritingBack(reserve, () => count(put, true))
        } catch (error) {
          if (!isUnwritten(error) || !reserve) throw error
          reason = error
          pauseRetries()
        }
      // Not before it is needed: an error notes the stack, which takes longer than a count.
      reason ??= new Error('the store could not be written a moment ago')
      return locked(() => countInReserve(count, reason))
    },
    close: () => {
      clearTimeout(timer)
      try {
        if (reserve && !reserve.isEmpty()) writeBackIfPossible(reserve)
      } finally {
        clearTimeout(timer)
        reserve?.close()
      }
    },
  }
}
