// Meters the quotas of all keys: takes one unit per request of the window in which it arrived (window.ts). Finds the count and
// the partition of a key, passes on messages of other instances, and drops past windows. An exhausted quota is a decision
// (`allowed: false`), not an error. partition.ts has batches and local allowances.

import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { hourMs } from '../common/calendar.ts'
import type { UsageGrant, UsageStore } from '../stores/store.ts'
import type { Client } from './authentication.ts'
import { createKeyTable, type KeyTable } from './key-table.ts'
import {
  type Count,
  createPartition,
  type MeterState,
  type Partition,
  type PartitionParts,
  type QuotaDecision,
} from './partition.ts'
import type { Window, Windows } from './window.ts'

/** Units that were admitted but not counted by the store; the name of their window is a day. */
export type LostUnits = { readonly keyId: string; readonly day: string; readonly units: number }

export type MeterObserver = {
  storeAway(reason: string): void
  /** @param reconciled units that were admitted locally and are in the store now */
  storeBack(reconciled: number): void
  /** The meter is closed, and the store did not take the report. */
  unitsLost(lost: readonly LostUnits[]): void
  /** A count reached 80 or 100 per cent of its limit. Called on the one instance whose batch reached it. */
  nearLimit(event: { keyId: string; day: string; used: number; limit: number; percent: 80 | 100 }): void
}

export type MeterParts = Omit<PartitionParts, 'instance' | 'store' | 'latestStart' | 'observer'> & {
  readonly store: PartitionParts['store'] & Pick<UsageStore, 'partitionOf' | 'onUsage' | 'dropDays'>
  readonly windows: Windows
  /** How long the store keeps the sum of a window after its end. */
  readonly keepUsageForMs: number
  readonly observer: MeterObserver
}

/** The quota of clients, as a request meets it. */
export type Quota = {
  /** The instant that decides which window a request belongs to, by the store's clock. */
  now(): number
  /** The end of the window that an instant belongs to. */
  resetAfter(instant: number): number
  /** Takes one unit. @throws StoreError when the store is away and the local allowance is spent */
  consume(client: Pick<Client, 'keyId' | 'limit'>, arrivedAt: number): Promise<QuotaDecision>
}

export type Meter = Pick<Quota, 'consume'> & {
  /** Probes a store that is away, and drops old counts, here and in the store. Call it at short intervals. */
  probe(): Promise<void>
  /** The worst state of all partitions. */
  state(): MeterState
  /**
   * The counts of a window that this instance knows, over the fleet as far as it knows: some at a time, with a turn of the event
   * loop in between. @param instant in that window
   */
  usageAt(instant: number): AsyncGenerator<readonly KnownUsage[]>
  /** Whether the store has all units that were admitted here. */
  isReported(): Promise<boolean>
  /** Reports unconfirmed units to the store; retries for some seconds while it is away. */
  close(): Promise<void>
}

export type KnownUsage = { readonly keyId: string; readonly used: number; readonly limit: number }

type Entry = Count & { readonly partition: Partition }

const keepCountForMs = 3_600_000
// There may be a million counts; a step of so many takes a few ms.
const maxPerTurn = 2_000
// On close. Together with the drain it is shorter than the usual grace period of a process.
const reportEveryMs = 250
const reportForMs = 3_000

/** An id that no instance has had. */
const newInstance = (): string => randomBytes(5).toString('hex')

export const createMeter = ({ observer, windows, keepUsageForMs, ...parts }: MeterParts): Meter => {
  const { store, clock } = parts
  let instance = newInstance()
  // By window, then key: a look-up builds no compound key.
  const tables = new Map<string, { readonly window: Window; readonly entries: KeyTable<Entry> }>()
  // On a cluster one partition may be away and another not. Those of a former instance id stay until their counts are forgotten.
  let current = new Map<number, Partition>()
  const partitions = new Set<Partition>()
  let latestStart = Number.NEGATIVE_INFINITY
  let latestForgotten = Number.NEGATIVE_INFINITY
  let droppedBefore = ''
  let away = 0
  let reconciled = 0

  const checkNearLimit = ({ keyId, window, limit }: Count, { before, used }: UsageGrant): void => {
    for (const percent of [80, 100] as const) {
      const mark = Math.ceil((limit * percent) / 100)
      if (before < mark && mark <= used) observer.nearLimit({ keyId, day: window.name, used, limit, percent })
    }
  }

  const partitionFor = (keyId: string): Partition => {
    const number = store.partitionOf(keyId)
    const known = current.get(number)
    if (known) return known
    const partition = createPartition({
      ...parts,
      instance,
      latestStart: () => Math.max(latestStart, windows.at(clock.now()).startsAt),
      observer: {
        stopped: reason => {
          away += 1
          if (away === 1) observer.storeAway(reason)
        },
        resumed: units => {
          away -= 1
          reconciled += units
          if (away > 0) return
          observer.storeBack(reconciled)
          reconciled = 0
        },
        counted: checkNearLimit,
      },
    })
    current.set(number, partition)
    partitions.add(partition)
    return partition
  }

  // The store keeps, per instance id, the admitted units of counts that were forgotten here. When the clock goes back to
  // one of those windows, this instance takes a new id: a report of 0 admitted units would lower the count.
  const renewInstanceFor = ({ startsAt }: Window): void => {
    if (startsAt > latestForgotten) return
    instance = newInstance()
    current = new Map()
    latestForgotten = Number.NEGATIVE_INFINITY
  }

  const entryFor = (keyId: string, window: Window): Entry => {
    let table = tables.get(window.name)
    if (!table) {
      table = { window, entries: createKeyTable<Entry>() }
      tables.set(window.name, table)
    }
    const known = table.entries.find(keyId)
    if (known) return known
    renewInstanceFor(window)
    const partition = partitionFor(keyId)
    const entry = { keyId, window, limit: 0, admitted: 0, confirmed: 0, lastKnown: undefined, partition }
    table.entries.add(entry)
    partition.counts.of(keyId).add(entry)
    latestStart = Math.max(latestStart, window.startsAt)
    return entry
  }

  // Where the next probe continues, by window: a count that can't be forgotten yet delays no other.
  const forgetting = new Map<string, Iterator<Entry>>()
  const forgetPast = (): void => {
    const now = clock.now()
    let visited = 0
    for (const [name, { window, entries }] of tables) {
      if (now - window.endsAt < keepCountForMs) continue
      const rest = forgetting.get(name) ?? entries.values()
      forgetting.set(name, rest)
      for (; visited < maxPerTurn; visited++) {
        const { value, done } = rest.next()
        if (done) {
          forgetting.delete(name)
          break
        }
        // Loses nothing, even when the clock jumped ahead: the store has all of it.
        if (!value.partition.forget(value)) continue
        entries.delete(value)
        latestForgotten = Math.max(latestForgotten, window.startsAt)
      }
      if (entries.size() > 0) continue
      tables.delete(name)
      forgetting.delete(name)
    }
    const inUse = new Set(current.values())
    for (const partition of partitions)
      if (partition.counts.size() === 0 && partition.state() === 'counting' && !inUse.has(partition))
        partitions.delete(partition)
  }

  // Every gateway does it: windows that another one has dropped cost nothing.
  const dropPast = async (): Promise<void> => {
    const now = clock.now()
    const countsBefore = windows.at(now - keepCountForMs).name
    if (countsBefore === droppedBefore || away > 0) return
    const former = droppedBefore
    droppedBefore = countsBefore
    const sumsBefore = windows.at(now - Math.max(hourMs, keepUsageForMs)).name
    await store.dropDays({ countsBefore, sumsBefore }).catch(() => {
      // The next probe tries again.
      droppedBefore = former
    })
  }

  const unsubscribe = store.onUsage(message => {
    if (message === 'lost') {
      for (const partition of partitions) partition.onMessagesLost()
      return
    }
    const entry = tables.get(message.day)?.entries.find(message.keyId)
    entry?.partition.onMessage(entry, message.used)
  })

  const unconfirmed = async (most = Number.POSITIVE_INFINITY): Promise<LostUnits[]> => {
    const found: LostUnits[] = []
    let visited = 0
    for (const partition of partitions)
      for (const { keyId, window, admitted, confirmed } of partition.counts.values()) {
        if (admitted > confirmed) found.push({ keyId, day: window.name, units: admitted - confirmed })
        if (found.length >= most) return found
        visited += 1
        if (visited % maxPerTurn === 0) await nextTurn()
      }
    return found
  }
  const isAnyUnconfirmed = async (): Promise<boolean> => (await unconfirmed(1)).length > 0
  const reportAll = async (): Promise<void> => {
    let isOver = false
    const end = setTimeout(() => {
      isOver = true
    }, reportForMs)
    while (!isOver && (await isAnyUnconfirmed())) {
      await Promise.all([...partitions].map(partition => partition.report()))
      if (await isAnyUnconfirmed()) await pause(reportEveryMs)
    }
    clearTimeout(end)
    const lost = await unconfirmed()
    if (lost.length > 0) observer.unitsLost(lost)
  }

  const probe = async (): Promise<void> => {
    forgetPast()
    await Promise.all([...[...partitions].map(partition => partition.probe()), dropPast()])
  }

  return {
    consume: ({ keyId, limit }, arrivedAt) => {
      const entry = entryFor(keyId, windows.at(arrivedAt))
      return entry.partition.admit(entry, limit)
    },
    probe,
    state: () => {
      const states = [...partitions].map(partition => partition.state())
      return (['away', 'reconciling'] as const).find(state => states.includes(state)) ?? 'counting'
    },
    usageAt: async function* (instant) {
      let part: KnownUsage[] = []
      for (const count of tables.get(windows.at(instant).name)?.entries.values() ?? []) {
        const { keyId, limit, admitted, lastKnown } = count
        const used = lastKnown ? lastKnown.used + admitted - lastKnown.admitted : admitted
        part.push({ keyId, used, limit })
        if (part.length < maxPerTurn) continue
        yield part
        part = []
        await nextTurn()
      }
      yield part
    },
    isReported: async () => !(await isAnyUnconfirmed()),
    close: async () => {
      unsubscribe()
      await reportAll()
    },
  }
}
