// The instants at which requests arrive: a Poisson process, as of consumers who know nothing of each other, or even gaps,
// with a rate that changes over time and has a given mean. Works step by step, so that a year takes no more memory than a minute.

import { minuteMs } from '../../../common/calendar.ts'
import { naturalLog } from './arithmetic.ts'
import type { Random } from './random.ts'

export type Span = {
  /** Ms since the epoch. */
  readonly start: number
  readonly durationMs: number
}

type ArrivalProcess = Span & {
  /** The mean over the span, in requests per second. */
  readonly rate: number
  readonly arrivals: 'poisson' | 'even'
  /** How the rate goes: an amount of no unit at an instant. */
  readonly weightAt: (instant: number) => number
  readonly random: Random
}

// The rate is constant within a step; a short file has as many steps as a day of minutes.
const stepsAtLeast = 1440

/** The instants of all requests, ms since the epoch, in their order; at least one weight must be above 0. */
export function* arrivalsOf({
  start,
  durationMs,
  rate,
  arrivals,
  weightAt,
  random,
}: ArrivalProcess): Generator<number> {
  const stepMs = Math.min(minuteMs, durationMs / stepsAtLeast)
  const steps = Math.ceil(durationMs / stepMs)
  const lengthOf = (step: number) => Math.min(stepMs, durationMs - step * stepMs)
  const amountOf = (step: number) => weightAt(start + step * stepMs + lengthOf(step) / 2) * lengthOf(step)
  let weights = 0
  for (let step = 0; step < steps; step++) weights += amountOf(step)
  const requestsPerWeight = (rate * durationMs) / 1000 / weights

  // Counted in expected requests: the next arrival, and where the step begins.
  let next = arrivals === 'even' ? 0.5 : -naturalLog(1 - random())
  let passed = 0
  for (let step = 0; step < steps; step++) {
    const expected = amountOf(step) * requestsPerWeight
    const begin = start + step * stepMs
    const length = lengthOf(step)
    while (next < passed + expected) {
      yield Math.floor(begin + ((next - passed) / expected) * length)
      next += arrivals === 'even' ? 1 : -naturalLog(1 - random())
    }
    passed += expected
  }
}
