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

export type Queue = {
  readonly size: number
  /** Whether cells wait for another consumer. */
  hasOther(consumer: string | undefined): boolean
  /** Queues a cell, or raises the urgency of a queued one. @param now ms since the epoch */
  add(cell: Cell, urgency: Urgency, consumer: string | undefined, now: number): Waiting
  /** Raises a queued cell to `cold`, for this consumer where its turn comes sooner. */
  expedite(cell: Cell, consumer?: string | undefined): void
  /** Removes up to `most`, of one consumer up to `maxOfOne`, without those that are held back. */
  take(most: number, maxOfOne?: (consumer: string | undefined, urgency: Urgency) => number): Waiting[]
  /** Removes a consumer's cells of an urgency that were queued before an instant. */
  takeBefore(instant: number, consumer: string, urgency: Urgency): Waiting[]
  /** Before those that were queued later. */
  putBack(waiting: readonly Waiting[]): void
}

const order: readonly Urgency[] = ['cold', 'refresh', 'refresh_ahead']

/** The loads that wait for one consumer. `putBack` is in reverse order, so that the first is at the end. */
type Line = { readonly putBack: Waiting[]; readonly queued: Set<Waiting> }

const sizeOf = ({ putBack, queued }: Line): number => putBack.length + queued.size
const firstOf = ({ putBack, queued }: Line): Waiting | undefined =>
  putBack.at(-1) ?? queued.values().next().value
const removeFirst = (line: Line): Waiting | undefined => {
  const first = firstOf(line)
  if (first && line.putBack.pop() === undefined) line.queued.delete(first)
  return first
}

export const createQueue = (): Queue => {
  const all = new Map<CellId, Waiting>()
  type Lines = Map<string | undefined, Line>
  // The consumer whose turn is next is first.
  const lines: Record<Urgency, Lines> = { cold: new Map(), refresh: new Map(), refresh_ahead: new Map() }

  const lineOf = ({ urgency, consumer }: Waiting): Line =>
    lines[urgency].getOrInsertComputed(consumer, () => ({ putBack: [], queued: new Set() }))
  const remove = (waiting: Waiting): void => {
    const line = lineOf(waiting)
    if (!line.queued.delete(waiting)) line.putBack.splice(line.putBack.indexOf(waiting), 1)
    if (sizeOf(line) === 0) lines[waiting.urgency].delete(waiting.consumer)
  }
  const move = (waiting: Waiting, asUrgent: Urgency, consumer: string | undefined): void => {
    const isRaised = order.indexOf(asUrgent) < order.indexOf(waiting.urgency)
    const urgency = isRaised ? asUrgent : waiting.urgency
    const waitingFor = (of: string | undefined): number => {
      const line = lines[urgency].get(of)
      return line ? sizeOf(line) : 0
    }
    const isSooner =
      consumer !== undefined && waitingFor(consumer) + 1 < waitingFor(waiting.consumer) + Number(isRaised)
    if (!isRaised && !isSooner) return
    remove(waiting)
    waiting.urgency = urgency
    if (isSooner) waiting.consumer = consumer
    lineOf(waiting).queued.add(waiting)
  }

  return {
    get size() {
      return all.size
    },
    hasOther: consumer =>
      order.some(urgency => lines[urgency].keys().some(other => other !== consumer && other !== undefined)),
    add: (cell, urgency, consumer, now) => {
      const found = all.get(cell.id)
      if (found) {
        move(found, urgency, consumer)
        return found
      }
      const waiting = { ...Promise.withResolvers<Timeline>(), cell, urgency, consumer, queuedAt: now }
      all.set(cell.id, waiting)
      lineOf(waiting).queued.add(waiting)
      return waiting
    },
    expedite: (cell, consumer) => {
      const found = all.get(cell.id)
      if (found) move(found, 'cold', consumer)
    },
    take: (most, maxOfOne = () => most) => {
      const taken: Waiting[] = []
      for (const urgency of order) {
        const ofUrgency = lines[urgency]
        const left = new Map([...ofUrgency.keys()].map(consumer => [consumer, maxOfOne(consumer, urgency)]))
        // Round robin: one load of each consumer in turn.
        while (left.size > 0 && taken.length < most)
          for (const [consumer, count] of left) {
            const line = ofUrgency.get(consumer)
            const waiting = count > 0 && line && taken.length < most ? removeFirst(line) : undefined
            if (!line || !waiting) {
              left.delete(consumer)
              continue
            }
            all.delete(waiting.cell.id)
            taken.push(waiting)
            left.set(consumer, count - 1)
            ofUrgency.delete(consumer)
            if (sizeOf(line) > 0) ofUrgency.set(consumer, line)
          }
      }
      return taken
    },
    takeBefore: (instant, consumer, urgency) => {
      const taken: Waiting[] = []
      const line = lines[urgency].get(consumer)
      if (!line) return taken
      for (let first = firstOf(line); first && first.queuedAt < instant; first = firstOf(line)) {
        removeFirst(line)
        all.delete(first.cell.id)
        taken.push(first)
      }
      if (sizeOf(line) === 0) lines[urgency].delete(consumer)
      return taken
    },
    putBack: waiting => {
      for (const one of waiting.toReversed()) {
        all.set(one.cell.id, one)
        lineOf(one).putBack.push(one)
      }
    },
  }
}
