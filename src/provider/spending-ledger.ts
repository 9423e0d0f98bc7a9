// Who may spend what, over everyone who shares the store. While the store is away a gateway spends its own share of what
// no other can have been granted, and hands in what it spent before it asks the store again. What the share is, and what is owed, is the local share's.

import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { longestClosureMs } from '../stores/records.ts'
import type { SpendingStore } from '../stores/store.ts'
import { createLocalShare, type Grant, type HandedIn } from './local-share.ts'
import { type BudgetLimits, type LimitedWindow, milliAllowed } from './spending-windows.ts'
import type { WindowAmount } from './tally.ts'

/** Hears once when the store can't be asked, with the reason, and once when it can again. */
export type BudgetObserver = { storeAway(reason: string): void; storeBack(): void }

export type LedgerOptions = {
  readonly provider: string
  readonly limits: BudgetLimits
  /** How far into the future a request is charged that is granted now. */
  readonly chargedAheadMs: number
  /** How many gateways share the account; undefined while that is not known. */
  readonly instances: () => number | undefined
}

export type LedgerParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  readonly observer: BudgetObserver
}

/** No method rejects when the store is away. Amounts are whole thousandths of a weight. */
export type SpendingLedger = {
  reserve(windows: readonly LimitedWindow[], wanted: number, unit: number): Promise<Grant>
  settle(changes: readonly WindowAmount[]): Promise<void>
  /** Nobody asks before this instant: known here at once, and to the others when the promise resolves. */
  close(until: number): Promise<void>
  /** The same for this process alone. */
  closeHere(until: number): void
  /** Asks the store what the windows hold, and hands in what it has not heard yet. */
  look(windows: readonly LimitedWindow[]): Promise<void>
  /** What a window holds, as last seen and with what was spent here since. */
  used(window: LimitedWindow): number
  /** Null when open. */
  closedUntil(): number | null
  /** False while the store is away. */
  shared(): boolean
}

export const createLedger = (
  { provider, limits, chargedAheadMs, instances }: LedgerOptions,
  { store, clock, observer }: LedgerParts,
): SpendingLedger => {
  const perMinute = limits.minute === null ? undefined : milliAllowed(limits.minute)
  const local = createLocalShare({ perMinute, chargedAheadMs })
  let closed = 0
  let closureOwed = false
  // How many shared the account when the store was lost: gateways that are out of sight with it spend their shares too.
  let away: { readonly instances: number | undefined; readonly since: number } | undefined
  let reconciling: Promise<void> | undefined

  const isClosed = (): boolean => closed > clock.now()
  const closeHere = (until: number): void => {
    closed = Math.max(closed, until)
  }
  const lost = (cause: unknown): void => {
    if (away) return
    away = { instances: instances(), since: clock.now() }
    observer.storeAway(messageOf(cause))
  }
  const learn = (
    windows: readonly LimitedWindow[],
    used: readonly (number | null)[],
    until: number | null,
    askedAt: number,
  ): void => {
    local.learn(windows, used, askedAt)
    // The provider has no longer window: nobody can have meant that.
    if (until !== null && until <= clock.now() + longestClosureMs) closeHere(until)
  }
  const tell = async (changes: readonly (WindowAmount | HandedIn)[]): Promise<void> => {
    await store.settle({
      provider,
      changes: changes.map(({ window: { name, keepUntil }, ...change }) => ({ name, keepUntil, ...change })),
    })
  }

  const reconcile = async (windows: readonly LimitedWindow[]): Promise<void> => {
    const changes = local.isOwing() || away ? local.handIn(clock.now()) : []
    try {
      if (closureOwed) await store.closeUntil(provider, closed)
      closureOwed = false
      if (changes.length > 0) await tell(changes)
      local.handedIn(changes, 'taken')
    } catch (cause) {
      local.handedIn(changes, 'unsure')
      return lost(cause)
    }
    try {
      const names = windows.map(({ name }) => name)
      const askedAt = clock.now()
      const { used, closedUntil } = await store.spending(provider, names)
      learn(windows, used, closedUntil, askedAt)
    } catch (cause) {
      return lost(cause)
    }
    if (away) observer.storeBack()
    away = undefined
  }
  // One at a time, so that what is owed is handed in once.
  const reconciled = (windows: readonly LimitedWindow[]): Promise<void> => {
    reconciling ??= reconcile(windows).finally(() => {
      reconciling = undefined
    })
    return reconciling
  }
  const reserveHere = (windows: readonly LimitedWindow[], wanted: number, unit: number): Grant => {
    const now = instances()
    // Who does not know how many others spend their shares has none.
    if (away?.instances === undefined || now === undefined) return { granted: 0, full: [] }
    const sharers = Math.max(1, away.instances, now)
    const isFresh = clock.now() <= away.since + chargedAheadMs
    return local.grant(windows, isClosed() || isFresh ? 0 : wanted, unit, { sharers, since: away.since })
  }

  return {
    reserve: async (windows, wanted, unit) => {
      if (away || closureOwed || local.isOwing()) await reconciled(windows)
      if (away) return reserveHere(windows, wanted, unit)
      try {
        const asked = windows.map(window => {
          const { name, limit, keepUntil } = window
          return { name, limit, keepUntil, known: local.used(window) }
        })
        const now = clock.now()
        const reply = await store.reserve({ provider, windows: asked, wanted, unit, now })
        learn(windows, reply.used, reply.closedUntil, now)
        const full = windows.filter((window, i) => window.limit - (reply.used[i] ?? 0) < unit)
        return { granted: reply.granted, full }
      } catch (cause) {
        lost(cause)
        return reserveHere(windows, wanted, unit)
      }
    },
    settle: async changes => {
      if (away) return local.owe(changes)
      try {
        await tell(changes)
        local.told(changes)
      } catch (cause) {
        lost(cause)
        local.oweUnsure(changes)
      }
    },
    closeHere,
    close: async until => {
      closeHere(until)
      try {
        await store.closeUntil(provider, until)
      } catch (cause) {
        closureOwed = true
        lost(cause)
      }
    },
    look: reconciled,
    used: window => local.used(window),
    closedUntil: () => (isClosed() ? closed : null),
    shared: () => away === undefined,
  }
}
