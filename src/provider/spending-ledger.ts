// Who may spend what, over everyone who shares the store. While the store is away a gateway has its share of what was
// left when it last looked, counts for itself, and hands in what it spent before it asks the store again. Where it is
// unsure what the store has heard, it takes the larger amount to be spent.

import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { SpendingStore } from '../stores/store.ts'
import type { LimitedWindow } from './spending-windows.ts'
import { createTally } from './tally.ts'

/** Hears once when the store can't be asked, with the reason, and once when it can again. */
export type BudgetObserver = { storeAway(reason: string): void; storeBack(): void }

export type LedgerOptions = {
  readonly provider: string
  /** How many gateways share the account; at least 1. */
  readonly instances: () => number
}

export type LedgerParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  readonly observer: BudgetObserver
}

/** `full`: the windows that have no room for another unit. Amounts are whole thousandths of a weight. */
export type Grant = { readonly granted: number; readonly full: readonly LimitedWindow[] }
export type Change = { readonly window: LimitedWindow; readonly by: number }

/** No method rejects when the store is away. */
export type SpendingLedger = {
  reserve(windows: readonly LimitedWindow[], wanted: number, unit: number): Promise<Grant>
  settle(changes: readonly Change[]): Promise<void>
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
  { provider, instances }: LedgerOptions,
  { store, clock, observer }: LedgerParts,
): SpendingLedger => {
  const seen = createTally()
  // Spent or given back here without the store's knowledge.
  const owed = createTally()
  let closed = 0
  let closureOwed = false
  let away: { readonly instances: number } | undefined
  let reconciling: Promise<void> | undefined

  const lost = (cause: unknown): void => {
    if (away) return
    away = { instances: instances() }
    observer.storeAway(messageOf(cause))
  }
  const learn = (windows: readonly LimitedWindow[], used: readonly number[], until: number | null): void => {
    windows.forEach((window, i) => {
      seen.set(window, used[i] ?? 0)
    })
    closed = Math.max(closed, until ?? 0)
    seen.forget(clock.now())
  }

  const reconcile = async (windows: readonly LimitedWindow[]): Promise<void> => {
    owed.forget(clock.now())
    const changes = owed.takeAll()
    try {
      if (closureOwed) await store.closeUntil(provider, closed)
      closureOwed = false
      await tell(changes)
    } catch (cause) {
      // It may have been heard all the same, so nothing is given back a second time.
      for (const { window, by } of changes) owed.add(window, Math.max(0, by))
      return lost(cause)
    }
    try {
      const { used, closedUntil } = await store.spending(
        provider,
        windows.map(({ name }) => name),
      )
      learn(windows, used, closedUntil)
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
  const tell = async (changes: readonly Change[]): Promise<void> => {
    const given = changes.filter(({ by }) => by !== 0)
    if (given.length === 0) return
    await store.settle({
      provider,
      changes: given.map(({ window: { name, keepUntil }, by }) => ({ name, by, keepUntil })),
    })
    for (const { window, by } of given) seen.add(window, by)
  }

  // A window that was never seen counts as empty: it began after the store was last heard.
  const roomHere = (window: LimitedWindow): number => {
    const sharers = Math.max(1, instances(), away?.instances ?? 1)
    return Math.max(0, window.limit - seen.get(window)) / sharers - owed.get(window)
  }
  const reserveHere = (windows: readonly LimitedWindow[], wanted: number, unit: number): Grant => {
    const room = Math.min(wanted, ...windows.map(roomHere))
    const granted = isClosed() ? 0 : Math.max(0, Math.floor(room / unit)) * unit
    for (const window of windows) owed.add(window, granted)
    return { granted, full: windows.filter(window => roomHere(window) < unit) }
  }
  const closeHere = (until: number): void => {
    closed = Math.max(closed, until)
  }
  const isClosed = (): boolean => closed > clock.now()

  return {
    reserve: async (windows, wanted, unit) => {
      if (away || closureOwed || owed.size() > 0) await reconciled(windows)
      if (away) return reserveHere(windows, wanted, unit)
      const now = clock.now()
      try {
        const reply = await store.reserve({
          provider,
          windows: windows.map(({ name, limit, keepUntil }) => ({ name, limit, keepUntil })),
          wanted,
          unit,
          now,
        })
        learn(windows, reply.used, reply.closedUntil)
        const full = windows.filter((window, i) => window.limit - (reply.used[i] ?? 0) < unit)
        return { granted: reply.granted, full }
      } catch (cause) {
        lost(cause)
        return reserveHere(windows, wanted, unit)
      }
    },
    settle: async changes => {
      if (!away) {
        try {
          return await tell(changes)
        } catch (cause) {
          lost(cause)
          for (const { window, by } of changes) owed.add(window, Math.max(0, by))
          return
        }
      }
      for (const { window, by } of changes) owed.add(window, by)
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
    look: windows => reconciled(windows),
    used: window => Math.max(0, seen.get(window) + owed.get(window)),
    closedUntil: () => (isClosed() ? closed : null),
    shared: () => away === undefined,
  }
}
