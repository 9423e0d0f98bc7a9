// The consumers whose share of the budget is used up, and until when. Spends nothing.

import type { Clock } from '../clock.ts'

export type HeldConsumers = {
  /** A consumer's share is used up until this instant, ms since the epoch. */
  hold(consumer: string, until: number): void
  /** In the past for one that may load. */
  until(consumer: string | undefined): number
  /** The bounds have changed: all may try again. */
  clear(): void
  /** Those that may not load now, with the instant from which they may. */
  all(): ReadonlyMap<string, number>
}

// Forgotten when their time is over, at the latest when there are so many.
const mostHeld = 10_000

export const createHeldConsumers = (clock: Clock): HeldConsumers => {
  const held = new Map<string, number>()
  return {
    hold: (consumer, until) => {
      if (held.size >= mostHeld) held.clear()
      held.set(consumer, until)
    },
    clear: () => held.clear(),
    until: consumer => held.get(consumer ?? '') ?? 0,
    all: () => {
      const now = clock.now()
      for (const [consumer, until] of held) if (until <= now) held.delete(consumer)
      return held
    },
  }
}
