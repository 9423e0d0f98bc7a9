// The consumers of a provider, as far as its queue needs to know them: the two that asked for weather last, so that it is known
// whether somebody beside the one that loads is there, and those whose share of the budget is used up. Spends nothing.

import type { Clock } from '../clock.ts'

export type Consumers = {
  /** As cheap as a comparison, because every read of weather records its consumer. */
  asked(consumer: string): void
  /** Those that asked last, at most two. */
  recent(): string[]
  /** A consumer's share is used up until this instant, ms since the epoch. One without room for cold cells has none for others. */
  hold(consumer: string, isCold: boolean, until: number): void
  /** In the past for one that may load. */
  heldUntil(consumer: string | undefined, isCold: boolean): number
  /** The consumers that may not load now. */
  held(): ReadonlyMap<string, Held>
  /** Nobody is held back any more: what a share allows has changed. */
  release(): void
}

/** Until when a consumer may not load: cold cells, which have the reserve too, and others. */
type Held = { readonly cold: number; readonly others: number }

// As long as people wait between two looks at the weather.
const recentForMs = 3_600_000
// Those that are held back are forgotten when their time is over, at the latest when there are so many.
const mostHeld = 10_000

export const createConsumers = (clock: Clock): Consumers => {
  let last = { consumer: '', at: Number.NEGATIVE_INFINITY }
  let other = { consumer: '', at: Number.NEGATIVE_INFINITY }
  const held = new Map<string, Held>()
  const heldUntil = (consumer: string | undefined, isCold: boolean): number =>
    held.get(consumer ?? '')?.[isCold ? 'cold' : 'others'] ?? 0
  return {
    asked: consumer => {
      if (consumer !== last.consumer) {
        const former = other
        other = last
        last = former
        last.consumer = consumer
      }
      last.at = clock.now()
    },
    recent: () => {
      const now = clock.now()
      return [last, other].filter(({ at }) => now - at < recentForMs).map(({ consumer }) => consumer)
    },
    hold: (consumer, isCold, until) => {
      if (held.size >= mostHeld) held.clear()
      held.set(consumer, { cold: isCold ? until : heldUntil(consumer, true), others: until })
    },
    heldUntil,
    held: () => {
      const now = clock.now()
      for (const [consumer, { cold, others }] of held)
        if (Math.max(cold, others) <= now) held.delete(consumer)
      return held
    },
    release: () => held.clear(),
  }
}
