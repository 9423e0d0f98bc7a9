// A clock that stands still until it is moved, and timers that follow it, for rehearsals and what-if. A move goes from one due instant to
// the next and runs the work that is due there.

import { isoOf } from './calendar.ts'
import type { Clock, Timers } from './clock.ts'
import { InputError } from './errors.ts'

export type MovedClock = Clock & {
  readonly timers: Timers
  /**
   * Moves to an instant by way of all that is due until then, each at its own instant and one after the other.
   * @param settle called with what each work returned; resolves when what it has begun needs the instant no more
   * @throws InputError for an instant before the present one
   */
  moveTo(instant: number, settle?: (work: unknown) => unknown): Promise<void>
  /** Skips all but the last run of periodic work until an instant, or until the first work that is due once. */
  skipTo(instant: number): void
}

type Timer = { dueAt: number; readonly everyMs: number | null; readonly work: () => unknown }

/** @param start the first instant, ms since the epoch */
export const createMovedClock = (start: number): MovedClock => {
  let now = start
  // In the order of their beginning, which decides between those due at one instant.
  const timers = new Set<Timer>()
  // Undefined where it must be searched; many moves meet no timer.
  let earliest: Timer | undefined

  const add = (timer: Timer): (() => void) => {
    timers.add(timer)
    if (earliest && timer.dueAt < earliest.dueAt) earliest = timer
    return () => {
      timers.delete(timer)
      if (earliest === timer) earliest = undefined
    }
  }
  const next = (): Timer | undefined => {
    if (earliest === undefined)
      for (const timer of timers) if (earliest === undefined || timer.dueAt < earliest.dueAt) earliest = timer
    return earliest
  }

  return {
    now: () => now,
    timers: {
      // As Node has it: never more often than each millisecond.
      every: (ms, work) => add({ dueAt: now + Math.max(1, ms), everyMs: Math.max(1, ms), work }),
      after: (ms, work) => add({ dueAt: now + Math.max(0, ms), everyMs: null, work }),
    },
    moveTo: async (instant, settle = work => work) => {
      if (instant < now)
        throw new InputError(`the clock can't go back from ${isoOf(now)} to ${isoOf(instant)}`)
      for (let timer = next(); timer && timer.dueAt <= instant; timer = next()) {
        now = Math.max(now, timer.dueAt)
        earliest = undefined
        if (timer.everyMs === null) timers.delete(timer)
        else timer.dueAt += timer.everyMs
        await settle(timer.work())
      }
      now = instant
    },
    skipTo: instant => {
      let end = instant
      for (const { dueAt, everyMs } of timers) if (everyMs === null) end = Math.min(end, dueAt)
      for (const timer of timers)
        if (timer.everyMs !== null)
          timer.dueAt += Math.max(0, Math.floor((end - timer.dueAt) / timer.everyMs)) * timer.everyMs
      earliest = undefined
    },
  }
}
