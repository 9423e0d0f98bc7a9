// The instants at which requests arrive: a Poisson process or even gaps, with a mean rate and a shape: hours of a day, level, rising
// or a spike. Shapes are piecewise linear, because sines differ in their last bit between machines.

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
  /** The relative rate at an instant. */
  readonly weightAt: (instant: number) => number
  readonly random: Random
}

// The rate is constant within a step of at most a minute.
const stepsAtLeast = 1440

/** The instants of all requests, ms since the epoch, ascending; at least one weight must be above 0. */
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

  // In expected requests: the next arrival, and the start of the step.
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

/** @param progress the share of the time that has passed, 0 to 1 */
type Weight = (localMs: number, progress: number) => number

// By hour: most requests in the morning and in the evening, few at night.
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
  /** Ten times as much in the middle tenth of the time. */
  spike: (_localMs, progress) => (progress >= 0.45 && progress < 0.55 ? spikeFactor : 1),
}
