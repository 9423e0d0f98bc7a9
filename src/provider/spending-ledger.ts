// Reserves and settles weight of one account in the store that all gateways of the account share. While the store is away a gateway spends
// its part of what is set aside; once the store is back it flushes what it spent before it reads the store again. How large that
// part is, and what is pending, is computed in local-allowance.ts. Longer than 300 lines, because leaving the store, coming back to it
// and reporting what it lost share one state.

import { minuteMs, utcDayMs } from '../calendar.ts'
import { type Clock, clockToleranceMs } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { longestClosureMs } from '../stores/records.ts'
import type { SpendingClaim, SpendingStore } from '../stores/store.ts'
import { createLocalAllowance, type Granted, type PendingChange } from './local-allowance.ts'
import type { LimitedWindow } from './spending-windows.ts'
import type { WindowAmount } from './window-counters.ts'

/** Called once when the store is away, with the reason, and once when it is back. */
export type BudgetObserver = {
  storeAway(reason: string): void
  storeBack(): void
  /** An operator reopened the budget. @param closedUntil the closure here that this ended; null when it was open */
  reopened(closedUntil: number | null): void
}

export type LedgerOptions = {
  /** A short name of the account at the provider. */
  readonly provider: string
  /** How many gateways share the account; undefined while that is not known. */
  readonly instances: () => number | undefined
}

export type LedgerParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  readonly observer: BudgetObserver
}

/** A correction, with the parts of it that are the consumers'. */
type SettledChange = WindowAmount & {
  readonly consumers?: readonly { readonly consumer: string; readonly by: number }[]
}

/** No method rejects when the store is away. Amounts are whole thousandths of a weight. */
export type SpendingLedger = {
  /** @param wanted for no consumer in particular; after that the claims, in their order */
  reserve(
    windows: readonly LimitedWindow[],
    wanted: number,
    claims: readonly SpendingClaim[],
    unit: number,
  ): Promise<Granted & { readonly isLocal: boolean }>
  /** @param isLocal whether the grant that is corrected was made without the store */
  settle(changes: readonly SettledChange[], isLocal: boolean): Promise<void>
  /**
   * No request before this instant: takes effect here at once, and for the others when the promise resolves. Has no effect
   * when an operator reopened the budget and this process does not know it yet.
   * @param reason for operators
   */
  close(until: number, reason: string): Promise<void>
  /** Flushes pending changes to the store, then reads what it holds for the windows. */
  reconcile(windows: readonly LimitedWindow[]): Promise<void>
  /** The count of a window as last read from the store, plus what was spent here since. */
  used(window: LimitedWindow): number
  /** Null when open. */
  closedUntil(): number | null
  /** The reason of the closure; null when open, and where no reason is known. */
  closedBecause(): string | null
  /** When this process noticed the last reopening by an operator; null without one. */
  reopenedHereAt(): number | null
  /** False while the store is away. */
  shared(): boolean
  /** When the store was back last after it had been away, ms since the epoch; 0 if never. */
  backAt(): number
  /** Whether the store lacks something of what is known here. */
  hasPending(): boolean
  /** Whether the store lacks nothing, and nothing was granted without it in windows that still matter. */
  isSettled(): boolean
  /** Waits for the steps in the store that are under way. Failures of later ones are no outage: the store is being closed. */
  end(): Promise<void>
}

// Longer than a command of the store can take: a reply that is later has not been overtaken.
const overtakenForMs = minuteMs

export const createLedger = (
  options: LedgerOptions,
  { store, clock, observer }: LedgerParts,
): SpendingLedger => {
  const { provider, instances } = options
  const local = createLocalAllowance()
  let closed = 0
  /** Why it is closed; null where nobody gave a reason, undefined until the store was asked for it. */
  let closedBecause: string | null | undefined
  /** The reason of a closure that the store does not have yet. */
  let pendingReason: string | undefined
  // The last reopening as the store returned it; undefined before its first reply.
  let reopenedAt: number | undefined
  let reopenedHereAt: number | null = null
  // The last closure of this gateway: when, and until when.
  let closedHere = { at: 0, until: 0 }
  // Those that went out of sight, one by one or with the store, may still spend their parts: the most of a day count.
  let sharers = { most: 1, at: 0 }
  let isAway = false
  let wasSizeKnown = false
  let backAt = 0
  let reconciling: Promise<void> | undefined
  const underWay = new Set<Promise<unknown>>()
  let hasEnded = false

  const tracked =
    <Given extends unknown[], Value>(step: (...given: Given) => Promise<Value>) =>
    (...given: Given): Promise<Value> => {
      const ended = step(...given).finally(() => underWay.delete(ended))
      underWay.add(ended)
      return ended
    }
  const hasPending = (): boolean => isAway || pendingReason !== undefined || local.hasPending()
  const isClosed = (): boolean => closed > clock.now()
  /** @returns false for a reply from before a reopening that is known here */
  const noteReopening = (at: number): boolean => {
    const now = clock.now()
    const until = at > now + longestClosureMs ? 0 : at
    // A store that lost the reopening returns an earlier one, as a reply does that was overtaken; that one is not so late.
    if (reopenedAt !== undefined && until < reopenedAt && now < reopenedAt + overtakenForMs) return false
    if (reopenedAt !== undefined && until > reopenedAt) {
      const before = isClosed() ? closed : null
      closed = 0
      closedBecause = undefined
      pendingReason = undefined
      reopenedHereAt = now
      observer.reopened(before)
    }
    reopenedAt = until
    return true
  }
  /** Undefined while that is not known. */
  const sharersNow = (): number | undefined => {
    const [known, now] = [instances(), clock.now()]
    if (known === undefined) return undefined
    if (known >= sharers.most || now - sharers.at > utcDayMs) sharers = { most: known, at: now }
    return sharers.most
  }
  const storeLost = (cause: unknown): void => {
    if (isAway) return
    isAway = true
    wasSizeKnown = sharersNow() !== undefined
    if (!hasEnded) observer.storeAway(messageOf(cause))
  }
  const recordStored = (
    windows: readonly LimitedWindow[],
    { used, closedUntil, reopenedAt: at }: Awaited<ReturnType<SpendingStore['spending']>>,
    readAt: number,
  ): void => {
    local.recordStored(windows, used, readAt)
    if (!noteReopening(at) || closedUntil === null) return
    // The provider has no longer window: ignore a closure that can't be right.
    if (closedUntil <= closed || closedUntil > clock.now() + longestClosureMs) return
    closed = closedUntil
    closedBecause = undefined
  }
  // Another gateway closed it. One read for each closure: the replies to reservations do without the reason.
  const readReason = async (): Promise<void> => {
    if (!isClosed() || closedBecause !== undefined) return
    const until = closed
    const { reason } = await store.closure(provider)
    if (closed === until) closedBecause = reason
  }
  const storeClosure = async (reason: string): Promise<void> => {
    const closing = { now: clock.now(), reopenedAt: reopenedAt ?? null, reason }
    noteReopening(await store.closeUntil(provider, closed, closing))
  }
  // The end of a closure is by the clock of the gateway that closed: one that was set back since would prolong it.
  const reopenIfSetBack = async (): Promise<void> => {
    const now = clock.now()
    if (closedHere.at <= now + clockToleranceMs || closedHere.until !== closed) return
    noteReopening((await store.reopen(provider, now)).reopenedAt)
    closedHere = { at: 0, until: 0 }
  }
  const apply = async (changes: readonly (SettledChange | PendingChange)[]): Promise<void> => {
    await store.settle({
      provider,
      changes: changes.map(({ window: { name, keepUntil }, ...change }) => ({ name, keepUntil, ...change })),
    })
  }

  /** Writes again what the store has lost of what is known here. */
  const reportLost = async (
    windows: readonly LimitedWindow[],
    { used, closedUntil }: Awaited<ReturnType<SpendingStore['spending']>>,
  ): Promise<void> => {
    const lost = windows
      .filter((window, i) => used[i] == null && local.used(window) > 0)
      .map(window => ({ window, by: 0, atLeast: local.used(window) }))
    if (lost.length > 0) await apply(lost)
    if (isClosed() && (closedUntil ?? 0) < closed) await storeClosure(closedBecause ?? '')
  }

  const flushAndRead = async (windows: readonly LimitedWindow[]): Promise<void> => {
    sharersNow()
    const changes = local.hasPending() || isAway ? local.beginFlush(clock.now()) : []
    try {
      await reopenIfSetBack()
      if (pendingReason !== undefined) await storeClosure(pendingReason)
      pendingReason = undefined
      if (changes.length > 0) await apply(changes)
      local.endFlush(changes, 'applied')
    } catch (cause) {
      local.endFlush(changes, 'uncertain')
      return storeLost(cause)
    }
    try {
      const names = windows.map(({ name }) => name)
      const readAt = clock.now()
      const reply = await store.spending(provider, names)
      recordStored(windows, reply, readAt)
      await readReason()
      await reportLost(windows, reply)
    } catch (cause) {
      return storeLost(cause)
    }
    if (!isAway) return
    isAway = false
    backAt = clock.now()
    observer.storeBack()
  }
  // One at a time, so that a pending change is flushed once.
  const reconcileOnce = (windows: readonly LimitedWindow[]): Promise<void> => {
    reconciling ??= flushAndRead(windows).finally(() => {
      reconciling = undefined
    })
    return reconciling
  }
  const reserveLocally = (
    windows: readonly LimitedWindow[],
    wanted: number,
    claims: readonly SpendingClaim[],
    unit: number,
  ): Granted => {
    const count = sharersNow()
    // Without the number of sharers nobody knows its part, and what is learnt of them later may be too few.
    if (count === undefined || !wasSizeKnown || isClosed())
      return { granted: 0, full: [], claims: claims.map(() => ({ granted: 0, heldIn: [] })) }
    return local.admitLocally(windows, wanted, claims, unit, count)
  }

  // It may come back with an earlier state before anything here has failed.
  const unsubscribe = store.onLost(reason => storeLost(new Error(reason)))

  return {
    reserve: tracked(async (windows, wanted, claims, unit) => {
      if (isAway || pendingReason !== undefined || local.hasPending()) await reconcileOnce(windows)
      if (isAway) return { ...reserveLocally(windows, wanted, claims, unit), isLocal: true }
      try {
        const bounds = windows.map(window => {
          const { name, limit, keepUntil, shares } = window
          return { name, limit, keepUntil, shares, known: local.used(window) }
        })
        const now = clock.now()
        const reply = await store.reserve({ provider, windows: bounds, wanted, claims, unit, now })
        recordStored(windows, reply, now)
        await readReason()
        const full = windows.filter((window, i) => window.limit - (reply.used[i] ?? 0) < unit)
        const granted = reply.claims.map(({ granted: part, heldIn }) => ({
          granted: part,
          heldIn: heldIn.flatMap(i => windows[i] ?? []),
        }))
        return { granted: reply.granted, full, claims: granted, isLocal: false }
      } catch (cause) {
        storeLost(cause)
        return { ...reserveLocally(windows, wanted, claims, unit), isLocal: true }
      }
    }),
    settle: tracked(async (changes, isLocal) => {
      if (isLocal) local.correctLocal(changes)
      if (isAway) return local.addPending(changes)
      try {
        await apply(changes)
        local.commit(changes)
      } catch (cause) {
        storeLost(cause)
        local.addUncertain(changes)
      }
    }),
    close: tracked(async (until: number, reason: string) => {
      if (until > closed) {
        closedHere = { at: clock.now(), until }
        closed = until
        closedBecause = reason
      }
      try {
        await storeClosure(reason)
      } catch (cause) {
        pendingReason = reason
        storeLost(cause)
      }
    }),
    reconcile: tracked(reconcileOnce),
    used: window => local.used(window),
    closedUntil: () => (isClosed() ? closed : null),
    closedBecause: () => (isClosed() ? (closedBecause ?? null) : null),
    reopenedHereAt: () => reopenedHereAt,
    shared: () => !isAway,
    backAt: () => backAt,
    hasPending,
    isSettled: () => !hasPending() && !local.hasGranted(clock.now()),
    end: async () => {
      unsubscribe()
      await Promise.all(underWay)
      hasEnded = true
    },
  }
}
