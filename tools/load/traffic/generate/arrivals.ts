// The instants at which requests arrive: a Poisson process, as of consumers who know nothing of each other, or even gaps,
// with a rate that has a given mean and follows a shape: the hours of a local day, level, rising, or with a spike. Works step by
// step, so that a year takes no more memory than a minute. Shapes are piecewise linear, because sines differ in their last bit
// between machines.

import { hourMs, minuteMs } from 'abohawa/common/calendar.ts'
import { naturalLog, type Random } from './random.ts'

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

export const shapes = ['day', 'flat', 'ramp', 'spike'] as const
export type Shape = (typeof shapes)[number]

/** A weight at an instant. @param progress how much of the time of the file has passed, 0 to 1 */
type Weight = (localMs: number, progress: number) => number

// At each full hour: people look at the weather before they leave in the morning and when they plan the next day in the
// evening, and sleep at night.
const dayWeights = [
  ...[0.45, 0.28, 0.2, 0.18, 0.25, 0.5, 1, 1.6, 1.8, 1.55, 1.3, 1.15],
  ...[1.1, 1.05, 1, 1.05, 1.15, 1.3, 1.55, 1.75, 1.7, 1.4, 1, 0.7],
]

const dayWeight: Weight = localMs => {
  const hours = (localMs / hourMs) % 24
  const hour = Math.floor(hours)
  const from = dayWeights[hour] as number
  const to = dayWeights[(hour + 1) % 24] as number
  return from + (to - from) * (hours - hour)
}

const spikeFactor = 10

export const weightOf: Readonly<Record<Shape, Weight>> = {
  day: dayWeight,
  flat: () => 1,
  /** From nothing to twice the mean. */
  ramp: (_localMs, progress) => progress,
  /** Level, and ten times as much for a tenth of the time, in the middle. */
  spike: (_localMs, progress) => (progress >= 0.45 && progress < 0.55 ? spikeFactor : 1),
}
