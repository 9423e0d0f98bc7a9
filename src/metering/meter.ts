// Units of daily counts for all keys: in which partition a key is counted, what the store's news say of which count, and
// when counts may be forgotten. Knows days as it is told them, and nothing of clients; how units are taken is the
// partitions'.

import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
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

/** Units that requests were given and no store knows of. */
export type LostUnits = { readonly keyId: string; readonly day: LocalDay; readonly units: number }

export type MeterObserver = {
  /** Counting together ended, for a reason, or began again. */
  storeAway(reason: string): void
  storeBack(merged: number): void
  /** It is closed, and the store could not be told. */
  unitsLost(lost: readonly LostUnits[]): void
  /** A count passed 80 or 100 per cent of its limit: told by the one instance whose trip did it. */
  nearLimit(news: { keyId: string; day: LocalDay; used: number; limit: number; percent: 80 | 100 }): void
}

export type MeterParts = Omit<PartitionParts, 'instance' | 'store' | 'newestDay' | 'observer'> & {
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
  /** Tells the store what it does not know yet; waits some seconds for one that can't be reached. */
  close(): Promise<void>
}

type Entry = { readonly count: Count; readonly partition: Partition }

const keepCountForMs = 3_600_000
// At the end. With the wait before it, less than what a process is commonly given to stop.
const tellEveryMs = 250
const tellForMs = 3_000

/** A name that no instance has had. */
const newName = (): string => randomBytes(5).toString('hex')

export const createMeter = ({ observer, ...parts }: MeterParts): Meter => {
  const { store, clock } = parts
  let instance = newName()
  // By day and key: nothing needs to be put together to find the count of a request.
  const days = new Map<LocalDay, Map<string, Entry>>()
  // On a cluster one part may be away and another not. Those of a former name remain until their counts are forgotten.
  let named = new Map<number, Partition>()
  const partitions = new Set<Partition>()
  let newest: LocalDay = ''
  let newestForgotten: LocalDay = ''
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
    const known = named.get(number)
    if (known) return known
    const partition = createPartition({
      ...parts,
      instance,
      newestDay: () => newest,
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
    named.set(number, partition)
    partitions.add(partition)
    return partition
  }

  // The store still knows what was dealt under this name of the counts that were forgotten here. Should the clock go back
  // to one of their days, it is counted under a new name, because whoever says that it has dealt nothing is believed.
  const renameFor = (day: LocalDay): void => {
    if (day > newestForgotten) return
    instance = newName()
    named = new Map()
    newestForgotten = ''
  }

  const entryFor = (keyId: string, metered: MeteredDay): Entry => {
    const entries = days.get(metered.day) ?? new Map<string, Entry>()
    if (entries.size === 0) days.set(metered.day, entries)
    const known = entries.get(keyId)
    if (known) return known
    renameFor(metered.day)
    const count = { keyId, metered, limit: 0, dealt: 0, confirmed: 0, view: undefined }
    const entry = { count, partition: partitionFor(keyId) }
    entries.set(keyId, entry)
    entry.partition.counts.add(count)
    if (metered.day > newest) newest = metered.day
    return entry
  }

  const forgetOldDays = (): void => {
    const now = clock.now()
    for (const [day, entries] of days) {
      for (const [keyId, { count, partition }] of entries) {
        // The counts of a day end together.
        if (now - count.metered.endsAt < keepCountForMs) break
        // A clock that jumped ahead loses nothing: all of it is in the store.
        if (!partition.forget(count)) continue
        entries.delete(keyId)
        if (day > newestForgotten) newestForgotten = day
      }
      if (entries.size === 0) days.delete(day)
    }
    const inUse = new Set(named.values())
    for (const partition of partitions)
      if (partition.counts.size === 0 && partition.state() === 'counting' && !inUse.has(partition))
        partitions.delete(partition)
  }

  const stopHearing = store.onUsed(news => {
    if (news === 'lost') {
      for (const partition of partitions) partition.lost()
      return
    }
    const entry = days.get(news.day)?.get(news.keyId)
    entry?.partition.heard(entry.count, news.used)
  })

  const untold = (): LostUnits[] =>
    [...partitions].flatMap(({ counts }) =>
      [...counts].flatMap(({ keyId, metered: { day }, dealt, confirmed }) =>
        dealt > confirmed ? [{ keyId, day, units: dealt - confirmed }] : [],
      ),
    )
  const tellAll = async (): Promise<void> => {
    let isOver = false
    const end = setTimeout(() => {
      isOver = true
    }, tellForMs)
    while (untold().length > 0 && !isOver) {
      await Promise.all([...partitions].map(partition => partition.tell()))
      if (untold().length > 0) await pause(tellEveryMs)
    }
    clearTimeout(end)
    const lost = untold()
    if (lost.length > 0) observer.unitsLost(lost)
  }

  const look = async (): Promise<void> => {
    forgetOldDays()
    await Promise.all([...partitions].map(partition => partition.look()))
  }

  return {
    take: (keyId, limit, metered) => {
      const { count, partition } = entryFor(keyId, metered)
      return partition.ask(count, limit)
    },
    look,
    state: () => {
      const states = [...partitions].map(partition => partition.state())
      return (['away', 'settling'] as const).find(state => states.includes(state)) ?? 'counting'
    },
    close: async () => {
      stopHearing()
      await tellAll()
    },
  }
}
