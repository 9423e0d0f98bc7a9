// A clock that stands still until a test moves it.

import type { Clock } from '../../src/common/clock.ts'

export type ManualClock = Clock & {
  /** Jumps to an instant, given as ISO 8601 or in milliseconds. */
  set(instant: string | number): void
  /** Moves on by some milliseconds. */
  advance(ms: number): void
}

/** Noon in Dhaka: the instant of tests that need no particular one. */
export const noon = '2026-11-21T06:00:00Z'

export const manualClock = (start: string | number = noon): ManualClock => {
  let now = new Date(start).getTime()
  return {
    now: () => now,
    set: instant => {
      now = new Date(instant).getTime()
    },
    advance: ms => {
      now += ms
    },
  }
}
