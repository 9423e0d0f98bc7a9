// One counter per window, kept in the process for as long as the window matters. Knows nothing of limits or stores.

import type { LimitedWindow } from './spending-windows.ts'

/** An amount, or a change of one, in thousandths of a weight. */
export type WindowAmount = { readonly window: LimitedWindow; readonly by: number }

export type WindowCounters = {
  /** 0 for a window without a counter. */
  get(window: LimitedWindow): number
  set(window: LimitedWindow, amount: number): void
  add(window: LimitedWindow, by: number): void
  /** All counters that are not zero. */
  all(): WindowAmount[]
  clear(): void
  /** Drops the windows whose `keepUntil` is past. */
  expire(now: number): void
}

export const createWindowCounters = (): WindowCounters => {
  const amounts = new Map<string, WindowAmount>()
  const get = (window: LimitedWindow) => amounts.get(window.name)?.by ?? 0
  const set = (window: LimitedWindow, amount: number) => {
    if (amount === 0) amounts.delete(window.name)
    else amounts.set(window.name, { window, by: amount })
  }
  return {
    get,
    set,
    add: (window, by) => set(window, get(window) + by),
    all: () => [...amounts.values()],
    clear: () => amounts.clear(),
    expire: now => {
      for (const [name, { window }] of amounts) if (window.keepUntil <= now) amounts.delete(name)
    },
  }
}
