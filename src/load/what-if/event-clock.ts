// A clock for discrete events: it stands still while work goes on, and moves from one due timer to the next. What work a
// timer started has to be settled before the clock moves on is the caller's to say.

import type { Clock, Timers } from '../../clock.ts'

export type EventClock = Clock & {
  readonly timers: Timers
  /**
   * Runs what is due until an instant, in order of time and then of its start, and stands there.
   * @param settle resolves when what the last timer started needs the clock no more
   */
  advanceTo(instant: number, settle: () => Promise<void>): Promise<void>
  /** Stands at an instant until which nothing is due. */
  moveTo(instant: number): void
  /** When the next timer is due, ms since the epoch; Infinity without one. */
  nextAt(): number
}

type Due = {
  at: number
  readonly order: number
  readonly everyMs: number
  readonly work: () => unknown
  ended: boolean
}

/** @param start ms since the epoch */
export const createEventClock = (start: number): EventClock => {
  let now = start
  let order = 0
  // A binary heap, the earliest first. A timer that was ended stays in it until it is due.
  const heap: Due[] = []

  const isBefore = (one: Due, other: Due): boolean =>
    one.at < other.at || (one.at === other.at && one.order < other.order)
  const push = (due: Due): void => {
    let i = heap.length
    for (heap.push(due); i > 0; ) {
      const above = (i - 1) >> 1
      const parent = heap[above] as Due
      if (!isBefore(due, parent)) break
      heap[i] = parent
      i = above
    }
    heap[i] = due
  }
  const pop = (): void => {
    const last = heap.pop() as Due
    if (heap.length === 0) return
    let i = 0
    for (;;) {
      const left = 2 * i + 1
      if (left >= heap.length) break
      const right = left + 1
      const least = right < heap.length && isBefore(heap[right] as Due, heap[left] as Due) ? right : left
      if (!isBefore(heap[least] as Due, last)) break
      heap[i] = heap[least] as Due
      i = least
    }
    heap[i] = last
  }

  const begin = (ms: number, everyMs: number, work: () => unknown): (() => void) => {
    const due: Due = { at: now + Math.max(0, ms), order: order++, everyMs, work, ended: false }
    push(due)
    return () => {
      due.ended = true
    }
  }
  const nextAt = (): number => {
    while (heap[0]?.ended) pop()
    return heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  return {
    now: () => now,
    timers: {
      // As Node has it: never more often than each millisecond.
      every: (ms, work) => begin(Math.max(1, ms), Math.max(1, ms), work),
      after: (ms, work) => begin(ms, 0, work),
    },
    advanceTo: async (instant, settle) => {
      for (let at = nextAt(); at <= instant; at = nextAt()) {
        const due = heap[0] as Due
        pop()
        now = Math.max(now, at)
        if (due.everyMs > 0) push(Object.assign(due, { at: at + due.everyMs, order: order++ }))
        due.work()
        await settle()
      }
      now = Math.max(now, instant)
    },
    moveTo: instant => {
      now = Math.max(now, instant)
    },
    nextAt,
  }
}
