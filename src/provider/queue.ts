// The queue of cells to request: the most urgent first, then first in, first out. Knows no budget and sends nothing.

import type { Cell, CellId } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'

/** `cold`: nothing usable is cached. `refresh`: a stale response was served. `refresh_ahead`: before it turns stale. */
export type Urgency = 'cold' | 'refresh' | 'refresh_ahead'

export type Waiting = PromiseWithResolvers<Timeline> & { readonly cell: Cell; urgency: Urgency }

export type Queue = {
  readonly size: number
  /** Queues a cell, or raises the urgency of a queued one. */
  add(cell: Cell, urgency: Urgency): Waiting
  /** Raises a queued cell to `cold`. */
  expedite(cell: Cell): void
  /** Removes up to `most`. */
  take(most: number): Waiting[]
  putBack(waiting: readonly Waiting[]): void
}

const order: readonly Urgency[] = ['cold', 'refresh', 'refresh_ahead']

export const createQueue = (): Queue => {
  const lines: Record<Urgency, Map<CellId, Waiting>> = {
    cold: new Map(),
    refresh: new Map(),
    refresh_ahead: new Map(),
  }
  const find = (cell: Cell) =>
    order.map(urgency => lines[urgency].get(cell.id)).find(waiting => waiting !== undefined)
  const move = (waiting: Waiting, urgency: Urgency): void => {
    lines[waiting.urgency].delete(waiting.cell.id)
    waiting.urgency = urgency
    lines[urgency].set(waiting.cell.id, waiting)
  }

  return {
    get size() {
      return lines.cold.size + lines.refresh.size + lines.refresh_ahead.size
    },
    add: (cell, urgency) => {
      const found = find(cell)
      if (found) {
        if (order.indexOf(urgency) < order.indexOf(found.urgency)) move(found, urgency)
        return found
      }
      const waiting = { ...Promise.withResolvers<Timeline>(), cell, urgency }
      lines[urgency].set(cell.id, waiting)
      return waiting
    },
    expedite: cell => {
      const found = find(cell)
      if (found) move(found, 'cold')
    },
    take: most => {
      const taken: Waiting[] = []
      for (const urgency of order)
        for (const [id, waiting] of lines[urgency]) {
          if (taken.length >= most) return taken
          lines[urgency].delete(id)
          taken.push(waiting)
        }
      return taken
    },
    putBack: waiting => {
      for (const urgency of order) {
        const back = waiting.filter(one => one.urgency === urgency)
        if (back.length === 0) continue
        // Ahead of those queued later.
        lines[urgency] = new Map([...back.map(one => [one.cell.id, one] as const), ...lines[urgency]])
      }
    },
  }
}
