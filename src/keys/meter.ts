// Meters the quotas of all keys: takes the units of each request of the window in which it arrived (window.ts). Finds the count
// of a key, and counts by group commit: while one batch of a store partition is in flight, new requests wait for the next one, and
// units are granted in order of arrival. An exhausted quota is a decision (`allowed: false`), not an error. outage.ts admits
// while the store is away. Longer than 300 lines, because counts are taken, sent in batches and forgotten in one place.

import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { hourMs } from '../common/calendar.ts'
import {
  OvertakenError,
  StoreError,
  type UsageEntry,
  type UsageGrant,
  type UsageRun,
  type UsageStore,
} from '../stores/store.ts'
import type { Client } from './authentication.ts'
import { createKeyTable, type KeyTable } from './key-table.ts'
import {
  type BatchEntry,
  type Count,
  createOutage,
  isUnconfirmed,
  type MeterState,
  type OutageParts,
  type PartitionStatus,
  type Pending,
  stepOf,
  type Waiter,
} from './outage.ts'
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

export type MeterParts = Pick<OutageParts, 'whenStoreIsDown' | 'isReadWhenAway' | 'instances' | 'clock'> & {
  readonly store: PartitionParts['store'] & Pick<UsageStore, 'partitionOf' | 'onUsage' | 'dropDays'>
  readonly windows: Windows
  /** How long the store keeps the sum of a window after its end. */
  readonly keepUsageForMs: number
  readonly observer: MeterObserver
}

/** A client whose requests are counted. */
type Metered = Pick<Client, 'keyId' | 'limit' | 'count'> & Partial<Pick<Client, 'isTest'>>

/** The quota of clients, as a request meets it. */
export type Quota = {
  /** The instant that decides which window a request belongs to, by the store's clock. */
  now(): number
  /** The end of the window that an instant belongs to. */
  resetAfter(instant: number): number
  /**
   * Takes so many units, all or none; 0 only reads what is left, and is always allowed. The waiter is called once, at once or in
   * a later turn; with a StoreError when the store is away and the local allowance does not suffice.
   */
  take(client: Metered, arrivedAt: number, units: number, waiter: Waiter): void
  /**
   * Gives back units that a request took, or a part of one, and returns how many whole ones went back: fractions of a key add up. A
   * crash may leave them taken.
   */
  giveBack(client: Metered, arrivedAt: number, units: number): number
  /** Whether what is left of a key is known over all instances, and is no local allowance. */
  isExact(keyId: string): boolean
}

export type Meter = Pick<Quota, 'take' | 'giveBack' | 'resetAfter'> & {
  /** Probes a store that is away, and drops old counts, here and in the store. Call it at short intervals. */
  probe(): Promise<void>
  /** That of the partition that counts a key. */
  stateOf(keyId: string): MeterState
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

/** `isKept`: false once it was forgotten. */
type Entry = Count & { readonly partition: Partition; next: Entry | undefined; isKept: boolean }
type Table = { readonly window: Window; readonly entries: KeyTable<Entry>; forgetting?: Iterator<Entry> }

const keepCountForMs = 3_600_000
// Ten tenths are one.
const smallestFraction = 1e-9
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
  const tables = new Map<string, Table>()
  // On a cluster one partition may be away and another not. Those of a former instance id stay for their counts.
  let current = new Map<number, Partition>()
  const partitions = new Set<Partition>()
  let latestStart = Number.NEGATIVE_INFINITY
  let latestForgotten = Number.NEGATIVE_INFINITY
  let droppedBefore = ''
  let away = 0
  let reconciled = 0

  // Nearly all requests are of the running window.
  let running: Window | undefined
  const windowAt = (instant: number): Window => {
    if (!running || instant < running.startsAt || instant >= running.endsAt) {
      const window = windows.at(instant)
      // The one that its counts have: a client's count is known to be of the running window by it.
      running = tables.get(window.name)?.window ?? window
    }
    return running
  }

  // A count that goes back and forth over a mark, because units are given back, is near its limit once.
  const reachedMarks = new WeakMap<Count, number>()
  // Whether a consumer's tests use up their key is nobody's concern.
  const ofTests = new WeakSet<Count>()
  const checkNearLimit = (count: Count, { before, used }: UsageGrant): void => {
    const { keyId, window, limit } = count
    for (const percent of [80, 100] as const) {
      const mark = Math.ceil((limit * percent) / 100)
      if (before >= mark || mark > used || reachedMarks.get(count) === mark || ofTests.has(count)) continue
      reachedMarks.set(count, mark)
      observer.nearLimit({ keyId, day: window.name, used, limit, percent })
    }
  }

  const allEntries = function* (): Generator<Entry, void> {
    for (const { entries } of tables.values()) yield* entries.values()
  }

  const partitionFor = (keyId: string): Partition => {
    const number = store.partitionOf(keyId)
    const known = current.get(number)
    if (known) return known
    const partition: Partition = createPartition({
      ...parts,
      instance,
      latestStart: () => Math.max(latestStart, windowAt(clock.now()).startsAt),
      counts: function* () {
        for (const entry of allEntries()) yield entry.partition === partition ? entry : undefined
      },
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
    const own = {
      limit: 0,
      step: 1,
      admitted: 0,
      confirmed: 0,
      lastKnown: undefined,
      knownSince: 0,
      pending: undefined,
    }
    const entry: Entry = { keyId, window: table.window, ...own, partition, next: undefined, isKept: true }
    table.entries.add(entry)
    latestStart = Math.max(latestStart, window.startsAt)
    return entry
  }

  // Each probe goes on where the one before stopped: a count that can't be forgotten yet delays no other.
  const forgetPast = (): void => {
    const now = clock.now()
    let visited = 0
    for (const [name, table] of tables) {
      const { window, entries } = table
      if (now - window.endsAt < keepCountForMs) continue
      table.forgetting ??= entries.values()
      for (; visited < maxPerTurn; visited++) {
        const { value, done } = table.forgetting.next()
        if (done) {
          delete table.forgetting
          break
        }
        // Loses nothing, even when the clock jumped ahead: the store has all of it.
        if (!value.partition.mayForget(value)) continue
        entries.delete(value)
        value.isKept = false
        latestForgotten = Math.max(latestForgotten, window.startsAt)
      }
      if (entries.size() === 0) tables.delete(name)
    }
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

  /** Below 0 where units were given back. */
  const unconfirmed = async (most = Number.POSITIVE_INFINITY): Promise<LostUnits[]> => {
    const found: LostUnits[] = []
    let visited = 0
    for (const entry of allEntries()) {
      const { keyId, window, admitted, confirmed } = entry
      if (isUnconfirmed(entry)) found.push({ keyId, day: window.name, units: admitted - confirmed })
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
    const lost = (await unconfirmed()).filter(({ units }) => units > 0)
    if (lost.length > 0) observer.unitsLost(lost)
  }

  const entryOf = (client: Metered, arrivedAt: number): Entry => {
    const window = windowAt(arrivedAt)
    let entry = client.count as Entry | undefined
    if (entry === undefined || entry.window !== window || !entry.isKept) {
      entry = entryFor(client.keyId, window)
      if (client.isTest) ofTests.add(entry)
      client.count = entry
    }
    return entry
  }
  const take: Meter['take'] = (client, arrivedAt, units, waiter) => {
    const entry = entryOf(client, arrivedAt)
    entry.partition.take(entry, client.limit, units, waiter)
  }

  // Of the few counts that have any, so that the others take no more memory for it.
  const fractions = new WeakMap<Entry, number>()
  const giveBack: Meter['giveBack'] = (client, arrivedAt, units) => {
    const entry = entryOf(client, arrivedAt)
    const owed = (fractions.get(entry) ?? 0) + units
    const whole = Math.floor(owed + smallestFraction)
    fractions.set(entry, owed - whole)
    // This instance took none where it has forgotten the count since.
    const given = Math.min(whole, entry.admitted)
    if (given > 0) entry.partition.giveBack(entry, given)
    return given
  }

  return {
    resetAfter: instant => windowAt(instant).endsAt,
    take,
    giveBack,
    probe: async () => {
      forgetPast()
      await Promise.all([...[...partitions].map(partition => partition.probe()), dropPast()])
    },
    stateOf: keyId => current.get(store.partitionOf(keyId))?.state() ?? 'counting',
    state: () => {
      const states = [...partitions].map(partition => partition.state())
      return (['away', 'reconciling'] as const).find(state => states.includes(state)) ?? 'counting'
    },
    usageAt: async function* (instant) {
      let part: KnownUsage[] = []
      for (const count of tables.get(windows.at(instant).name)?.entries.values() ?? []) {
        const { keyId, limit } = count
        part.push({ keyId, used: usedOf(count), limit })
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

/** The units of a count over the fleet, as far as this instance knows. */
const usedOf = ({ admitted, lastKnown }: Count): number =>
  lastKnown ? lastKnown.used + admitted - lastKnown.admitted : admitted

const maxPerBatch = 500
const maxTries = 3
const maxTurnsPerBatch = 16
// In a flood that is read in small parts, each turn is long and brings few.
const maxGrowthMs = 1
const fewPerBatch = 32

export type PartitionParts = Omit<OutageParts, 'store' | 'observer'> & {
  /** Unique id of this run of the process. */
  readonly instance: string
  readonly store: OutageParts['store'] & Pick<UsageStore, 'commit'>
  readonly observer: OutageParts['observer'] & { counted(count: Count, grant: UsageGrant): void }
}

type Partition = ReturnType<typeof createPartition>

/** The batches of one store partition: the keys that the store counts in one atomic step. @param now in ms, from any beginning */
export const createPartition = (parts: PartitionParts, now = () => performance.now()) => {
  const { instance, store, whenStoreIsDown, observer } = parts
  const status: PartitionStatus = { state: 'counting', isReported: true, reconciled: 0, readSince: 0 }
  // In order of arrival. No Map: the tables that it has outgrown would keep requests in memory until old objects are collected.
  let waiting: Pending[] = []
  let inFlight: readonly Pending[] = []
  let sequence = 0
  let isFlushScheduled = false
  // Since the last batch.
  let arrived = 0

  // One batch at a time, in order.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const run = last.then(step)
    last = run.catch(() => {})
    return run
  }

  /** @param entries of one window */
  const commit = async (entries: readonly BatchEntry[]): Promise<UsageGrant[]> => {
    const window = entries[0]?.count.window
    if (!window) return []
    const { name: day, endsAt, keepUntil } = window
    sequence += 1
    const reported = entries.map(usageEntryOf)
    let grants: UsageGrant[]
    try {
      grants = await store.commit({ instance, sequence, day, endsAt, keepUntil, entries: reported })
    } catch (error) {
      // Batches go one after the other, so this instance never overtakes itself: something else wrote that sequence.
      // The next batch continues after it.
      if (error instanceof OvertakenError) sequence = Math.max(sequence, error.by)
      throw error
    }
    grants.forEach((grant, i) => {
      const count = entries[i]?.count
      const { admitted = 0 } = reported[i] ?? {}
      if (!count) return
      // While the state is `counting` nothing is admitted before the store has counted it.
      status.reconciled += Math.max(0, admitted - count.confirmed)
      count.admitted += grant.granted
      count.confirmed = admitted + grant.granted
      observer.counted(count, grant)
    })
    return grants
  }
  // Retry first: one lost reply, or a pause of this process, does not mean that the store is away for everyone.
  const commitWithRetry = async (entries: readonly BatchEntry[]): Promise<UsageGrant[]> => {
    for (let tries = 1; ; tries++) {
      try {
        return await commit(entries)
      } catch (error) {
        if (tries === maxTries || !(await outage.storeAnswers(entries))) throw error
      }
    }
  }

  /** Deals out what the store granted, as the store did: in order, and each request has all its units or none. */
  const answer = (first: Pending, { granted, used }: UsageGrant): void => {
    let left = Math.max(0, first.limit - (used - granted))
    for (let run: Pending | undefined = first; run; run = run.next) {
      const { count, unitsEach, requested } = run
      let asked = 0
      for (const waiter of run.waiters) {
        asked += 1
        if (unitsEach > left) waiter(undefined, { allowed: false, remaining: left })
        else if (asked > requested) outage.refuse(count, unitsEach, waiter)
        else {
          left -= unitsEach
          waiter(undefined, { allowed: true, remaining: left })
        }
      }
    }
  }

  // With `refuse` no allowance bounds what is taken from a store that may have lost what others counted: requests wait until all
  // is reported.
  const isHeld = (): boolean =>
    whenStoreIsDown === 'refuse' && !status.isReported && status.state === 'counting'

  // Requests of the same turn of the event loop share a batch. Where they are few, those of the next turns join while each
  // brings more: a transaction or a round trip for each of them would cost as much as all else that it needs.
  const flushWhenQuiet = (until = now() + maxGrowthMs, turns = 1, before = 0): void => {
    setImmediate(() => {
      const mayGrow = turns < maxTurnsPerBatch && arrived < fewPerBatch && now() < until
      if (mayGrow && arrived > before) flushWhenQuiet(until, turns + 1, arrived)
      else void inTurn(flush)
    })
  }
  const flushSoon = (): void => {
    if (isFlushScheduled || waiting.length === 0 || isHeld()) return
    isFlushScheduled = true
    flushWhenQuiet()
  }

  const flush = async (): Promise<void> => {
    arrived = 0
    const { part, rest } = isHeld() ? { part: [], rest: waiting } : nextOf(waiting)
    waiting = rest
    for (const { count } of part) count.pending = undefined
    inFlight = part
    let grants: UsageGrant[] | undefined
    try {
      if (status.state === 'away') throw new StoreError('away')
      if (status.state === 'reconciling') await outage.readUnknown(part)
      for (const each of part) {
        each.limit = each.count.limit
        request(each, status.state === 'counting' ? undefined : outage.allowanceLeft(each.count))
      }
      grants = await commitWithRetry(part)
    } catch (error) {
      if (status.state !== 'away') outage.goAway(error)
    }
    // The requests go on in this turn, outside the step that may fail for the store.
    part.forEach((each, i) => {
      const { count } = each
      const grant = grants?.[i]
      if (!grant) {
        for (let run: Pending | undefined = each; run; run = run.next)
          for (const waiter of run.waiters) outage.admitLocally(count, run.unitsEach, waiter)
        return
      }
      if (status.state === 'counting') {
        count.lastKnown = { used: grant.used, admitted: count.admitted }
        count.knownSince = status.readSince
      }
      answer(each, grant)
    })
    inFlight = []
    isFlushScheduled = false
    // One turn of the event loop later: flushing at once would send half as many batches again, and save little time.
    flushSoon()
  }

  const enqueue = (count: Count, unitsEach: number, waiters: Waiter[]): void => {
    const { pending, limit } = count
    count.pending = { count, unitsEach, waiters, requested: 0, limit, next: undefined }
    if (pending) pending.next = count.pending
    else waiting.push(count.pending)
  }

  const outage = createOutage(status, { commit, commitWithRetry, inTurn, flushSoon }, parts, now)
  const { onMessage, onMessagesLost, probe, report } = outage
  return {
    state: () => status.state,
    /** Requests units, as `Quota` says. */
    take: (count: Count, limit: number, units: number, waiter: Waiter): void => {
      if (count.limit !== limit) {
        count.limit = limit
        count.step = stepOf(limit)
      }
      if (status.state === 'away') {
        outage.admitLocally(count, units, waiter)
        return
      }
      arrived += 1
      if (count.pending?.unitsEach === units) count.pending.waiters.push(waiter)
      else enqueue(count, units, [waiter])
      flushSoon()
    },
    /** Takes back so many units that were admitted here, and reports it with the next batch. */
    giveBack: (count: Count, units: number): void => {
      count.admitted -= units
      // After an outage all counts are reported.
      if (status.state === 'away') return
      if (!count.pending) enqueue(count, 0, [])
      flushSoon()
    },
    /** Whether no request waits for a count, and the store has all units that were admitted. */
    mayForget: (count: Count): boolean => {
      const isInUse = count.pending !== undefined || inFlight.some(each => each.count === count)
      return status.state === 'counting' && status.isReported && !isUnconfirmed(count) && !isInUse
    },
    onMessage,
    onMessagesLost,
    probe,
    report,
  }
}

/** The first requests in waiting whose counts are of one window, and the others. */
const nextOf = (all: readonly Pending[]): { part: Pending[]; rest: Pending[] } => {
  const [part, rest]: [Pending[], Pending[]] = [[], []]
  for (const each of all) {
    const isNext = part.length < maxPerBatch && each.count.window === all[0]?.count.window
    ;(isNext ? part : rest).push(each)
  }
  return { part, rest }
}

/** Requests units for all that wait, or for as many as an allowance lets it. */
const request = (first: Pending, allowance = Number.POSITIVE_INFINITY): void => {
  let left = allowance
  for (let run: Pending | undefined = first; run; run = run.next) {
    const { unitsEach, waiters } = run
    run.requested = unitsEach === 0 ? waiters.length : Math.min(waiters.length, Math.floor(left / unitsEach))
    left -= unitsEach * run.requested
  }
}

const usageEntryOf = (first: BatchEntry): UsageEntry => {
  const { count, unitsEach, requested, limit, next } = first
  const { keyId, admitted, confirmed, step } = count
  const runs = next || unitsEach > 1 ? runsOf(first) : undefined
  return { keyId, units: unitsEach * requested, runs, limit, admitted, confirmed, step }
}

/** Undefined where no units are requested. Requests that only read divide no run. */
const runsOf = (first: BatchEntry): UsageRun[] | undefined => {
  const runs: { unitsEach: number; requests: number }[] = []
  for (let run: BatchEntry | undefined = first; run; run = run.next) {
    const { unitsEach, requested } = run
    const last = runs.at(-1)
    if (last?.unitsEach === unitsEach) last.requests += requested
    else if (unitsEach * requested > 0) runs.push({ unitsEach, requests: requested })
  }
  return runs.length > 0 ? runs : undefined
}
