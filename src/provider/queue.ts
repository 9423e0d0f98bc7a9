// The queue of cells to request: the most urgent first, then consumers in turn, each first in, first out, so that a consumer with many
// cells delays nobody else. Also the consumers that are throttled.

import type { Cell, CellId } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'

/** `cold`: nothing usable is cached. `refresh`: a stale response was served. `refresh_ahead`: before it turns stale. */
export type Urgency = 'cold' | 'refresh' | 'refresh_ahead'

export type Waiting = PromiseWithResolvers<Timeline> & {
  readonly cell: Cell
  /** Since when it waits with this urgency. */
  queuedAt: number
  /** Since when it waits for the budget; Infinity before. */
  refusedAt: number
  urgency: Urgency
  /** For whom; undefined for no consumer in particular. */
  consumer: string | undefined
}

const order: readonly Urgency[] = ['cold', 'refresh', 'refresh_ahead']

/** The loads that wait for one consumer, in their order. */
type Line = Set<Waiting>

type Lines = Map<string | undefined, Line>

/** A cell that nobody queued. */
export const unqueued = (cell: Cell): Waiting => ({
  cell,
  queuedAt: 0,
  refusedAt: Number.POSITIVE_INFINITY,
  urgency: 'refresh_ahead',
  consumer: undefined,
  ...Promise.withResolvers<Timeline>(),
})

export class Queue {
  readonly #all = new Map<CellId, Waiting>()
  // The consumer whose turn is next is first.
  readonly #lines: Record<Urgency, Lines> = { cold: new Map(), refresh: new Map(), refresh_ahead: new Map() }

  get size(): number {
    return this.#all.size
  }

  cells(): Cell[] {
    return this.#all
      .values()
      .map(({ cell }) => cell)
      .toArray()
  }

  /** Whether cells wait for another consumer. */
  hasOther(consumer: string | undefined): boolean {
    const isOther = (other: string | undefined): boolean => other !== consumer && other !== undefined
    return order.some(urgency => this.#lines[urgency].keys().some(isOther))
  }

  /** Queues a cell, or raises the urgency of a queued one. @param now ms since the epoch */
  add(cell: Cell, urgency: Urgency, consumer: string | undefined, now: number): Waiting {
    const found = this.#all.get(cell.id)
    if (found) {
      this.#move(found, urgency, consumer, now)
      return found
    }
    const waiting: Waiting = { ...unqueued(cell), urgency, consumer, queuedAt: now }
    this.#all.set(cell.id, waiting)
    this.#lineOf(waiting).add(waiting)
    return waiting
  }

  /** Raises a queued cell to `cold`, for this consumer where its turn comes sooner. @param now ms since the epoch */
  expedite(cell: Cell, consumer: string | undefined, now: number): void {
    const found = this.#all.get(cell.id)
    if (found) this.#move(found, 'cold', consumer, now)
  }

  /** Removes up to `most`, of one consumer up to `maxOfOne`, which is 0 for one that is throttled. */
  take(
    most: number,
    maxOfOne: (consumer: string | undefined, urgency: Urgency) => number = () => most,
  ): Waiting[] {
    const taken: Waiting[] = []
    for (const urgency of order) {
      const lines = this.#lines[urgency]
      const left = new Map([...lines.keys()].map(consumer => [consumer, maxOfOne(consumer, urgency)]))
      // Round robin: one load of each consumer in turn.
      while (left.size > 0 && taken.length < most)
        for (const [consumer, count] of left) {
          const line = lines.get(consumer)
          const [waiting] = count > 0 && line && taken.length < most ? line : []
          if (!line || !waiting) {
            left.delete(consumer)
            continue
          }
          line.delete(waiting)
          this.#all.delete(waiting.cell.id)
          taken.push(waiting)
          left.set(consumer, count - 1)
          lines.delete(consumer)
          if (line.size > 0) lines.set(consumer, line)
        }
    }
    return taken
  }

  /** Removes a consumer's cells of an urgency that were queued before an instant. */
  takeBefore(instant: number, consumer: string, urgency: Urgency): Waiting[] {
    const taken: Waiting[] = []
    for (const waiting of this.#lines[urgency].get(consumer) ?? []) {
      if (waiting.queuedAt >= instant) break
      this.#remove(waiting)
      this.#all.delete(waiting.cell.id)
      taken.push(waiting)
    }
    return taken
  }

  /** Before those that were queued later. A cell that was queued again meanwhile is loaded once, for both. */
  putBack(taken: readonly Waiting[]): void {
    const waiting = taken.map(one => this.#joinNewer(one)).filter(one => one !== undefined)
    for (const [urgency, ofUrgency] of Map.groupBy(waiting, one => one.urgency))
      for (const [consumer, first] of Map.groupBy(ofUrgency, one => one.consumer)) {
        const lines = this.#lines[urgency]
        lines.set(consumer, new Set([...first, ...(lines.get(consumer) ?? [])]))
      }
    for (const one of waiting) this.#all.set(one.cell.id, one)
  }

  /**
   * Has a cell that was queued again meanwhile wait for that load, which then waits since as long. Returns what is to be put
   * back: undefined where the newer one is more urgent, and stays in its place.
   */
  #joinNewer(older: Waiting): Waiting | undefined {
    const newer = this.#all.get(older.cell.id)
    if (!newer) return older
    newer.promise.then(older.resolve, older.reject)
    this.#move(newer, older.urgency, older.consumer, older.queuedAt)
    if (newer.urgency !== older.urgency) return undefined
    newer.queuedAt = Math.min(newer.queuedAt, older.queuedAt)
    newer.refusedAt = Math.min(newer.refusedAt, older.refusedAt)
    this.#remove(newer)
    return newer
  }

  #lineOf({ urgency, consumer }: Waiting): Line {
    return this.#lines[urgency].getOrInsertComputed(consumer, () => new Set())
  }

  #remove(waiting: Waiting): void {
    const line = this.#lineOf(waiting)
    line.delete(waiting)
    if (line.size === 0) this.#lines[waiting.urgency].delete(waiting.consumer)
  }

  #move(waiting: Waiting, asUrgent: Urgency, consumer: string | undefined, now: number): void {
    const isRaised = order.indexOf(asUrgent) < order.indexOf(waiting.urgency)
    const urgency = isRaised ? asUrgent : waiting.urgency
    const waitingFor = (of: string | undefined): number => this.#lines[urgency].get(of)?.size ?? 0
    const isSooner =
      consumer !== undefined && waitingFor(consumer) + 1 < waitingFor(waiting.consumer) + Number(isRaised)
    if (!isRaised && !isSooner) return
    this.#remove(waiting)
    waiting.urgency = urgency
    if (isRaised) waiting.queuedAt = now
    if (isSooner) waiting.consumer = consumer
    this.#lineOf(waiting).add(waiting)
  }
}

/**
 * Until when a consumer whose share of the budget is used up may load no cold cells, which have the reserve too, and no others;
 * and since when. Ms since the epoch.
 */
type Throttle = { readonly cold: number; readonly others: number; readonly since: number }

// Forgotten when their time is over, at the latest when there are so many.
const maxThrottles = 10_000

// A clock that was set back since would throttle for longer.
const isOver = ({ cold, others, since }: Throttle, now: number): boolean =>
  Math.max(cold, others) <= now || since > now

/** The consumers whose cells wait, or fail, because their share of the budget is used up. Instants are ms since the epoch. */
export class Throttles {
  readonly #throttles = new Map<string, Throttle>()

  /** An instant in the past for a consumer that may load. */
  until(consumer: string | undefined, urgency: Urgency, now: number): number {
    const found = this.#throttles.get(consumer ?? '')
    return !found || isOver(found, now) ? 0 : found[urgency === 'cold' ? 'cold' : 'others']
  }

  /** One without room for cold cells has none for others. */
  add(consumer: string, urgency: Urgency, until: number, now: number): void {
    if (this.#throttles.size >= maxThrottles) this.clear()
    const cold = urgency === 'cold' ? until : this.until(consumer, 'cold', now)
    this.#throttles.set(consumer, { cold, others: until, since: now })
  }

  clear(): void {
    this.#throttles.clear()
  }

  /** When the next consumer may load cold cells again; Infinity for none. */
  nextEnd(now: number): number {
    return Math.min(...[...this.#throttles.values()].map(({ cold }) => cold).filter(at => at > now))
  }

  /**
   * Takes what must not wait any longer from the queue. A consumer that is throttled for long gets all its cells rejected. One that
   * is throttled for a while keeps its cold cells until they have waited for long enough. What is not cold never waits: another
   * consumer's refresh of the same cell would wait with it.
   */
  takeFrom(
    queue: Queue,
    queueForMs: number,
    now: number,
    reject: (waiting: Waiting, consumer: string, until: number) => void,
  ): void {
    const rejectBefore = (instant: number, consumer: string, urgency: Urgency, until: number): void => {
      for (const waiting of queue.takeBefore(instant, consumer, urgency)) reject(waiting, consumer, until)
    }
    for (const [consumer, each] of this.#throttles) {
      if (isOver(each, now)) {
        this.#throttles.delete(consumer)
        continue
      }
      const { cold, others } = each
      const before = cold - now > queueForMs ? Number.POSITIVE_INFINITY : now - queueForMs
      if (cold > now) rejectBefore(before, consumer, 'cold', cold)
      if (others <= now) continue
      for (const urgency of ['refresh', 'refresh_ahead'] as const)
        rejectBefore(Number.POSITIVE_INFINITY, consumer, urgency, others)
    }
  }
}
