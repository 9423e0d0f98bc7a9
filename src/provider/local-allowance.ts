// The spending as one gateway knows it: what the store last reported, and what was spent here since and is not committed
// to the store yet. Computes from both the local allowance while the store is away, and the changes to flush afterwards.
// What others spent since the last report is unknown, so the allowance assumes that they spent as much as they could.

import { minuteMs } from '../calendar.ts'
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

export type LocalAllowanceOptions = {
  /** What all gateways together may spend in a minute, in thousandths of a weight; undefined without such a limit. */
  readonly perMinute: number | undefined
  /** How far into the future a request is charged that is granted now. */
  readonly chargedAheadMs: number
}

/** An outage of the store: how many gateways share the account, and when this gateway noticed. */
type Outage = { readonly sharers: number; readonly since: number }

export type LocalAllowance = {
  /**
   * Records what the store held no earlier than at `readAt`. Null is a count that could not be read: the last known one
   * stays.
   */
  recordStored(windows: readonly LimitedWindow[], used: readonly (number | null)[], readAt: number): void
  /** Records changes that the store has applied. */
  commit(changes: readonly WindowAmount[]): void
  /** Records changes that the store does not have. */
  addPending(changes: readonly WindowAmount[]): void
  /** Records changes that the store may have applied: amounts given back are dropped, so that none counts twice. */
  addUncertain(changes: readonly WindowAmount[]): void
  hasPending(): boolean
  /**
   * All that is known of windows that still matter, to be written to the store now. It stays spent here until `endFlush`:
   * one flush at a time.
   */
  beginFlush(now: number): PendingChange[]
  /** The store has applied the changes, or may not have: then they are pending again. */
  endFlush(changes: readonly PendingChange[], outcome: 'applied' | 'uncertain'): void
  /** Grants what fits into the allowance of one gateway while the store is away, and adds it to the pending changes. */
  admitLocally(
    windows: readonly LimitedWindow[],
    wanted: number,
    claims: readonly SpendingClaim[],
    unit: number,
    outage: Outage,
  ): Granted
  used(window: LimitedWindow): number
  /** From now on; what was counted stays. */
  apply(options: LocalAllowanceOptions): void
}

export const createLocalAllowance = (options: LocalAllowanceOptions): LocalAllowance => {
  let { perMinute, chargedAheadMs } = options
  const stored = createWindowCounters()
  /** Window → when its count was last read from the store. */
  const storedAt = new Map<string, number>()
  const pending = createWindowCounters()
  /** The pending changes of the flush that is under way. */
  const inFlight = createWindowCounters()
  // What each consumer spent of the allowance; the store never learns it.
  const consumers = createConsumerCounters()
  const uncommitted = (window: LimitedWindow): number => pending.get(window) + inFlight.get(window)
  const remaining = (window: LimitedWindow): number => Math.max(0, window.limit - stored.get(window))
  /** The most that others can have spent of a window since its last report, before the store was lost to all. */
  const mostUnseen = (window: LimitedWindow, lastCharged: number): number => {
    if (window.beginsAt > lastCharged) return 0
    if (window.span === 'minute') return remaining(window)
    // Without a limit per minute nothing bounds how fast others spend; assume that a few seconds do not matter.
    if (perMinute === undefined) return 0
    const from = Math.max(window.beginsAt, storedAt.get(window.name) ?? window.beginsAt)
    const to = Math.min(window.endsAt - 1, lastCharged)
    return perMinute * (Math.floor(to / minuteMs) - Math.floor(from / minuteMs) + 1)
  }
  const addPending = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) pending.add(window, by)
  }
  const commit = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) stored.add(window, by)
  }
  const addUncertain = (changes: readonly WindowAmount[]): void =>
    addPending(changes.map(({ window, by }) => ({ window, by: Math.max(0, by) })))

  return {
    recordStored: (windows, used, readAt) => {
      stored.expire(readAt)
      consumers.expire(readAt)
      storedAt.clear()
      windows.forEach((window, i) => {
        stored.set(window, used[i] ?? stored.get(window))
        if (used[i] != null) storedAt.set(window.name, readAt)
      })
    },
    commit,
    addPending,
    addUncertain,
    // Changes of a flush under way count: the store must have them before it is read.
    hasPending: () => pending.all().length + inFlight.all().length > 0,
    beginFlush: now => {
      stored.expire(now)
      pending.expire(now)
      consumers.expire(now)
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
    admitLocally: (windows, wanted, claims, unit, { sharers, since }) => {
      const lastCharged = since + chargedAheadMs
      // A window without a report counts as empty if nothing can have been granted in it before the outage.
      const allowanceOf = (window: LimitedWindow, left: number) => left / sharers - uncommitted(window)
      const roomIn = (window: LimitedWindow) =>
        allowanceOf(window, Math.max(0, remaining(window) - mostUnseen(window, lastCharged)))
      const grantOf = (amount: number, rooms: readonly number[]) =>
        Math.max(0, Math.floor(Math.min(amount, ...rooms) / unit)) * unit
      const forNobody = grantOf(wanted, windows.map(roomIn))
      addPending(windows.map(window => ({ window, by: forNobody })))
      for (const { consumer } of claims) for (const window of windows) consumers.add(window, consumer, 0)
      const granted = claims.map(({ consumer, wanted: amount }) => {
        const rooms = windows.map(window => {
          const used = uncommitted(window)
          const limit = roomIn(window) + used
          const spent = { limit, used, ...consumers.of(window, consumer) }
          return roomOf(spent, scaled(window.shares ?? unshared(window.limit), limit / window.limit))
        })
        const part = grantOf(amount, rooms)
        addPending(windows.map(window => ({ window, by: part })))
        for (const window of windows) consumers.add(window, consumer, part)
        // Where nobody has room it is no matter of shares.
        const isHeld = (window: LimitedWindow, i: number) =>
          (rooms[i] ?? 0) - part < unit && roomIn(window) >= unit
        return { granted: part, heldIn: windows.filter(isHeld) }
      })
      return {
        granted: granted.reduce((sum, claim) => sum + claim.granted, forNobody),
        // Without the windows whose count is only unknown: the store may be back, and report it, in a second.
        full: windows.filter(window => allowanceOf(window, remaining(window)) < unit),
        claims: granted,
      }
    },
    used: window => Math.max(0, stored.get(window) + uncommitted(window)),
    apply: next => {
      ;({ perMinute, chargedAheadMs } = next)
    },
  }
}
