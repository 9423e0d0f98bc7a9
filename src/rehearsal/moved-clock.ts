// A clock that stands still until it is moved, and the timers that follow it. A move runs the work that has come due, in the
// order of its due instants. Who moves it, and when, is left to the caller.

import type { Clock, Timers } from '../clock.ts'
import { InputError } from '../errors.ts'

export type MovedClock = Clock & {
  readonly timers: Timers
  /**
   * Jumps to an instant and runs what is due by then, one after the other; resolves when the promises of that work have. Work
   * at intervals that a jump has passed several times runs once, as after a pause of the process.
   * @throws InputError for an instant before the present one
   */
  moveTo(instant: number): Promise<void>
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
  const nextDue = (): Timer | undefined => {
    let first: Timer | undefined
    for (const timer of timers)
      if (timer.dueAt <= now && (first === undefined || timer.dueAt < first.dueAt)) first = timer
    return first
  }

  return {
    now: () => now,
    timers: {
      every: (ms, work) => add({ dueAt: now + ms, everyMs: ms, work }),
      after: (ms, work) => add({ dueAt: now + ms, everyMs: null, work }),
    },
    moveTo: async instant => {
      if (instant < now)
        throw new InputError(
          `the clock is at ${new Date(now).toISOString()} and never goes back; given: ${new Date(instant).toISOString()}`,
        )
      now = instant
      for (let timer = nextDue(); timer; timer = nextDue()) {
        if (timer.everyMs === null) timers.delete(timer)
        // Keeps its place: due at whole intervals since its beginning.
        else timer.dueAt += timer.everyMs * (Math.floor((now - timer.dueAt) / timer.everyMs) + 1)
        await timer.work()
      }
    },
  }
}
