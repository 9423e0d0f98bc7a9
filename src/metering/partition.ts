// Counts the keys of one store partition: those that the store counts in one atomic step. Uses group commit: while one
// batch is in flight, new requests wait for the next one, and units are granted in order of arrival. While the store is
// away, admits requests from a local allowance, and reconciles afterwards: reports what the store lacks, then reads again what
// others may have counted, in short steps between the batches. meter.ts chooses the partition of a key. Longer than 300 lines,
// because admitting and reconciling share one state.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { LocalDay } from '../calendar.ts'
import { type Clock, isStillToCome } from '../clock.ts'
import { messageOf } from '../errors.ts'
import {
  OvertakenError,
  StoreError,
  type UsageEntry,
  type UsageGrant,
  type UsageStore,
} from '../stores/store.ts'
import { createShards, type Shards } from './shards.ts'

/** Whether the request is admitted, and the units left of the day after it. */
export type QuotaDecision = { readonly allowed: boolean; readonly remaining: number }

export type MeteredDay = { readonly day: LocalDay; readonly endsAt: number; readonly keepUntil: number }

/** A day's count of one key, as this instance knows it. */
export type Count = {
  readonly keyId: string
  readonly metered: MeteredDay
  limit: number
  /** Units that requests were admitted with here. */
  admitted: number
  /** Of those, the units that the store has confirmed. */
  confirmed: number
  /** The last known count of the store, and the units admitted here until then. */
  lastKnown: LastKnown | undefined
}

/** `round` numbers the periods of counting; a new one begins after each outage of the store. */
type LastKnown = { used: number; admitted: number; round: number }

/** `reconciling`: the store is back, and other instances may not have reported yet what they admitted locally. */
export type MeterState = 'counting' | 'away' | 'reconciling'

export type PartitionParts = {
  /** Unique id of this run of the process. */
  readonly instance: string
  readonly store: Pick<UsageStore, 'commit' | 'countsOf' | 'time' | 'usageMessagesArrive'>
  /** `share`: admit from the local allowance, an equal share of what was left; `refuse`: admit nothing. */
  readonly whenStoreIsDown: 'share' | 'refuse'
  /** How many instances may admit requests; undefined while that is unknown. */
  readonly instances: () => number | undefined
  readonly dayOf: (instant: number) => LocalDay
  /** The latest day of which this instance has counted anything; empty before the first. */
  readonly newestDay: () => LocalDay
  /** The store's clock. */
  readonly clock: Clock
  readonly observer: {
    stopped(reason: string): void
    /** @param reconciled units that were admitted locally and are in the store now */
    resumed(reconciled: number): void
    counted(count: Count, grant: UsageGrant): void
  }
}

type Counts = Shards<Set<Count>>

export type Partition = {
  readonly counts: Counts
  /** Counts whose figure for this instance may differ in the store: admitted locally, or in a batch of unknown outcome. */
  readonly unreported: Pick<Counts, 'values'>
  state(): MeterState
  /** Requests one unit. @throws StoreError when the store is away and the local allowance is spent */
  admit(count: Count, limit: number): Promise<QuotaDecision>
  /** Drops a count, unless a request waits for it or the store may lack units that were admitted. */
  forget(count: Count): boolean
  /** Another instance published the store's count. */
  onMessage(count: Count, used: number): void
  /** Messages of other instances may have been lost. */
  onMessagesLost(): void
  /** Probes a store that is away, and reconciles once it answers. */
  probe(): Promise<void>
  /** Reports all admitted units to the store, whatever the state; never rejects. */
  report(): Promise<void>
}

// Long enough for every instance to notice that the store is back and to report what it admitted.
export const reconcileForMs = 2_000
const maxPerBatch = 500
// The size of a step between batches; a request waits for at most one step.
const maxPerStep = 100
const pauseBetweenReadsMs = 5
const maxVisited = 5_000
// Without messages: how stale a count may be that an allowance is computed from.
const readEveryMs = 1_000
const probeTimeoutMs = 50
const maxTries = 3
const maxTurnsPerBatch = 16
// In a flood that is read in small parts, each turn is long and brings few.
const maxGrowthMs = 1
const fewPerBatch = 32

type BatchEntry = { readonly count: Count; readonly units: number; readonly limit: number }

type Waiter = { resolve(decision: QuotaDecision): void; reject(error: unknown): void }

/** The waiting requests of a count, the units that their batch requests, and its limit: that of the count may change meanwhile. */
type Pending = { readonly count: Count; readonly waiters: Waiter[]; units: number; limit: number }

/** @param now in ms, from any beginning */
export const createPartition = (
  { instance, store, whenStoreIsDown, instances, dayOf, newestDay, clock, observer }: PartitionParts,
  now = () => performance.now(),
): Partition => {
  const counts: Counts = createShards(() => new Set<Count>())
  let waiting = new Map<Count, Pending>()
  let inFlight = new Map<Count, Pending>()
  let state: MeterState = 'counting'
  let sequence = 0
  let isFlushScheduled = false
  // Since the last batch.
  let arrived = 0
  let probing: Promise<void> | undefined
  let lastDayBefore: LocalDay = ''
  let reconciledAt = 0
  // Units admitted locally and confirmed by the store since it went away.
  let reconciled = 0
  const unreported: Counts = createShards(() => new Set<Count>())
  // The newest confirmed count. While the store has it, it has all before: a restart or a replica loses the latest first.
  let newest: Count | undefined
  let isComplete: boolean | undefined = true
  // Grows when the state changes, so that a step can tell whether it may go on.
  let changes = 0
  let round = 0
  let unread: Iterator<Count> | undefined
  /** Whether those are all, known or not. */
  let isRereading = false
  let readAt = Number.NEGATIVE_INFINITY

  // One batch at a time, in order.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const run = last.then(step)
    last = run.catch(() => {})
    return run
  }

  const commit = async (entries: readonly BatchEntry[]): Promise<UsageGrant[]> => {
    sequence += 1
    const reported = entries.map(usageEntryOf)
    let grants: UsageGrant[]
    try {
      grants = await store.commit({ instance, sequence, entries: reported })
    } catch (error) {
      // Batches go one after the other, so this instance never overtakes itself: something else wrote that sequence.
      // The next batch continues after it.
      if (error instanceof OvertakenError) sequence = Math.max(sequence, error.by)
      for (const { count } of entries) unreported.of(count.keyId).add(count)
      throw error
    }
    grants.forEach((grant, i) => {
      const count = entries[i]?.count
      const { admitted = 0 } = reported[i] ?? {}
      if (!count) return
      // While the state is `counting` nothing is admitted before the store has counted it.
      reconciled += admitted - count.confirmed
      count.admitted += grant.granted
      const confirmed = admitted + grant.granted
      if (confirmed > count.confirmed) newest = count
      count.confirmed = confirmed
      if (count.admitted === confirmed) unreported.of(count.keyId).delete(count)
      observer.counted(count, grant)
    })
    return grants
  }

  // A day that begins while the store is away starts with no units used, unless the clock jumped back to it.
  const lastKnownOf = (count: Count): LastKnown | undefined => {
    if (count.lastKnown?.round === round) return count.lastKnown
    return state !== 'counting' && lastDayBefore < count.metered.day
      ? { used: 0, admitted: 0, round }
      : undefined
  }

  /** Units that this instance may still admit by itself. */
  const allowanceLeft = (count: Count): number => {
    const size = instances()
    const known = lastKnownOf(count)
    if (whenStoreIsDown === 'refuse' || size === undefined || !known) return 0
    return Math.max(0, allowanceOf(count.limit, known.used, size) - (count.admitted - known.admitted))
  }

  const refuse = (count: Count, { resolve, reject }: Waiter): void => {
    const known = lastKnownOf(count)
    if (known && known.used >= count.limit) resolve({ allowed: false, remaining: 0 })
    else reject(new StoreError('the store is away and the local allowance of this key is spent'))
  }

  const admitLocally = (count: Count, waiter: Waiter): void => {
    const left = allowanceLeft(count)
    if (left === 0) {
      refuse(count, waiter)
      return
    }
    count.lastKnown = lastKnownOf(count)
    count.admitted += 1
    unreported.of(count.keyId).add(count)
    waiter.resolve({ allowed: true, remaining: left - 1 })
  }

  const stopCounting = (reason: string): void => {
    if (state !== 'counting') return
    const [today, newest] = [dayOf(clock.now()), newestDay()]
    lastDayBefore = today < newest ? newest : today
    observer.stopped(reason)
  }
  const goAway = (error: unknown): void => {
    stopCounting(messageOf(error))
    state = 'away'
    isComplete = undefined
    changes += 1
  }

  const resolveWaiters = ({ count, units, limit, waiters }: Pending, { granted, used }: UsageGrant): void => {
    if (state === 'counting') count.lastKnown = { used, admitted: count.admitted, round }
    waiters.forEach((waiter, i) => {
      if (i < granted) {
        waiter.resolve({ allowed: true, remaining: Math.max(0, limit - (used - granted) - i - 1) })
      } else if (i < units || used >= limit)
        waiter.resolve({ allowed: false, remaining: Math.max(0, limit - used) })
      else refuse(count, waiter)
    })
  }

  // Retry first: one lost reply, or a pause of this process, does not mean that the store is away for everyone.
  const commitWithRetry = async (entries: readonly BatchEntry[]): Promise<UsageGrant[]> => {
    for (let tries = 1; ; tries++) {
      try {
        return await commit(entries)
      } catch (error) {
        if (tries === maxTries || !(await storeAnswers(entries))) throw error
      }
    }
  }

  // Reads the counts that this instance does not know. While it reconciles, it takes no more than its allowance, which is
  // computed from them. Units that others have not reported yet come out of their allowances, so the sum stays within the
  // limit.
  const readUnknown = async (part: readonly Pending[]): Promise<void> => {
    if (state !== 'reconciling') return
    const unknown = part.flatMap(({ count }) => (lastKnownOf(count) ? [] : [reportOf(count)]))
    if (unknown.length === 0) return
    const grants = await commitWithRetry(unknown)
    grants.forEach(({ used }, at) => {
      const count = unknown[at]?.count
      if (count) count.lastKnown = { used, admitted: count.admitted, round }
    })
  }

  // Requests of the same turn of the event loop share a batch. Where they are few, those of the next turns join while each
  // brings more: a transaction or a round trip for each of them would cost as much as all else that it needs.
  const flushWhenQuiet = (until = now() + maxGrowthMs, turns = 1, before = 0): void => {
    setImmediate(() => {
      const mayGrow = turns < maxTurnsPerBatch && arrived < fewPerBatch && now() < until
      if (mayGrow && arrived > before) flushWhenQuiet(until, turns + 1, arrived)
      else void inTurn(flush)
    })
  }

  const flush = async (): Promise<void> => {
    arrived = 0
    inFlight = waiting
    waiting = new Map()
    const all = [...inFlight.values()]
    for (let i = 0; i < all.length; i += maxPerBatch) {
      const part = all.slice(i, i + maxPerBatch)
      try {
        if (state === 'away') throw new StoreError('away')
        if (isComplete === undefined) await checkComplete()
        await readUnknown(part)
        for (const each of part) {
          const { length } = each.waiters
          each.limit = each.count.limit
          each.units = state === 'counting' ? length : Math.min(length, allowanceLeft(each.count))
        }
        const grants = await commitWithRetry(part)
        grants.forEach((grant, at) => {
          const each = part[at]
          if (each) resolveWaiters(each, grant)
        })
      } catch (error) {
        if (state !== 'away') goAway(error)
        for (const { count, waiters } of part) for (const waiter of waiters) admitLocally(count, waiter)
      }
    }
    inFlight = new Map()
    // Flushes one turn of the event loop later: flushing at once would send half as many batches again, and save little time.
    if (waiting.size > 0) flushWhenQuiet()
    else isFlushScheduled = false
  }

  const reportCounts = async (part: readonly Count[]): Promise<void> => {
    const grants = await commit(part.map(reportOf))
    if (state !== 'counting') return
    grants.forEach(({ used }, at) => {
      const count = part[at]
      if (count) count.lastKnown = { used, admitted: count.confirmed, round }
    })
  }

  // Reports what the store may lack, each step in its turn. Sends an empty batch too: it shows whether the store answers. The
  // embedded store answers within the same turn of the event loop, so the next step leaves it.
  const reportDiffering = async (): Promise<void> => {
    const differing = unreported.values()
    for (let left = unreported.size(); ; left -= maxPerStep) {
      await inTurn(() => reportCounts(nextOf(differing, Math.min(left, maxPerStep))))
      if (left <= maxPerStep) return
      await nextTurn()
    }
  }
  const reportEverything = async (): Promise<void> => {
    const all = counts.values()
    for (;;) {
      const part = nextOf(all, maxPerStep)
      if (part.length === 0) return
      await inTurn(() => reportCounts(part))
      await nextTurn()
    }
  }

  // Runs before anything is counted again, because new counts would hide a loss of the store.
  const checkComplete = async (): Promise<void> => {
    if (isComplete !== undefined) return
    const before = changes
    const [found] = newest ? await store.countsOf(instance, [countName(newest)]) : []
    if (changes !== before) return
    isComplete = counts.size() === 0 || (newest !== undefined && (found?.admitted ?? 0) >= newest.confirmed)
    if (isComplete || state !== 'counting') return
    // Each instance has to report first: what others admitted is missing, too.
    stopCounting('the store lost its counts')
    reconcile()
    reconciledAt = clock.now()
  }

  const reconcile = (): void => {
    state = 'reconciling'
    changes += 1
    reconciledAt = clock.now() + reconcileForMs
  }
  const resume = (): void => {
    state = 'counting'
    changes += 1
    // The units that others counted meanwhile are unknown until each count is read again.
    round += 1
    unread = counts.values()
    isRereading = false
    observer.resumed(reconciled)
    reconciled = 0
  }

  /** In place of messages of other instances: what they counted is read again, and as it was known until then. */
  const readOthers = (): void => {
    if (store.usageMessagesArrive() || whenStoreIsDown === 'refuse' || instances() === 1) return
    if (unread || now() - readAt < readEveryMs) return
    readAt = now()
    isRereading = true
    unread = counts.values()
  }

  /** Reads some counts that are unknown since counting began again, or may be stale, and marks those that differ as unreported. */
  const readAgain = async (): Promise<void> => {
    const part: Count[] = []
    for (let visited = 0; visited < maxVisited && part.length < maxPerStep; visited++) {
      const { value, done } = unread?.next() ?? { done: true }
      if (done) {
        unread = undefined
        isRereading = false
        break
      }
      if (isRereading || value.lastKnown?.round !== round) part.push(value)
    }
    if (part.length === 0) return
    const found = await store.countsOf(instance, part.map(countName))
    part.forEach((count, at) => {
      const { used, admitted } = found[at] ?? {}
      if (used === undefined || admitted !== count.admitted) unreported.of(count.keyId).add(count)
      else if (state === 'counting') count.lastKnown = { used, admitted, round }
    })
  }
  const catchUp = async (): Promise<void> => {
    try {
      while (unread && state === 'counting') {
        await inTurn(readAgain)
        await pause(pauseBetweenReadsMs)
      }
      if (unreported.size() > 0 && state === 'counting') await reportDiffering()
    } catch {
      // The next probe begins again, and skips known counts.
      if (unread) unread = counts.values()
    }
  }

  const probeOnce = async (): Promise<void> => {
    try {
      if (state === 'counting') {
        await inTurn(checkComplete)
        if (state === 'counting') {
          readOthers()
          return await catchUp()
        }
      }
      if (state === 'reconciling' && isStillToCome(clock, reconciledAt, reconcileForMs)) return
      const former = state
      const before = changes
      await inTurn(checkComplete)
      const isLost = isComplete === false
      if (isLost) await reportEverything()
      else await reportDiffering()
      if (changes !== before) return
      isComplete = true
      // With `refuse` nothing is admitted locally, so there is nothing to reconcile unless the store lost counts.
      if (!isLost && (whenStoreIsDown === 'refuse' || former === 'reconciling')) resume()
      else reconcile()
    } catch (error) {
      goAway(error)
    }
  }

  const storeAnswers = async ([first]: readonly BatchEntry[]): Promise<boolean> => {
    const timeout = new AbortController()
    // In a cluster another server than that of the counts may answer what concerns no count.
    const asked = first ? store.countsOf(instance, [countName(first.count)]) : store.time()
    const answered = asked.then(
      () => true,
      () => false,
    )
    const inTime = await Promise.race([answered, pause(probeTimeoutMs, false, { signal: timeout.signal })])
    timeout.abort()
    return inTime
  }

  return {
    counts,
    unreported,
    state: () => state,
    admit: (count, limit) =>
      new Promise((resolve, reject) => {
        count.limit = limit
        const waiter = { resolve, reject }
        if (state === 'away') {
          admitLocally(count, waiter)
          return
        }
        arrived += 1
        const pending = waiting.get(count)
        if (pending) pending.waiters.push(waiter)
        else waiting.set(count, { count, waiters: [waiter], units: 0, limit })
        if (isFlushScheduled) return
        isFlushScheduled = true
        flushWhenQuiet()
      }),
    forget: count => {
      if (
        state !== 'counting' ||
        count.admitted !== count.confirmed ||
        unreported.of(count.keyId).has(count) ||
        waiting.has(count) ||
        inFlight.has(count)
      )
        return false
      if (count === newest) newest = undefined
      return counts.of(count.keyId).delete(count)
    },
    onMessage: (count, used) => {
      // In any state: a batch of another instance that was under way when messages were lost may be counted afterwards. Units of
      // this instance are in it as well, so an allowance may be smaller than it could be, never larger.
      if (count.lastKnown && used > count.lastKnown.used) count.lastKnown.used = used
    },
    onMessagesLost: () => {
      if (state === 'away') return
      isComplete = undefined
      if (whenStoreIsDown === 'refuse') return
      // Other instances may be admitting locally.
      stopCounting('the subscription to the counts of other gateways was lost')
      reconcile()
    },
    report: () => reportDiffering().catch(() => {}),
    probe: () => {
      probing ??= probeOnce().finally(() => {
        probing = undefined
      })
      return probing
    },
  }
}

const nextOf = (all: Iterator<Count>, most: number): Count[] => {
  const part: Count[] = []
  while (part.length < most) {
    const { value, done } = all.next()
    if (done) break
    part.push(value)
  }
  return part
}

const countName = ({ keyId, metered: { day } }: Count) => ({ keyId, day })

/** An entry that requests no units. */
const reportOf = (count: Count): BatchEntry => ({ count, units: 0, limit: count.limit })

const usageEntryOf = ({
  count: { keyId, metered, admitted, confirmed },
  units,
  limit,
}: BatchEntry): UsageEntry => ({
  keyId,
  day: metered.day,
  units,
  limit,
  admitted,
  confirmed,
  step: stepOf(limit),
  endsAt: metered.endsAt,
  keepUntil: metered.keepUntil,
})

// Each count is published at 64 steps of its limit.
const stepsPerLimit = 64

/** The units between two published messages of a count. */
export const stepOf = (limit: number): number => Math.max(1, Math.ceil(limit / stepsPerLimit))

/**
 * An instance's equal share of the units that were left at the last known count. Others may have used up to a step since. Two
 * steps are left out, so that one message lost with the connection does not make all allowances together exceed the limit.
 */
export const allowanceOf = (limit: number, lastKnown: number, instances: number): number =>
  Math.max(0, Math.floor((limit - lastKnown - 2 * stepOf(limit)) / instances))
