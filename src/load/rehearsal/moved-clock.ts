// A clock that stands still until it is moved, and the timers that follow it. A move goes from one due instant to the next and
// runs the work that is due there. Who moves it, and when, is left to the caller.

import { isoOf } from '../../calendar.ts'
import type { Clock, Timers } from '../../clock.ts'
import { InputError } from '../../errors.ts'

export type MovedClock = Clock & {
  readonly timers: Timers
  /**
   * Moves to an instant by way of all that is due until then, each at its own instant and one after the other. Resolves when
   * the promises of that work have.
   * @param settled resolves when what the work has begun needs the instant no more; awaited after each of it
   * @throws InputError for an instant before the present one
   */
  moveTo(instant: number, settled?: () => Promise<void>): Promise<void>
}

type Timer = { dueAt: number; readonly everyMs: number | null; readonly work: () => unknown }

/** @param start the first instant, ms since the epoch */
export const createMovedClock = (start: number): MovedClock => {
  let now = start
  // In the order of their beginning, which decides between those due at one instant.
  const timers = new Set<Timer>()

  const add = (timer: Timer): (() => void) => {
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const nextDue = (until: number): Timer | undefined => {
    let first: Timer | undefined
    for (const timer of timers)
      if (timer.dueAt <= until && (first === undefined || timer.dueAt < first.dueAt)) first = timer
    return first
  }

  return {
    now: () => now,
    timers: {
      every: (ms, work) => add({ dueAt: now + ms, everyMs: ms, work }),
      after: (ms, work) => add({ dueAt: now + ms, everyMs: null, work }),
    },
    moveTo: async (instant, settled) => {
      if (instant < now)
        throw new InputError(`the clock is at ${isoOf(now)} and never goes back; given: ${isoOf(instant)}`)
      for (let timer = nextDue(instant); timer; timer = nextDue(instant)) {
        now = Math.max(now, timer.dueAt)
        if (timer.everyMs === null) timers.delete(timer)
        else timer.dueAt += timer.everyMs
        await timer.work()
        await settled?.()
      }
      now = instant
    },
  }
}
