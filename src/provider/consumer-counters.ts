// The spending of each consumer by window in this process, for as long as the window matters. Knows nothing of limits.

import type { LimitedWindow } from './spending-windows.ts'

export type ConsumerCounters = {
  /** `isAlone`: no other consumer has a counter in the window. */
  of(window: LimitedWindow, consumer: string): { readonly usedBy: number; readonly isAlone: boolean }
  /** An amount of 0 makes the counter. */
  add(window: LimitedWindow, consumer: string, by: number): void
  /** Drops the windows whose `keepUntil` is past. */
  expire(now: number): void
}

export const createConsumerCounters = (): ConsumerCounters => {
  const windows = new Map<string, { readonly keepUntil: number; readonly amounts: Map<string, number> }>()
  return {
    of: ({ name }, consumer) => {
      const amounts = windows.get(name)?.amounts
      const own = amounts?.get(consumer)
      return { usedBy: own ?? 0, isAlone: (amounts?.size ?? 0) === (own === undefined ? 0 : 1) }
    },
    add: ({ name, keepUntil }, consumer, by) => {
      const { amounts } = windows.getOrInsertComputed(name, () => ({ keepUntil, amounts: new Map() }))
      amounts.set(consumer, (amounts.get(consumer) ?? 0) + by)
    },
    expire: now => {
      for (const [name, { keepUntil }] of windows) if (keepUntil <= now) windows.delete(name)
    },
  }
}
