// The spending as one gateway knows it: the store's last report, and the spending here since, which is not committed yet. Computes
// from both the allowance while the store is away, and the changes to flush afterwards. The spending of others meanwhile is
// unknown, so the allowance is a part that the store grants to nobody.

import { roomOf, scaled, unshared } from '../stores/fair-share.ts'
import type { SpendingClaim } from '../stores/store.ts'
import { createConsumerCounters } from './consumer-counters.ts'
import type { LimitedWindow } from './spending-windows.ts'
import { createWindowCounters, type WindowAmount } from './window-counters.ts'

/**
 * `full`: the windows that have no room for another unit; `claims`: the part of each claim, and the windows where its share
 * has none. Amounts are whole thousandths of a weight.
 */
export type Granted = {
  readonly granted: number
  readonly full: readonly LimitedWindow[]
  readonly claims: readonly { readonly granted: number; readonly heldIn: readonly LimitedWindow[] }[]
}

/** A change that the store does not have yet, and the least that the store held before it. */
export type PendingChange = WindowAmount & { readonly atLeast: number }

export type LocalAllowance = {
  /** Records what the store holds. A count that is missing or could not be read: the last known one stays. */
  recordStored(
    windows: readonly LimitedWindow[],
    used: readonly (number | null | undefined)[],
    now: number,
  ): void
  /** Records changes that the store has applied. */
  commit(changes: readonly WindowAmount[]): void
  /** Records changes that the store does not have. */
  addPending(changes: readonly WindowAmount[]): void
  /** Records changes that the store may have applied: amounts given back are dropped, so that none counts twice. */
  addUncertain(changes: readonly WindowAmount[]): void
  hasPending(): boolean
  /** Whether anything is granted locally in windows that still matter: another part of theirs is used up. */
  hasGranted(now: number): boolean
  /**
   * All that is known of windows that still matter, to be written to the store now. It stays spent here until `endFlush`:
   * one flush at a time.
   */
  beginFlush(now: number): PendingChange[]
  /** The store has applied the changes, or may not have: then they are pending again. */
  endFlush(changes: readonly PendingChange[], outcome: 'applied' | 'uncertain'): void
  /**
   * Grants what fits into the part of one gateway in what is set aside, over all outages of a window, and adds it to the
   * pending changes. Without anything aside nobody else spends, and what is left is granted.
   * @param sharers how many gateways share what is set aside
   */
  admitLocally(
    windows: readonly LimitedWindow[],
    wanted: number,
    claims: readonly SpendingClaim[],
    unit: number,
    sharers: number,
  ): Granted
  /** Corrects what was granted locally, once it is known what a request cost. */
  correctLocal(changes: readonly WindowAmount[]): void
  used(window: LimitedWindow): number
}

export const createLocalAllowance = (): LocalAllowance => {
  const stored = createWindowCounters()
  const pending = createWindowCounters()
  /** The pending changes of the flush that is under way. */
  const inFlight = createWindowCounters()
  // Granted without the store, also what the store has learned since: a second outage in a window grants no second part.
  const grantedLocally = createWindowCounters()
  // The part of each consumer; the store never learns it.
  const consumers = createConsumerCounters()
  const expire = (now: number): void => {
    for (const counters of [stored, grantedLocally, consumers]) counters.expire(now)
  }
  const uncommitted = (window: LimitedWindow): number => pending.get(window) + inFlight.get(window)
  const used = (window: LimitedWindow): number => Math.max(0, stored.get(window) + uncommitted(window))
  const addPending = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) pending.add(window, by)
  }
  const commit = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) stored.add(window, by)
  }
  const addUncertain = (changes: readonly WindowAmount[]): void =>
    addPending(changes.map(({ window, by }) => ({ window, by: Math.max(0, by) })))

  return {
    recordStored: (windows, counts, now) => {
      expire(now)
      windows.forEach((window, i) => {
        stored.set(window, counts[i] ?? stored.get(window))
      })
    },
    commit,
    addPending,
    addUncertain,
    // Changes of a flush under way count: the store must have them before it is read.
    hasPending: () => pending.all().length + inFlight.all().length > 0,
    hasGranted: now => {
      expire(now)
      return grantedLocally.all().length > 0
    },
    beginFlush: now => {
      expire(now)
      pending.expire(now)
      const windows = new Map([...stored.all(), ...pending.all()].map(({ window }) => [window.name, window]))
      const all = [...windows.values()].map(window => ({
        window,
        by: pending.get(window),
        atLeast: Math.max(0, stored.get(window)),
      }))
      for (const { window, by } of pending.all()) inFlight.add(window, by)
      pending.clear()
      return all
    },
    endFlush: (changes, outcome) => {
      inFlight.clear()
      if (outcome === 'applied') commit(changes)
      else addUncertain(changes)
    },
    admitLocally: (windows, wanted, claims, unit, sharers) => {
      const spentIn = (window: LimitedWindow): number =>
        window.aside === undefined ? used(window) : grantedLocally.get(window)
      const roomIn = (window: LimitedWindow): number => {
        const left = window.limit + (window.aside ?? 0) - used(window)
        return window.aside === undefined ? left : Math.min(left, window.aside / sharers - spentIn(window))
      }
      const grantOf = (amount: number, rooms: readonly number[]) =>
        Math.max(0, Math.floor(Math.min(amount, ...rooms) / unit)) * unit
      const add = (by: number): void => {
        for (const window of windows) {
          pending.add(window, by)
          grantedLocally.add(window, by)
        }
      }
      const forNobody = grantOf(wanted, windows.map(roomIn))
      add(forNobody)
      for (const { consumer } of claims) for (const window of windows) consumers.add(window, consumer, 0)
      const granted = claims.map(({ consumer, wanted: amount }) => {
        const rooms = windows.map(window => {
          const limit = roomIn(window) + spentIn(window)
          const spent = { limit, used: spentIn(window), ...consumers.of(window, consumer) }
          const shares = scaled(window.shares ?? unshared(window.limit), limit / window.limit)
          // One cell is little, however small the part.
          const little = shares.little > 0 ? Math.max(unit, shares.little) : 0
          return roomOf(spent, { ...shares, little })
        })
        const part = grantOf(amount, rooms)
        add(part)
        for (const window of windows) consumers.add(window, consumer, part)
        // Where nobody has room it is no matter of shares.
        const isHeld = (window: LimitedWindow, i: number) =>
          (rooms[i] ?? 0) - part < unit && roomIn(window) >= unit
        return { granted: part, heldIn: windows.filter(isHeld) }
      })
      return {
        granted: granted.reduce((sum, claim) => sum + claim.granted, forNobody),
        full: windows.filter(window => roomIn(window) < unit),
        claims: granted,
      }
    },
    correctLocal: changes => {
      for (const { window, by } of changes) grantedLocally.add(window, by)
    },
    used,
  }
}
