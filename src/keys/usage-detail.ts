// Counts answers per key, endpoint and status class in this process, and flushes them to the store every second. The counts
// are for reports: a crash may lose the last second, and a failed write may count twice. The meter counts quotas exactly.

import { setImmediate } from 'node:timers/promises'
import { type Calendar, utcDayMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { ResponseName } from '../common/endpoints.ts'
import type { UsageDetailStore, UsageStore } from '../stores/store.ts'
import { numberOf } from './key-index.ts'

export type UsageDetail = ReturnType<typeof createUsageDetail>

type Answer = {
  keyId: string | undefined
  /** `numberOf` the id, where it is known. */
  keyNumber?: number | undefined
  endpoint: ResponseName
  status: number
  /** Ms since the epoch; it decides the local day. */
  arrivedAt: number
}
type Entry = Parameters<UsageDetailStore['addDetail']>[0][number]
type CountedName = ResponseName | typeof cellsLoaded
type Counter = Omit<Entry, 'count' | 'endpoint'> & { endpoint: CountedName; count: number }

const flushEveryMs = 1_000
// A flush of so many counters takes the embedded store, or Redis, some 1.5 ms.
const entriesPerWrite = 200
// The most counters between two flushes. Beyond it, while the store is away, new keys and endpoints are not counted.
const maxEntries = 10_000
const keepForMs = 2 * utcDayMs

/** @param onWritten is called with the requests of keys that the store has taken */
export const createUsageDetail = (
  store: Pick<UsageDetailStore, 'addDetail'> & Pick<UsageStore, 'partitionOf'>,
  calendar: Calendar,
  clock: Clock,
  onWritten: (requests: readonly Pick<Entry, 'keyId' | 'count'>[]) => void = () => {},
) => {
  // By the number of the key: a look-up builds no compound text, and a key has few.
  let counters = new Map<number, Counter[]>()
  let kept = 0
  let flushing: Promise<void> | undefined

  const find = (
    number: number,
    keyId: string,
    day: string,
    endpoint: CountedName,
    statusClass: string,
  ): Counter | undefined => {
    for (const each of counters.get(number) ?? none) {
      const isOfKey = each.keyId === keyId && each.day === day
      if (isOfKey && each.endpoint === endpoint && each.statusClass === statusClass) return each
    }
    return undefined
  }
  const keep = (number: number, counter: Counter): void => {
    if (kept >= maxEntries) return
    kept += 1
    const ofNumber = counters.get(number)
    if (ofNumber) ofNumber.push(counter)
    else counters.set(number, [counter])
  }
  /** Returns false where some are kept for later. */
  const writeAll = async (): Promise<boolean> => {
    const taken = [...counters.values()].flat()
    counters = new Map()
    kept = 0
    let areWritten = true
    // Partitions may be on servers of their own: what one has taken is not written again because another one failed.
    for (const [, part] of Map.groupBy(taken, ({ keyId }) => store.partitionOf(keyId)))
      areWritten = (await write(part)) && areWritten
    return areWritten
  }
  const write = async (taken: readonly Counter[]): Promise<boolean> => {
    for (let i = 0; i < taken.length; i += entriesPerWrite) {
      // The embedded store writes synchronously, and no request is answered meanwhile.
      if (i > 0) await setImmediate()
      try {
        const part = taken.slice(i, i + entriesPerWrite)
        await store.addDetail(part)
        onWritten(part.filter(({ endpoint }) => endpoint !== cellsLoaded))
      } catch {
        // The store's observer logs the failure.
        for (const counter of taken.slice(i)) {
          const { keyId, day, endpoint, statusClass } = counter
          const number = numberOf(keyId)
          const before = find(number, keyId, day, endpoint, statusClass)
          if (before) before.count += counter.count
          else keep(number, counter)
        }
        return false
      }
    }
    return true
  }
  /** Writes the counts to the store; never rejects. */
  const flush = (): Promise<void> => {
    flushing ??= writeAll()
      .finally(() => {
        flushing = undefined
      })
      .then(areWritten => {
        // As many came meanwhile.
        if (areWritten && kept >= maxEntries) void flush()
      })
    return flushing
  }
  const timer = setInterval(() => void flush(), flushEveryMs).unref()

  const countOne = (
    number: number,
    keyId: string,
    endpoint: CountedName,
    statusClass: string,
    at: number,
  ): void => {
    const day = calendar.dayOf(at)
    const before = find(number, keyId, day, endpoint, statusClass)
    if (before) {
      before.count += 1
      return
    }
    // Only the counter that reaches the bound flushes: with the store away, every later one would write all of them again.
    if (kept >= maxEntries) return
    const keepUntil = calendar.nextMidnight(at) + keepForMs
    keep(number, { keyId, day, endpoint, statusClass, count: 1, keepUntil })
    if (kept >= maxEntries) void flush()
  }

  return {
    /** Counts a response for its key; a response without a key is not counted. */
    count: ({ keyId, keyNumber, endpoint, status, arrivedAt }: Answer): void => {
      if (keyId === undefined) return
      const statusClass = classes[Math.floor(status / 100)] ?? otherClass
      countOne(keyNumber ?? numberOf(keyId), keyId, endpoint, statusClass, arrivedAt)
    },
    /** Counts a cell that was loaded from the provider for a key. */
    countLoad: (keyId: string): void =>
      countOne(numberOf(keyId), keyId, cellsLoaded, otherClass, clock.now()),
    flush,
    /** Stops the timer and flushes the rest. */
    close: async (): Promise<void> => {
      clearInterval(timer)
      await flushing
      await flush()
    },
  }
}

const none: readonly Counter[] = []
const otherClass = 'other'
/** Used as an endpoint for the cells that were loaded from the provider for a key. */
export const cellsLoaded = 'cells loaded'

const classes: readonly (string | undefined)[] = [undefined, '1xx', '2xx', '3xx', '4xx', '5xx']
