// Units of daily counts for all keys: in which partition a key is counted, what the store's news say of which count, and
// when counts may be forgotten. Knows days as it is told them, and nothing of clients; how units are taken is the
// partitions'.

import { randomBytes } from 'node:crypto'
import type { LocalDay } from '../calendar.ts'
import type { Taken, UsageStore } from '../stores/store.ts'
import {
  type Count,
  createPartition,
  type Deal,
  type MeteredDay,
  type MeterState,
  type Partition,
  type PartitionParts,
} from './partition.ts'

export type MeterObserver = {
  /** Counting together ended, for a reason, or began again. */
  storeAway(reason: string): void
  storeBack(merged: number): void
  /** A count passed 80 or 100 per cent of its limit: told by the one instance whose trip did it. */
  nearLimit(news: { keyId: string; day: LocalDay; used: number; limit: number; percent: 80 | 100 }): void
}

export type MeterParts = Omit<PartitionParts, 'instance' | 'store' | 'observer'> & {
  readonly store: Pick<UsageStore, 'partitionOf' | 'take' | 'onUsed' | 'time'>
  readonly observer: MeterObserver
}

export type Meter = {
  /** One unit. @throws StoreError when the store is away and this instance has nothing left to deal */
  take(keyId: string, limit: number, day: MeteredDay): Promise<Deal>
  /** To be called at short intervals: looks for a store that is away, and says again what was dealt meanwhile. */
  look(): Promise<void>
  /** The worst of all partitions. */
  state(): MeterState
  /** Tells the store what it does not know yet, if it can be reached. */
  close(): Promise<void>
}

type Entry = { readonly count: Count; readonly partition: Partition }

const keepCountForMs = 3_600_000

export const createMeter = ({ observer, ...parts }: MeterParts): Meter => {
  const { store, clock } = parts
  const instance = randomBytes(5).toString('hex')
  // By day and key: nothing needs to be put together to find the count of a request.
  const days = new Map<LocalDay, Map<string, Entry>>()
  // On a cluster one part may be away and another not.
  const partitions = new Map<number, Partition>()
  let away = 0
  let merged = 0

  const tellNearLimit = ({ keyId, metered: { day }, limit }: Count, { before, used }: Taken): void => {
    for (const percent of [80, 100] as const) {
      const mark = Math.ceil((limit * percent) / 100)
      if (before < mark && mark <= used) observer.nearLimit({ keyId, day, used, limit, percent })
    }
  }

  const partitionFor = (keyId: string): Partition => {
    const number = store.partitionOf(keyId)
    const known = partitions.get(number)
    if (known) return known
    const partition = createPartition({
      ...parts,
      instance,
      observer: {
        stopped: reason => {
          away += 1
          if (away === 1) observer.storeAway(reason)
        },
        resumed: told => {
          away -= 1
          merged += told
          if (away > 0) return
          observer.storeBack(merged)
          merged = 0
        },
        counted: tellNearLimit,
      },
    })
    partitions.set(number, partition)
    return partition
  }

  const entryFor = (keyId: string, metered: MeteredDay): Entry => {
    const entries = days.get(metered.day) ?? new Map<string, Entry>()
    if (entries.size === 0) days.set(metered.day, entries)
    const known = entries.get(keyId)
    if (known) return known
    const count = { keyId, metered, limit: 0, dealt: 0, confirmed: 0, view: undefined }
    const entry = { count, partition: partitionFor(keyId) }
    entries.set(keyId, entry)
    entry.partition.counts.add(count)
    return entry
  }

  const forgetOldDays = (): void => {
    const now = clock.now()
    for (const [day, entries] of days) {
      for (const [keyId, { count, partition }] of entries) {
        const over = now - count.metered.endsAt
        // The counts of a day end together.
        if (over < keepCountForMs) break
        if (count.dealt !== count.confirmed && over < 24 * keepCountForMs) continue
        entries.delete(keyId)
        partition.counts.delete(count)
      }
      if (entries.size === 0) days.delete(day)
    }
  }

  const stopHearing = store.onUsed(news => {
    if (news === 'lost') {
      for (const partition of partitions.values()) partition.lost()
      return
    }
    const entry = days.get(news.day)?.get(news.keyId)
    entry?.partition.heard(entry.count, news.used)
  })

  const look = async (): Promise<void> => {
    forgetOldDays()
    await Promise.all([...partitions.values()].map(partition => partition.look()))
  }

  return {
    take: (keyId, limit, metered) => {
      const { count, partition } = entryFor(keyId, metered)
      return partition.ask(count, limit)
    },
    look,
    state: () => {
      const states = [...partitions.values()].map(partition => partition.state())
      return (['away', 'settling'] as const).find(state => states.includes(state)) ?? 'counting'
    },
    close: async () => {
      stopHearing()
      await look()
    },
  }
}
