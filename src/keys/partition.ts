// Counts the keys of one store partition: those that the store counts in one atomic step. Uses group commit: while one
// batch is in flight, new requests wait for the next one, and units are granted in order of arrival. While the store is
// away, admits requests from a local allowance; after every loss all counts are reported to it, in short steps between the
// batches, before anything is counted as usual again. meter.ts chooses the partition of a key. Longer than 300 lines, because admitting and
// reporting share one state.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import {
  OvertakenError,
  StoreError,
  type UsageEntry,
  type UsageGrant,
  type UsageStore,
} from '../stores/store.ts'
import { createShards, type Shards } from './key-table.ts'
import type { Window } from './window.ts'

/** Whether the request is admitted, and the units left of the window after it. */
export type QuotaDecision = { readonly allowed: boolean; readonly remaining: number }

/** The count of one key in a window, as this instance knows it. */
export type Count = {
  readonly keyId: string
  readonly window: Window
  limit: number
  /** Units that requests were admitted with here. */
  admitted: number
  /** Of those, the units that the store has confirmed. */
  confirmed: number
  /** The last known count of the store, and the units admitted here until then. */
  lastKnown: LastKnown | undefined
}

type LastKnown = { used: number; admitted: number }

/** `reconciling`: the store is back, and other instances may not have reported yet what they admitted locally. */
export type MeterState = 'counting' | 'away' | 'reconciling'

export type PartitionParts = {
  /** Unique id of this run of the process. */
  readonly instance: string
  readonly store: Pick<UsageStore, 'commit' | 'usedOn' | 'time' | 'usageMessagesArrive'>
  /** `share`: admit from the local allowance, an equal share of what was left; `refuse`: admit nothing. */
  readonly whenStoreIsDown: 'share' | 'refuse'
  /** How many instances may admit requests; undefined while that is unknown. */
  readonly instances: () => number | undefined
  /** The start of the latest window that has begun or of which this instance has counted anything. */
  readonly latestStart: () => number
  /** The store's clock. */
  readonly clock: Clock
  readonly observer: {
    stopped(reason: string): void
    /** @param reconciled units that were admitted locally and are in the store now */
    resumed(reconciled: number): void
    counted(count: Count, grant: UsageGrant): void
  }
}

export type Partition = {
  readonly counts: Shards<Set<Count>>
  state(): MeterState
  /** Requests one unit. @throws StoreError when the store is away and the local allowance is spent */
  admit(count: Count, limit: number): Promise<QuotaDecision>
  /** Drops a count, unless a request waits for it or the store may lack units that were admitted. */
  forget(count: Count): boolean
  /** Another instance published the store's count. */
  onMessage(count: Count, used: number): void
  /** Messages of other instances may have been lost, and the store may have lost counts. */
  onMessagesLost(): void
  /** Reports all counts after a loss, or reads what others counted where no messages arrive. */
  probe(): Promise<void>
  /** Reports what the store has not confirmed, whatever the state; never rejects. */
  report(): Promise<void>
}

// Long enough for every instance to notice that the store is back and to report what it admitted.
export const reconcileForMs = 2_000
const maxPerBatch = 500
// The size of a step between batches; a request waits for at most one step.
const maxPerStep = 100
const maxVisitedPerStep = 2_000
const pauseBetweenReadsMs = 5
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
  { instance, store, whenStoreIsDown, instances, latestStart, clock, observer }: PartitionParts,
  now = () => performance.now(),
): Partition => {
  const counts = createShards(() => new Set<Count>())
  const waiting = new Map<Count, Pending>()
  let inFlight: readonly Pending[] = []
  let state: MeterState = 'counting'
  let sequence = 0
  let isFlushScheduled = false
  // Since the last batch.
  let arrived = 0
  let probing: Promise<void> | undefined
  let latestStartBefore = Number.NEGATIVE_INFINITY
  // Units admitted locally and confirmed by the store since it went away.
  let reconciled = 0
  /** Whether all counts were reported since the last loss. */
  let isReported = true
  let losses = 0
  let reconciledAt = 0
  /** Since the last loss others may have counted what these do not know. */
  let unread: Iterator<Count> | undefined
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
      throw error
    }
    grants.forEach((grant, i) => {
      const count = entries[i]?.count
      const { admitted = 0 } = reported[i] ?? {}
      if (!count) return
      // While the state is `counting` nothing is admitted before the store has counted it.
      reconciled += admitted - count.confirmed
      count.admitted += grant.granted
      count.confirmed = admitted + grant.granted
      observer.counted(count, grant)
    })
    return grants
  }

  // A window that begins while the store is away starts with no units used, unless the clock jumped back to it.
  const lastKnownOf = (count: Count): LastKnown | undefined =>
    count.lastKnown ??
    (state !== 'counting' && latestStartBefore < count.window.startsAt ? { used: 0, admitted: 0 } : undefined)

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
    waiter.resolve({ allowed: true, remaining: left - 1 })
  }

  const stopCounting = (reason: string, next: 'away' | 'reconciling'): void => {
    if (state === 'counting') {
      latestStartBefore = latestStart()
      observer.stopped(reason)
    }
    state = next
  }
  /** Everything has to be reported again. */
  const onLoss = (): void => {
    isReported = false
    losses += 1
    // What others admitted since the loss before is not in these.
    for (let each = unread?.next(); each && !each.done; each = unread?.next())
      each.value.lastKnown = undefined
    unread = undefined
  }
  const goAway = (error: unknown): void => {
    stopCounting(messageOf(error), 'away')
    onLoss()
    flushSoon()
  }
  const resume = (): void => {
    if (state !== 'counting') observer.resumed(reconciled)
    state = 'counting'
    reconciled = 0
    if (whenStoreIsDown === 'share' && instances() !== 1) unread = counts.values()
    flushSoon()
  }

  const resolveWaiters = ({ count, units, limit, waiters }: Pending, { granted, used }: UsageGrant): void => {
    if (state === 'counting') count.lastKnown = { used, admitted: count.admitted }
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

  /** Reports counts, and takes what the store says as their last known count. */
  const read = async (part: readonly Count[]): Promise<void> => {
    const grants = await commitWithRetry(part.map(reportOf))
    part.forEach((count, i) => {
      const used = grants[i]?.used
      if (used !== undefined) count.lastKnown = { used, admitted: count.confirmed }
    })
  }

  // While this instance reconciles, it takes no more than its allowances. Units that others have not reported yet come out of theirs, so
  // the sum stays within the limit.
  const readUnknown = async (part: readonly Pending[]): Promise<void> => {
    const unknown = part.flatMap(({ count }) => (lastKnownOf(count) ? [] : [count]))
    if (state === 'reconciling' && unknown.length > 0) await read(unknown)
  }

  // With `refuse` no allowance bounds what is taken from a store that may have lost what others counted: requests wait until all
  // is reported.
  const isHeld = (): boolean => whenStoreIsDown === 'refuse' && !isReported && state === 'counting'

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
    if (isFlushScheduled || waiting.size === 0 || isHeld()) return
    isFlushScheduled = true
    flushWhenQuiet()
  }

  const flush = async (): Promise<void> => {
    arrived = 0
    const part = isHeld() ? [] : nextOf(waiting.values(), maxPerBatch)
    for (const { count } of part) waiting.delete(count)
    inFlight = part
    try {
      if (state === 'away') throw new StoreError('away')
      await readUnknown(part)
      for (const each of part) {
        const { length } = each.waiters
        each.limit = each.count.limit
        each.units = state === 'counting' ? length : Math.min(length, allowanceLeft(each.count))
      }
      const grants = part.length > 0 ? await commitWithRetry(part) : []
      grants.forEach((grant, at) => {
        const each = part[at]
        if (each) resolveWaiters(each, grant)
      })
    } catch (error) {
      if (state !== 'away') goAway(error)
      for (const { count, waiters } of part) for (const waiter of waiters) admitLocally(count, waiter)
    }
    inFlight = []
    isFlushScheduled = false
    // One turn of the event loop later: flushing at once would send half as many batches again, and save little time.
    flushSoon()
  }

  /** Takes counts in steps, each in its turn, and leaves the turn of the event loop after each. */
  const inSteps = async (
    all: Iterator<Count>,
    step: (part: readonly Count[]) => Promise<void>,
    {
      isWanted = () => true,
      mayGoOn = () => true,
      pauseMs = 0,
    }: { isWanted?: (count: Count) => boolean; mayGoOn?: () => boolean; pauseMs?: number } = {},
  ): Promise<void> => {
    for (let isLast = false; !isLast && mayGoOn(); ) {
      const part: Count[] = []
      for (let visited = 0; visited < maxVisitedPerStep && part.length < maxPerStep; visited++) {
        const { value, done } = all.next()
        isLast = done === true
        if (isLast) break
        if (isWanted(value)) part.push(value)
      }
      if (part.length > 0) await inTurn(async () => (mayGoOn() ? step(part) : undefined))
      await (pauseMs > 0 && !isLast ? pause(pauseMs) : nextTurn())
    }
  }
  const reportPart = async (part: readonly Count[]): Promise<void> => {
    await commit(part.map(reportOf))
  }
  /** Reports all counts; returns whether the store had lost any. */
  const reportAll = async (): Promise<boolean> => {
    // Shows whether the store answers where there is no count.
    await store.time()
    let isLost = false
    const report = async (part: readonly Count[]): Promise<void> => {
      const known = part.map(({ confirmed }) => confirmed)
      const grants = await commit(part.map(reportOf))
      isLost ||= grants.some(({ before }, i) => before < (known[i] ?? 0))
    }
    // First what was admitted locally: others wait for that, for two seconds.
    await inSteps(counts.values(), report, { isWanted: isUnconfirmed })
    await inSteps(counts.values(), report)
    return isLost
  }

  /** Reads the counts that others may have changed: after a loss, and once a second where no messages of them arrive. */
  const readOthers = async (): Promise<void> => {
    const rest = unread
    const before = losses
    const gently = { mayGoOn: () => losses === before, pauseMs: pauseBetweenReadsMs }
    if (rest) {
      const readAnew = (part: readonly Count[]): Promise<void> => {
        for (const count of part) count.lastKnown = undefined
        return read(part)
      }
      await inSteps(rest, readAnew, gently)
      if (unread === rest) unread = undefined
    } else if (!store.usageMessagesArrive() && whenStoreIsDown === 'share' && instances() !== 1) {
      if (now() - readAt < readEveryMs) return
      readAt = now()
      await inSteps(counts.values(), read, gently)
    }
  }

  const probeOnce = async (): Promise<void> => {
    try {
      if (isReported && state === 'counting') return await readOthers()
      if (isReported) {
        if (!isStillToCome(clock, reconciledAt, reconcileForMs)) resume()
        return
      }
      const before = losses
      const isLost = await reportAll()
      if (losses !== before) return
      // With `refuse` nothing is admitted locally, so there is nothing to wait for unless the store lost counts.
      if (whenStoreIsDown === 'refuse' && !isLost) {
        isReported = true
        resume()
        return
      }
      stopCounting('the store lost its counts', 'reconciling')
      flushSoon()
      // What was admitted locally until now.
      await inSteps(counts.values(), reportPart, { isWanted: isUnconfirmed })
      if (losses !== before) return
      isReported = true
      reconciledAt = clock.now() + reconcileForMs
    } catch (error) {
      goAway(error)
    }
  }

  const probe = (): Promise<void> => {
    probing ??= probeOnce().finally(() => {
      probing = undefined
    })
    return probing
  }

  const storeAnswers = async ([first]: readonly BatchEntry[]): Promise<boolean> => {
    const timeout = new AbortController()
    // In a cluster another server than that of the counts may answer what concerns no count.
    const asked = first ? store.usedOn(first.count.keyId, [first.count.window.name]) : store.time()
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
        flushSoon()
      }),
    forget: count => {
      const isInUse = waiting.has(count) || inFlight.some(each => each.count === count)
      if (state !== 'counting' || !isReported || isUnconfirmed(count) || isInUse) return false
      return counts.of(count.keyId).delete(count)
    },
    onMessage: (count, used) => {
      // In any state: a batch of another instance that was under way when messages were lost may be counted afterwards. Units of
      // this instance are in it as well, so an allowance may be smaller than it could be, never larger.
      if (count.lastKnown && used > count.lastKnown.used) count.lastKnown.used = used
    },
    onMessagesLost: () => {
      if (state === 'away') return
      // Other instances may be admitting locally.
      if (whenStoreIsDown === 'share')
        stopCounting('the subscription to the counts of other gateways was lost', 'reconciling')
      onLoss()
      // Requests may wait for it.
      if (isHeld()) void probe()
    },
    report: () => inSteps(counts.values(), reportPart, { isWanted: isUnconfirmed }).catch(() => {}),
    probe,
  }
}

const nextOf = <Value>(all: Iterator<Value>, most: number): Value[] => {
  const part: Value[] = []
  while (part.length < most) {
    const { value, done } = all.next()
    if (done) break
    part.push(value)
  }
  return part
}

const isUnconfirmed = ({ admitted, confirmed }: Count): boolean => admitted !== confirmed

/** An entry that requests no units. */
const reportOf = (count: Count): BatchEntry => ({ count, units: 0, limit: count.limit })

const usageEntryOf = ({
  count: { keyId, window, admitted, confirmed },
  units,
  limit,
}: BatchEntry): UsageEntry => ({
  keyId,
  day: window.name,
  units,
  limit,
  admitted,
  confirmed,
  step: stepOf(limit),
  endsAt: window.endsAt,
  keepUntil: window.keepUntil,
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
