// Follows a change log of the store: what is new since the last read, and whether something may be missing. A log always has a record,
// so that a store which lost everything differs from one without changes.

import { utcDayMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { ChangeRecord, ChangeTopic, FleetStore } from './store.ts'

// Longer than anything lives that a record is about: while the last one is kept, a store that has lost it is noticed.
const keepForMs = 400 * utcDayMs

type ReadableLog = Pick<FleetStore, 'changeRecordsAfter'>
type WritableLog = Pick<FleetStore, 'appendChangeRecord'>

export type LogRead = {
  readonly records: readonly ChangeRecord[]
  /** False where records before these may be unknown. */
  readonly isWhole: boolean
}

/** @returns the number of the record. @throws StoreError */
export const appendToLog = (
  store: WritableLog,
  topic: ChangeTopic,
  text: string,
  now: number,
  above?: number,
): Promise<number> => store.appendChangeRecord(topic, text, now + keepForMs, above)

/**
 * What came after a record; all that there is after 0. Undefined where there is no log: it never began, or was lost.
 * @throws StoreError
 */
export const readLog = async (
  store: ReadableLog,
  topic: ChangeTopic,
  after: number,
): Promise<LogRead | undefined> => {
  const { records, complete } = await store.changeRecordsAfter(topic, after)
  const isWhole = after > 0 && complete
  return records.length > 0 || isWhole ? { records, isWhole } : undefined
}

export type LogFollower = {
  /** The first record of a log that never began, or was lost. */
  readonly begin: string
  /** Called with each read, also of nothing. The next read waits for it. @param isFirst whether nothing was read before */
  apply(read: LogRead, isFirst: boolean): void | Promise<void>
  /** A log that was lost begins again: the next number may be any. */
  onLost?(): void
  /** The store is away. Its own observer reports that. */
  onFailure?(): void
}

/**
 * Returns the function that reads now. It never rejects. A call during a read waits for the next one, so that it finds what the caller
 * appended; the calls meanwhile share that one.
 */
export const followLog = (
  store: ReadableLog & WritableLog,
  topic: ChangeTopic,
  { begin, apply, onLost, onFailure }: LogFollower,
  clock: Clock,
): (() => Promise<void>) => {
  let last = 0
  let hasRead = false
  const readOnce = async (): Promise<void> => {
    let read = await readLog(store, topic, last)
    if (!read) {
      await appendToLog(store, topic, begin, clock.now(), last)
      last = 0
      onLost?.()
      // Others may have begun it at the same time, and appended since.
      read = await readLog(store, topic, 0)
    }
    if (!read) return
    last = read.records.at(-1)?.number ?? last
    const isFirst = !hasRead
    hasRead = true
    await apply(read, isFirst)
  }
  let reading: Promise<void> | undefined
  let next: Promise<void> | undefined
  const start = (): Promise<void> => {
    next = undefined
    reading = readOnce()
      .catch(() => onFailure?.())
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  return () => {
    if (!reading) return start()
    next ??= reading.then(start)
    return next
  }
}
