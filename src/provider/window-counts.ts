// The counts of the provider's windows: what the store had last, what the store lacks, and what was granted without it. Amounts are whole
// thousandths of a weight.

import { hourMs, minuteMs } from '../common/calendar.ts'
import type { Spent } from '../stores/spending-store.ts'
import type { Correction } from './charge.ts'
import type { LimitedWindow } from './spending-windows.ts'

export type Count = {
  window: LimitedWindow
  stored: Spent
  /** What the store lacks; and of that, what is being reported. It stays spent until the store has it. */
  pending: Spent
  reporting: Spent
  /** Granted without the store, also what the store has learned since: a second outage in a window grants no second part. */
  granted: number
  /** Of that, the part of each consumer. */
  readonly consumers: Map<string, number>
}

export const nothing: Spent = { charged: 0, refunded: 0 }

export const plus = (one: Spent, other: Spent, sign: 1 | -1 = 1): Spent => ({
  charged: one.charged + sign * other.charged,
  refunded: one.refunded + sign * other.refunded,
})

/** Of two readings of a count that only grows the later one. */
export const latest = (one: Spent, other: Spent = nothing): Spent => ({
  charged: Math.max(one.charged, other.charged),
  refunded: Math.max(one.refunded, other.refunded),
})

const isNothing = ({ charged, refunded }: Spent): boolean => charged === 0 && refunded === 0
export const netOf = ({ charged, refunded }: Spent): number => Math.max(0, charged - refunded)

export class WindowCounts {
  readonly #counts = new Map<string, Count>()

  of(window: LimitedWindow): Count {
    const found = this.#counts.getOrInsertComputed(window.name, () => ({
      window,
      stored: nothing,
      pending: nothing,
      reporting: nothing,
      granted: 0,
      consumers: new Map(),
    }))
    found.window = window
    return found
  }

  all(): IteratorObject<Count> {
    return this.#counts.values()
  }

  /** Those of windows around an instant, and those that the store lacks something of. */
  current(now: number): IteratorObject<Count> {
    // A clock that was ahead leaves windows that begin in days.
    const isNear = ({ beginsAt, endsAt }: LimitedWindow): boolean =>
      endsAt > now - minuteMs && beginsAt < now + hourMs
    return this.all().filter(({ window, pending }) => isNear(window) || !isNothing(pending))
  }

  /** Charges a window here, or gives back what is below 0. */
  add(count: Count, by: number): void {
    count.pending = plus(count.pending, { charged: Math.max(0, by), refunded: Math.max(0, -by) })
  }

  /** Changes what was granted without the store, and the parts of it that are consumers'. */
  addGranted(count: Count, by: number, ofConsumers: Correction['consumers'] = []): void {
    count.granted += by
    for (const { consumer, by: part } of ofConsumers)
      count.consumers.set(consumer, Math.max(0, (count.consumers.get(consumer) ?? 0) + part))
  }

  /** What is spent of a window: as last read from the store, plus what was spent here since. */
  used({ name }: Pick<LimitedWindow, 'name'>): number {
    const found = this.#counts.get(name)
    return found ? netOf(plus(found.stored, found.pending)) : 0
  }

  hasPending(): boolean {
    return this.all().some(({ pending }) => !isNothing(pending))
  }

  /** @param now ms since the epoch */
  expire(now: number): void {
    for (const [name, { window }] of this.#counts) if (window.keepUntil <= now) this.#counts.delete(name)
  }
}
