// The consumers whose share of the budget is used up, and until when. Spends nothing.

import type { Clock } from '../clock.ts'

/** Until when a consumer may not load, ms since the epoch: cold cells, which have the reserve too, and others. */
type Held = { readonly cold: number; readonly others: number }

export type HeldConsumers = {
  /** A consumer's share is used up until this instant. One without room for cold cells has none for others. */
  hold(consumer: string, isCold: boolean, until: number): void
  /** An instant in the past for a consumer that may load. */
  until(consumer: string | undefined, isCold: boolean): number
  /** Those that may not load now. */
  all(): ReadonlyMap<string, Held>
  /** The bounds have changed: nobody is held back any more. */
  clear(): void
}

// Forgotten when their time is over, at the latest when there are so many.
const maxHeld = 10_000

export const createHeldConsumers = (clock: Clock): HeldConsumers => {
  const held = new Map<string, Held>()
  const until = (consumer: string | undefined, isCold: boolean): number =>
    held.get(consumer ?? '')?.[isCold ? 'cold' : 'others'] ?? 0
  return {
    hold: (consumer, isCold, at) => {
      if (held.size >= maxHeld) held.clear()
      held.set(consumer, { cold: isCold ? at : until(consumer, true), others: at })
    },
    until,
    all: () => {
      const now = clock.now()
      for (const [consumer, { cold, others }] of held)
        if (Math.max(cold, others) <= now) held.delete(consumer)
      return held
    },
    clear: () => held.clear(),
  }
}
