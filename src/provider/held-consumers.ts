// The consumers whose share of the budget is used up, and until when. Spends nothing.

import type { Clock } from '../common/clock.ts'

/** Since when and until when a consumer may not load, ms since the epoch: cold cells, which have the reserve too, and others. */
type Held = { readonly cold: number; readonly others: number; readonly since: number }

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
  // A clock that was set back since would hold them for longer.
  const isOver = ({ cold, others, since }: Held, now: number): boolean =>
    Math.max(cold, others) <= now || since > now
  const until = (consumer: string | undefined, isCold: boolean): number => {
    const found = held.get(consumer ?? '')
    return found === undefined || isOver(found, clock.now()) ? 0 : found[isCold ? 'cold' : 'others']
  }
  return {
    hold: (consumer, isCold, at) => {
      if (held.size >= maxHeld) held.clear()
      held.set(consumer, { cold: isCold ? at : until(consumer, true), others: at, since: clock.now() })
    },
    until,
    all: () => {
      const now = clock.now()
      for (const [consumer, each] of held) if (isOver(each, now)) held.delete(consumer)
      return held
    },
    clear: () => held.clear(),
  }
}
