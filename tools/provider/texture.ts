// The two kinds of noise in the weather of a place: the true weather, and the error of a model run. The error grows from zero with the
// lead time, so that a new run changes the near hours a little and the far days more.

import { hourMs } from 'abohawa/common/calendar.ts'
import type { ModelRun } from './model-runs.ts'
import { createRipple, type Ripple, saltOf } from './noise.ts'
import type { Place } from './points.ts'

export type Texture = ReturnType<typeof createTexture>

const growthHours = 96

export const createTexture = (seed: number, run: ModelRun | undefined, place: Place) => {
  const growth = run ? growthSince(run.initialisedAt) : undefined
  return {
    /** The true weather: -1..1, in bumps of this width. */
    truth: (name: string, degrees: number, hours: number): Ripple =>
      createRipple(saltOf(seed, name), place, degrees, hours),
    /** The error of the run: 0 at its start, at most -1..1. */
    error: (name: string, degrees: number, hours: number): Ripple => {
      if (!run || !growth) return () => 0
      const ripple = createRipple(saltOf(seed, name, run.initialisedAt / hourMs), place, degrees, hours)
      return instant => growth(instant) * ripple(instant)
    },
  }
}

// Keeps the last result, because callers request several errors for one instant.
const growthSince = (start: number): ((instant: number) => number) => {
  let last = Number.NaN
  let growth = 0
  return instant => {
    if (instant !== last) {
      growth = 1 - Math.exp(-Math.max(0, instant - start) / (growthHours * hourMs))
      last = instant
    }
    return growth
  }
}
