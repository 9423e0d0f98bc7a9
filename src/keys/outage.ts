// What a partition of the counts does beside counting: while the store is away it admits requests from a local allowance, and
// after every loss it reports all counts, in short steps between the batches, before anything is counted as usual again.
// meter.ts counts, and runs the batches. Longer than 300 lines, because all of it goes by what is known of the last loss.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import { StoreError, type UsageGrant, type UsageStore } from '../stores/store.ts'
import type { Window } from './window.ts'

/** Whether the request is admitted, and the units left of the window after it. */
export type QuotaDecision = { readonly allowed: boolean; readonly remaining: number }

/** The count of one key in a window, as this instance knows it. */
export type Count = {
  readonly keyId: string
  readonly window: Window
  limit: number
  /** `stepOf` the limit. */
  step: number
  /** Units that requests were admitted with here, less those that were given back. */
  admitted: number
  /** Of those, the units that the store has confirmed. */
  confirmed: number
  /** The last known count of the store, and the units admitted here until then. */
  lastKnown: LastKnown | undefined
  /** The `readSince` of the partition when that became known. */
  knownSince: number
  /** The last one; undefined while no request waits. */
  pending?: Pending | undefined
}

/**
 * Waiting requests of a count that came one after the other and cost the same. The limit is that of the first ones' batch: that of
 * the count may change meanwhile.
 */
export type Pending = {
  readonly count: Count
  readonly unitsEach: number
  readonly waiters: Waiter[]
  /** How many of them the batch requests units for. */
  requested: number
  limit: number
  /** Those that came behind, at another cost. They share the entry in the batch. */
  next: Pending | undefined
}

type LastKnown = { used: number; admitted: number }

export type BatchEntry = Readonly<Omit<Pending, 'waiters'>>

/** Goes on with a request that waited for its units; with an error in place of a decision where nobody can decide. Never throws. */
export type Waiter = (error: unknown, decision?: QuotaDecision) => void

/** `reconciling`: the store is back, and other instances may not have reported yet what they admitted locally. */
export type MeterState = 'counting' | 'away' | 'reconciling'

/** What counting and outages of a partition share. */
export type PartitionStatus = {
  state: MeterState
  /** Whether all counts were reported since the last loss. */
  isReported: boolean
  /** Units admitted locally and confirmed by the store since it went away. */
  reconciled: number
  /**
   * The number of the loss after which counts are read anew: others may have counted meanwhile. What was known of a count before
   * is worth nothing at the next loss, which sees it by the number and visits no count.
   */
  readSince: number
}

export type OutageParts = {
  readonly store: Pick<UsageStore, 'usedOn' | 'time' | 'usageMessagesArrive'>
  /** `share`: admit from the local allowance, an equal share of what was left; `refuse`: admit nothing. */
  readonly whenStoreIsDown: 'share' | 'refuse'
  /** Whether a store that does not count may still be read, as a file on a full disk. */
  readonly isReadWhenAway?: boolean | undefined
  /** How many instances may admit requests; undefined while that is unknown. */
  readonly instances: () => number | undefined
  /** The start of the latest window that has begun or of which this instance has counted anything. */
  readonly latestStart: () => number
  /** The counts of all partitions, and undefined in place of those of another one. */
  readonly counts: () => Iterator<Count | undefined>
  /** The store's clock. */
  readonly clock: Clock
  readonly observer: {
    stopped(reason: string): void
    /** @param reconciled units that were admitted locally and are in the store now */
    resumed(reconciled: number): void
  }
}

/** The batches of a partition. */
type Batches = {
  commit(entries: readonly BatchEntry[]): Promise<UsageGrant[]>
  commitWithRetry(entries: readonly BatchEntry[]): Promise<UsageGrant[]>
  /** Runs a step that commits, after those before it. */
  inTurn(step: () => Promise<void>): Promise<void>
  flushSoon(): void
}

// Long enough for every instance to notice that the store is back and to report what it admitted.
export const reconcileForMs = 2_000
// The size of a step between batches; a request waits for at most one step.
const maxPerStep = 100
const maxVisitedPerStep = 2_000
const pauseBetweenReadsMs = 5
// Without messages: how stale a count may be that an allowance is computed from.
const readEveryMs = 1_000
const probeTimeoutMs = 50

/** @param now in ms, from any beginning */
export const createOutage = (
  status: PartitionStatus,
  { commit, commitWithRetry, inTurn, flushSoon }: Batches,
  { store, whenStoreIsDown, isReadWhenAway, instances, latestStart, counts, clock, observer }: OutageParts,
  now: () => number,
) => {
  let probing: Promise<void> | undefined
  let latestStartBefore = Number.NEGATIVE_INFINITY
  let losses = 0
  let reconciledAt = 0
  /** Since the last loss others may have counted what these do not know. */
  let unread: Iterator<Count | undefined> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  /** What this outage has read of the store although it does not count. */
  let readings = new WeakMap<Count, Promise<void>>()

  const isRecent = ({ knownSince }: Count): boolean => knownSince === status.readSince
  // A window that begins while the store is away starts with no units used, unless the clock jumped back to it.
  const lastKnownOf = (count: Count): LastKnown | undefined =>
    (status.state === 'counting' || isRecent(count) ? count.lastKnown : undefined) ??
    (status.state !== 'counting' && latestStartBefore < count.window.startsAt
      ? { used: 0, admitted: 0 }
      : undefined)

  /** Units that this instance may still admit by itself. */
  const allowanceLeft = (count: Count): number => {
    const size = instances()
    const known = lastKnownOf(count)
    if (whenStoreIsDown === 'refuse' || size === undefined || !known) return 0
    return Math.max(0, allowanceOf(count.limit, known.used, size) - (count.admitted - known.admitted))
  }

  const refuse = (count: Count, units: number, waiter: Waiter): void => {
    const known = lastKnownOf(count)
    const remaining = allowanceLeft(count)
    if (known && units === 0) waiter(undefined, { allowed: true, remaining })
    else if (known && known.used > count.limit - units) waiter(undefined, { allowed: false, remaining })
    else waiter(new StoreError('the store is away and the local allowance of this key is spent'))
  }

  const stopCounting = (reason: string, next: 'away' | 'reconciling'): void => {
    if (status.state === 'counting') {
      latestStartBefore = latestStart()
      observer.stopped(reason)
    }
    status.state = next
  }
  /** Everything has to be reported again. */
  const onLoss = (): void => {
    status.isReported = false
    losses += 1
    unread = undefined
    readings = new WeakMap()
  }
  const goAway = (error: unknown): void => {
    stopCounting(messageOf(error), 'away')
    onLoss()
    flushSoon()
  }
  const resume = (): void => {
    if (status.state !== 'counting') observer.resumed(status.reconciled)
    status.state = 'counting'
    status.reconciled = 0
    if (whenStoreIsDown === 'share' && instances() !== 1) {
      status.readSince = losses
      unread = counts()
    }
    flushSoon()
  }

  /** Reports counts, and takes what the store says as their last known count. */
  const read = async (part: readonly Count[]): Promise<void> => {
    const grants = await commitWithRetry(part.map(reportOf))
    part.forEach((count, i) => {
      const used = grants[i]?.used
      if (used === undefined) return
      count.lastKnown = { used, admitted: count.confirmed }
      count.knownSince = status.readSince
    })
  }

  /** Takes counts in steps, each of one window and in its turn, and leaves the turn of the event loop after each. */
  const inSteps = async (
    all: Iterator<Count | undefined>,
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
        if (value && isWanted(value)) part.push(value)
      }
      for (const ofWindow of Map.groupBy(part, ({ window }) => window).values())
        await inTurn(async () => (mayGoOn() ? step(ofWindow) : undefined))
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
    await inSteps(counts(), report, { isWanted: isUnconfirmed })
    await inSteps(counts(), report)
    return isLost
  }

  /** Reads the counts that others may have changed: after a loss, and once a second where no messages of them arrive. */
  const readOthers = async (): Promise<void> => {
    const rest = unread
    const before = losses
    const gently = { mayGoOn: () => losses === before, pauseMs: pauseBetweenReadsMs }
    if (rest) {
      await inSteps(rest, read, gently)
      if (unread === rest) unread = undefined
    } else if (!store.usageMessagesArrive() && whenStoreIsDown === 'share' && instances() !== 1) {
      if (now() - readAt < readEveryMs) return
      readAt = now()
      await inSteps(counts(), read, gently)
    }
  }

  const probeOnce = async (): Promise<void> => {
    try {
      if (status.isReported && status.state === 'counting') return await readOthers()
      if (status.isReported) {
        if (!isStillToCome(clock, reconciledAt, reconcileForMs)) resume()
        return
      }
      const before = losses
      const isLost = await reportAll()
      if (losses !== before) return
      // With `refuse` nothing is admitted locally, so there is nothing to wait for unless the store lost counts.
      if (whenStoreIsDown === 'refuse' && !isLost) {
        status.isReported = true
        resume()
        return
      }
      stopCounting('the store lost its counts', 'reconciling')
      flushSoon()
      // What was admitted locally until now.
      await inSteps(counts(), reportPart, { isWanted: isUnconfirmed })
      if (losses !== before) return
      status.isReported = true
      reconciledAt = clock.now() + reconcileForMs
    } catch (error) {
      goAway(error)
    }
  }
  /** Reports all counts after a loss, or reads what others counted where no messages arrive. */
  const probe = (): Promise<void> => {
    probing ??= probeOnce().finally(() => {
      probing = undefined
    })
    return probing
  }

  const admitFromAllowance = (count: Count, units: number, waiter: Waiter): void => {
    const left = allowanceLeft(count)
    if (left < Math.max(1, units)) {
      refuse(count, units, waiter)
      return
    }
    count.lastKnown = lastKnownOf(count)
    count.knownSince = status.readSince
    count.admitted += units
    waiter(undefined, { allowed: true, remaining: left - units })
  }
  /** Once in an outage: other processes may have counted since this one last did. */
  const readNow = (count: Count): Promise<void> => {
    const reading = store.usedOn(count.keyId, [count.window.name]).then(
      ([used = 0]) => {
        count.lastKnown = { used, admitted: count.confirmed }
        count.knownSince = status.readSince
      },
      () => {},
    )
    readings.set(count, reading)
    return reading
  }

  return {
    allowanceLeft,
    /** Refuses a request by what is known; rejects with StoreError where that does not tell. */
    refuse,
    admitLocally: (count: Count, units: number, waiter: Waiter): void => {
      if (!isReadWhenAway) admitFromAllowance(count, units, waiter)
      else void (readings.get(count) ?? readNow(count)).then(() => admitFromAllowance(count, units, waiter))
    },
    /** The store did not take a batch. */
    goAway,
    // While this instance reconciles, it takes no more than its allowances. Units that others have not reported yet come out of
    // theirs, so the sum stays within the limit.
    readUnknown: async (part: readonly { readonly count: Count }[]): Promise<void> => {
      const unknown = part.flatMap(({ count }) => (lastKnownOf(count) ? [] : [count]))
      if (unknown.length > 0) await read(unknown)
    },
    /** Whether the store answers, so that a batch is worth another try. */
    storeAnswers: async ([first]: readonly BatchEntry[]): Promise<boolean> => {
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
    },
    /** Another instance published the store's count. */
    onMessage: (count: Count, used: number): void => {
      // In any state: a batch of another instance that was under way when messages were lost may be counted afterwards. Units of
      // this instance are in it as well, so an allowance may be smaller than it could be, never larger.
      if (count.lastKnown && used > count.lastKnown.used) count.lastKnown.used = used
    },
    /** Messages of other instances may have been lost, and the store may have lost counts. */
    onMessagesLost: (): void => {
      if (status.state === 'away') return
      // Other instances may be admitting locally.
      if (whenStoreIsDown === 'share')
        stopCounting('the subscription to the counts of other gateways was lost', 'reconciling')
      onLoss()
      // Requests may wait for it.
      if (whenStoreIsDown === 'refuse' && status.state === 'counting') void probe()
    },
    probe,
    /** Reports what the store has not confirmed, whatever the state; never rejects. */
    report: () => inSteps(counts(), reportPart, { isWanted: isUnconfirmed }).catch(() => {}),
  }
}

export const isUnconfirmed = ({ admitted, confirmed }: Count): boolean => admitted !== confirmed

/** An entry that requests no units. */
const reportOf = (count: Count): BatchEntry => {
  const { limit } = count
  return { count, limit, unitsEach: 0, requested: 0, next: undefined }
}

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
