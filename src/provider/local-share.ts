// What one gateway knows of the spending by itself: what the store said last, and what was spent here since without its
// knowledge. From both follow the gateway's share while the store is away, and what has to be handed in afterwards. What
// others took of a window after it was seen is not known, so that it counts as taken as far as it could be.

import { minuteMs } from '../calendar.ts'
import type { LimitedWindow } from './spending-windows.ts'
import { createTally, type WindowAmount } from './tally.ts'

/** `full`: the windows that have no room for another unit. Amounts are whole thousandths of a weight. */
export type Grant = { readonly granted: number; readonly full: readonly LimitedWindow[] }

/** What the store has not heard, and what it held before that at the least. */
export type HandedIn = WindowAmount & { readonly atLeast: number }

export type LocalShareOptions = {
  /** What all may take in a minute, in thousandths of a weight; undefined where that has no limit. */
  readonly perMinute: number | undefined
  /** How far into the future a request is charged that is granted now. */
  readonly chargedAheadMs: number
}

/** Without the store: how many share the account, and when this gateway noticed. */
type Outage = { readonly sharers: number; readonly since: number }

export type LocalShare = {
  /**
   * What the store held no earlier than at the instant `askedAt`; null where it can't be read, and what was seen before
   * stays.
   */
  learn(windows: readonly LimitedWindow[], used: readonly (number | null)[], askedAt: number): void
  /** Changes that the store took. */
  told(changes: readonly WindowAmount[]): void
  /** Changes that it does not know of. */
  owe(changes: readonly WindowAmount[]): void
  /** Changes that it may have taken all the same: nothing of them is given back a second time. */
  oweUnsure(changes: readonly WindowAmount[]): void
  isOwing(): boolean
  /**
   * All that is known of windows that still matter, to be handed in now. It stays spent here until it is known what
   * became of it: one at a time.
   */
  handIn(now: number): HandedIn[]
  /** The store took what was handed in, or may not have: then it is owed again. */
  handedIn(changes: readonly HandedIn[], outcome: 'taken' | 'unsure'): void
  /** Grants what fits into the share of one of those who share the account, and owes it. */
  grant(windows: readonly LimitedWindow[], wanted: number, unit: number, outage: Outage): Grant
  used(window: LimitedWindow): number
}

export const createLocalShare = ({ perMinute, chargedAheadMs }: LocalShareOptions): LocalShare => {
  const seen = createTally()
  /** Window → the instant at which what it holds was asked for last. */
  const seenAt = new Map<string, number>()
  const owed = createTally()
  /** What is on its way to the store. */
  const onItsWay = createTally()
  const unheardOf = (window: LimitedWindow): number => owed.get(window) + onItsWay.get(window)
  const leftOf = (window: LimitedWindow): number => Math.max(0, window.limit - seen.get(window))
  /** The most that others can have taken unseen of a window, before the store was lost to all. */
  const unseenIn = (window: LimitedWindow, lastCharged: number): number => {
    if (window.beginsAt > lastCharged) return 0
    if (window.span === 'minute') return leftOf(window)
    // Without a limit for the minute nothing says how fast others can spend; they are believed not to in a few seconds.
    if (perMinute === undefined) return 0
    const from = Math.max(window.beginsAt, seenAt.get(window.name) ?? window.beginsAt)
    const to = Math.min(window.endsAt - 1, lastCharged)
    return perMinute * (Math.floor(to / minuteMs) - Math.floor(from / minuteMs) + 1)
  }
  const owe = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) owed.add(window, by)
  }
  const told = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) seen.add(window, by)
  }
  // What may have been taken all the same is not given back a second time.
  const oweUnsure = (changes: readonly WindowAmount[]): void =>
    owe(changes.map(({ window, by }) => ({ window, by: Math.max(0, by) })))

  return {
    learn: (windows, used, askedAt) => {
      seen.forget(askedAt)
      seenAt.clear()
      windows.forEach((window, i) => {
        seen.set(window, used[i] ?? seen.get(window))
        if (used[i] != null) seenAt.set(window.name, askedAt)
      })
    },
    told,
    owe,
    oweUnsure,
    // Nothing is asked of a store that has not heard yet what is on its way to it.
    isOwing: () => owed.all().length + onItsWay.all().length > 0,
    handIn: now => {
      seen.forget(now)
      owed.forget(now)
      const windows = new Map([...seen.all(), ...owed.all()].map(({ window }) => [window.name, window]))
      const all = [...windows.values()].map(window => ({
        window,
        by: owed.get(window),
        atLeast: Math.max(0, seen.get(window)),
      }))
      for (const { window, by } of owed.all()) onItsWay.add(window, by)
      owed.clear()
      return all
    },
    handedIn: (changes, outcome) => {
      onItsWay.clear()
      if (outcome === 'taken') told(changes)
      else oweUnsure(changes)
    },
    grant: (windows, wanted, unit, { sharers, since }) => {
      const lastCharged = since + chargedAheadMs
      // A window that was never seen and that nobody can have been granted before counts as empty.
      const shareOf = (window: LimitedWindow, left: number) => left / sharers - unheardOf(window)
      const roomIn = (window: LimitedWindow) =>
        shareOf(window, Math.max(0, leftOf(window) - unseenIn(window, lastCharged)))
      const room = Math.min(wanted, ...windows.map(roomIn))
      const granted = Math.max(0, Math.floor(room / unit)) * unit
      owe(windows.map(window => ({ window, by: granted })))
      // Not those that are only unknown: the store may be back and know in a second.
      return { granted, full: windows.filter(window => shareOf(window, leftOf(window)) < unit) }
    },
    used: window => Math.max(0, seen.get(window) + unheardOf(window)),
  }
}
