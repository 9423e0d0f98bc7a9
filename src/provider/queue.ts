// The queue of cells to request: the most urgent first, and of those the consumers in turn, each first in, first out, so that
// one that wants many cells delays nobody else's. Knows no budget and sends nothing.

import type { Cell, CellId } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'

/** `cold`: nothing usable is cached. `refresh`: a stale response was served. `refresh_ahead`: before it turns stale. */
export type Urgency = 'cold' | 'refresh' | 'refresh_ahead'

export type Waiting = PromiseWithResolvers<Timeline> & {
  readonly cell: Cell
  readonly queuedAt: number
  urgency: Urgency
  /** For whom; undefined for no consumer in particular. */
  consumer: string | undefined
}

const order: readonly Urgency[] = ['cold', 'refresh', 'refresh_ahead']

/** The loads that wait for one consumer, in their order. */
type Line = Set<Waiting>

export const createQueue = () => {
  const all = new Map<CellId, Waiting>()
  type Lines = Map<string | undefined, Line>
  // The consumer whose turn is next is first.
  const lines: Record<Urgency, Lines> = { cold: new Map(), refresh: new Map(), refresh_ahead: new Map() }

  const lineOf = ({ urgency, consumer }: Waiting): Line =>
    lines[urgency].getOrInsertComputed(consumer, () => new Set())
  const remove = (waiting: Waiting): void => {
    const line = lineOf(waiting)
    line.delete(waiting)
    if (line.size === 0) lines[waiting.urgency].delete(waiting.consumer)
  }
  const move = (waiting: Waiting, asUrgent: Urgency, consumer: string | undefined): void => {
    const isRaised = order.indexOf(asUrgent) < order.indexOf(waiting.urgency)
    const urgency = isRaised ? asUrgent : waiting.urgency
    const waitingFor = (of: string | undefined): number => lines[urgency].get(of)?.size ?? 0
    const isSooner =
      consumer !== undefined && waitingFor(consumer) + 1 < waitingFor(waiting.consumer) + Number(isRaised)
    if (!isRaised && !isSooner) return
    remove(waiting)
    waiting.urgency = urgency
    if (isSooner) waiting.consumer = consumer
    lineOf(waiting).add(waiting)
  }

  return {
    get size() {
      return all.size
    },
    /** Whether cells wait for another consumer. */
    hasOther: (consumer: string | undefined): boolean =>
      order.some(urgency => lines[urgency].keys().some(other => other !== consumer && other !== undefined)),
    /** Queues a cell, or raises the urgency of a queued one. @param now ms since the epoch */
    add: (cell: Cell, urgency: Urgency, consumer: string | undefined, now: number): Waiting => {
      const found = all.get(cell.id)
      if (found) {
        move(found, urgency, consumer)
        return found
      }
      const waiting = { ...Promise.withResolvers<Timeline>(), cell, urgency, consumer, queuedAt: now }
      all.set(cell.id, waiting)
      lineOf(waiting).add(waiting)
      return waiting
    },
    /** Raises a queued cell to `cold`, for this consumer where its turn comes sooner. */
    expedite: (cell: Cell, consumer?: string | undefined): void => {
      const found = all.get(cell.id)
      if (found) move(found, 'cold', consumer)
    },
    /** Removes up to `most`, of one consumer up to `maxOfOne`, without those that are held back. */
    take: (
      most: number,
      maxOfOne: (consumer: string | undefined, urgency: Urgency) => number = () => most,
    ): Waiting[] => {
      const taken: Waiting[] = []
      for (const urgency of order) {
        const ofUrgency = lines[urgency]
        const left = new Map([...ofUrgency.keys()].map(consumer => [consumer, maxOfOne(consumer, urgency)]))
        // Round robin: one load of each consumer in turn.
        while (left.size > 0 && taken.length < most)
          for (const [consumer, count] of left) {
            const line = ofUrgency.get(consumer)
            const [waiting] = count > 0 && line && taken.length < most ? line : []
            if (!line || !waiting) {
              left.delete(consumer)
              continue
            }
            line.delete(waiting)
            all.delete(waiting.cell.id)
            taken.push(waiting)
            left.set(consumer, count - 1)
            ofUrgency.delete(consumer)
            if (line.size > 0) ofUrgency.set(consumer, line)
          }
      }
      return taken
    },
    /** Removes a consumer's cells of an urgency that were queued before an instant. */
    takeBefore: (instant: number, consumer: string, urgency: Urgency): Waiting[] => {
      const taken: Waiting[] = []
      for (const waiting of lines[urgency].get(consumer) ?? []) {
        if (waiting.queuedAt >= instant) break
        remove(waiting)
        all.delete(waiting.cell.id)
        taken.push(waiting)
      }
      return taken
    },
    /** Before those that were queued later. */
    putBack: (waiting: readonly Waiting[]): void => {
      for (const [urgency, ofUrgency] of Map.groupBy(waiting, one => one.urgency))
        for (const [consumer, first] of Map.groupBy(ofUrgency, one => one.consumer))
          lines[urgency].set(consumer, new Set([...first, ...(lines[urgency].get(consumer) ?? [])]))
      for (const one of waiting) all.set(one.cell.id, one)
    },
  }
}
