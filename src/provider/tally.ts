// Amounts per window, kept in the process for as long as their windows matter. Knows nothing of limits or stores.

import type { LimitedWindow } from './spending-windows.ts'

export type Tally = {
  /** 0 where nothing is kept. */
  get(window: LimitedWindow): number
  set(window: LimitedWindow, amount: number): void
  add(window: LimitedWindow, by: number): void
  /** All amounts but zeros, which are not kept any longer. */
  takeAll(): { window: LimitedWindow; by: number }[]
  /** Drops the windows that nobody has to know about at this instant. */
  forget(now: number): void
  /** How many windows have an amount. */
  size(): number
}

export const createTally = (): Tally => {
  const amounts = new Map<string, { window: LimitedWindow; by: number }>()
  const get = (window: LimitedWindow) => amounts.get(window.name)?.by ?? 0
  const set = (window: LimitedWindow, amount: number) => {
    if (amount === 0) amounts.delete(window.name)
    else amounts.set(window.name, { window, by: amount })
  }
  return {
    get,
    set,
    add: (window, by) => set(window, get(window) + by),
    takeAll: () => {
      const all = [...amounts.values()]
      amounts.clear()
      return all
    },
    forget: now => {
      for (const [name, { window }] of amounts) if (window.keepUntil <= now) amounts.delete(name)
    },
    size: () => amounts.size,
  }
}
