// What one gateway knows of the spending by itself: what the store said last, and what was spent here since without its
// knowledge. From both follow the gateway's share while the store is away, and what has to be handed in afterwards.

import type { LimitedWindow } from './spending-windows.ts'
import { createTally, type WindowAmount } from './tally.ts'

/** `full`: the windows that have no room for another unit. Amounts are whole thousandths of a weight. */
export type Grant = { readonly granted: number; readonly full: readonly LimitedWindow[] }

/** What the store has not heard, and what it held before that at the least. */
export type HandedIn = WindowAmount & { readonly atLeast: number }

export type LocalShare = {
  /** What the store holds at this instant; null where it can't be read, and what was seen before stays. */
  learn(windows: readonly LimitedWindow[], used: readonly (number | null)[], now: number): void
  /** Changes that the store took. */
  told(changes: readonly WindowAmount[]): void
  /** Changes that it does not know of. */
  owe(changes: readonly WindowAmount[]): void
  /** Changes that it may have taken all the same: nothing of them is given back a second time. */
  oweUnsure(changes: readonly WindowAmount[]): void
  isOwing(): boolean
  /** All that is known of windows that still matter; nothing is owed any longer. */
  handIn(now: number): HandedIn[]
  /** Grants what fits into the share of one among `sharers`, and owes it. */
  grant(windows: readonly LimitedWindow[], wanted: number, unit: number, sharers: number): Grant
  used(window: LimitedWindow): number
}

export const createLocalShare = (): LocalShare => {
  const seen = createTally()
  const owed = createTally()
  const owe = (changes: readonly WindowAmount[]): void => {
    for (const { window, by } of changes) owed.add(window, by)
  }
  return {
    learn: (windows, used, now) => {
      seen.forget(now)
      windows.forEach((window, i) => {
        seen.set(window, used[i] ?? seen.get(window))
      })
    },
    told: changes => {
      for (const { window, by } of changes) seen.add(window, by)
    },
    owe,
    oweUnsure: changes => owe(changes.map(({ window, by }) => ({ window, by: Math.max(0, by) }))),
    isOwing: () => owed.all().length > 0,
    handIn: now => {
      seen.forget(now)
      owed.forget(now)
      const windows = new Map([...seen.all(), ...owed.all()].map(({ window }) => [window.name, window]))
      const all = [...windows.values()].map(window => ({
        window,
        by: owed.get(window),
        atLeast: Math.max(0, seen.get(window)),
      }))
      owed.clear()
      return all
    },
    grant: (windows, wanted, unit, sharers) => {
      // A window that was never seen counts as empty: it began after the store was last heard.
      const roomIn = (window: LimitedWindow) =>
        Math.max(0, window.limit - seen.get(window)) / sharers - owed.get(window)
      const room = Math.min(wanted, ...windows.map(roomIn))
      const granted = Math.max(0, Math.floor(room / unit)) * unit
      owe(windows.map(window => ({ window, by: granted })))
      return { granted, full: windows.filter(window => roomIn(window) < unit) }
    },
    used: window => Math.max(0, seen.get(window) + owed.get(window)),
  }
}
