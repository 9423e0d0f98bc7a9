// How each key was answered today, by endpoint and class of status: counted in this process and handed to the store at
// short intervals. For people to look at, so a crash may lose the last second and a failed write count twice; the quota
// is counted elsewhere and exactly.

import { type Calendar, utcDayMs } from '../calendar.ts'
import type { UsageDetailStore } from '../stores/store.ts'

export type UsageDetail = {
  /** @param arrivedAt instant of the request, ms since the epoch, which decides its local day */
  count(answer: { keyId: string; endpoint: string; status: number; arrivedAt: number }): void
  /** Hands over what was counted; never rejects. */
  flush(): Promise<void>
  /** Counts no further, and hands over the rest. */
  close(): Promise<void>
}

type Entry = Parameters<UsageDetailStore['addDetail']>[0][number]
type Tally = Omit<Entry, 'count'> & { count: number }

const flushEveryMs = 1_000
// Different keys, endpoints and classes between two flushes; beyond it, while the store is away, new ones are not counted.
const mostEntries = 10_000
const keepForMs = 2 * utcDayMs

export const createUsageDetail = (
  store: Pick<UsageDetailStore, 'addDetail'>,
  calendar: Calendar,
): UsageDetail => {
  let counts = new Map<string, Tally>()
  let flushing: Promise<void> | undefined

  const nameOf = ({ keyId, day, endpoint, statusClass }: Omit<Entry, 'count' | 'keepUntil'>): string =>
    `${keyId} ${day} ${statusClass} ${endpoint}`
  const add = (entry: Tally): void => {
    const before = counts.get(nameOf(entry))
    if (before) before.count += entry.count
    else if (counts.size < mostEntries) counts.set(nameOf(entry), entry)
  }
  const handOver = async (): Promise<void> => {
    const entries = [...counts.values()]
    if (entries.length === 0) return
    counts = new Map()
    await store.addDetail(entries).catch(() => {
      // A store that is away is told of by its own observer. The older counts go before those that came meanwhile.
      const later = counts
      counts = new Map()
      for (const entry of [...entries, ...later.values()]) add(entry)
    })
  }
  const flush = (): Promise<void> => {
    flushing ??= handOver().finally(() => {
      flushing = undefined
    })
    return flushing
  }
  const timer = setInterval(() => void flush(), flushEveryMs).unref()

  return {
    count: ({ keyId, endpoint, status, arrivedAt }) => {
      const answer = {
        keyId,
        day: calendar.dayOf(arrivedAt),
        endpoint,
        statusClass: `${Math.floor(status / 100)}xx`,
      }
      const before = counts.get(nameOf(answer))
      if (before) {
        before.count += 1
        return
      }
      add({ ...answer, count: 1, keepUntil: calendar.nextMidnight(arrivedAt) + keepForMs })
      if (counts.size >= mostEntries) void flush()
    },
    flush,
    close: async () => {
      clearInterval(timer)
      await flushing
      await flush()
    },
  }
}
