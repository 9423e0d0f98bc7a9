// Counts answers per key, endpoint and status class in this process, and flushes them to the store every second. The counts
// are for reports: a crash may lose the last second, and a failed write may count twice. The meter counts quotas exactly.

import { type Calendar, type LocalDay, utcDayMs } from '../calendar.ts'
import type { UsageDetailStore } from '../stores/store.ts'

export type UsageDetail = {
  /** @param arrivedAt instant of the request, ms since the epoch, which decides its local day */
  count(answer: { keyId: string; endpoint: string; status: number; arrivedAt: number }): void
  /** Writes the counts to the store; never rejects. */
  flush(): Promise<void>
  /** Stops the timer and flushes the rest. */
  close(): Promise<void>
}

type Entry = Parameters<UsageDetailStore['addDetail']>[0][number]
type Tally = Omit<Entry, 'count'> & { count: number }

const flushEveryMs = 1_000
// Tallies between two flushes. Beyond it, while the store is away, new keys and endpoints are not counted.
const mostEntries = 10_000
const keepForMs = 2 * utcDayMs

export const createUsageDetail = (
  store: Pick<UsageDetailStore, 'addDetail'>,
  calendar: Calendar,
): UsageDetail => {
  // One short list per key: a look-up builds no compound name.
  let tallies = new Map<string, Tally[]>()
  let size = 0
  let flushing: Promise<void> | undefined

  const find = (keyId: string, day: LocalDay, endpoint: string, statusClass: string): Tally | undefined => {
    for (const tally of tallies.get(keyId) ?? [])
      if (tally.statusClass === statusClass && tally.endpoint === endpoint && tally.day === day) return tally
    return undefined
  }
  const keep = (tally: Tally): void => {
    if (size >= mostEntries) return
    const ofKey = tallies.get(tally.keyId)
    if (ofKey) ofKey.push(tally)
    else tallies.set(tally.keyId, [tally])
    size += 1
  }
  const takeAll = (): Tally[] => {
    const all = [...tallies.values()].flat()
    tallies = new Map()
    size = 0
    return all
  }
  const writeAll = async (): Promise<void> => {
    const entries = takeAll()
    if (entries.length === 0) return
    await store.addDetail(entries).catch(() => {
      // The store's observer logs the failure. Older counts go before newer ones.
      for (const tally of [...entries, ...takeAll()]) {
        const before = find(tally.keyId, tally.day, tally.endpoint, tally.statusClass)
        if (before) before.count += tally.count
        else keep(tally)
      }
    })
  }
  const flush = (): Promise<void> => {
    flushing ??= writeAll().finally(() => {
      flushing = undefined
    })
    return flushing
  }
  const timer = setInterval(() => void flush(), flushEveryMs).unref()

  return {
    count: ({ keyId, endpoint, status, arrivedAt }) => {
      const day = calendar.dayOf(arrivedAt)
      const statusClass = classes[Math.floor(status / 100)] ?? 'other'
      const before = find(keyId, day, endpoint, statusClass)
      if (before) {
        before.count += 1
        return
      }
      const keepUntil = calendar.nextMidnight(arrivedAt) + keepForMs
      keep({ keyId, day, endpoint, statusClass, count: 1, keepUntil })
      if (size >= mostEntries) void flush()
    },
    flush,
    close: async () => {
      clearInterval(timer)
      await flushing
      await flush()
    },
  }
}

const classes: readonly (string | undefined)[] = [undefined, '1xx', '2xx', '3xx', '4xx', '5xx']
