// How the rate goes over the time of a file: the hours of a local day, level, rising, or with a spike. Weights alone; what
// they come to in requests is for arrivals.ts. Piecewise linear, because sines differ in their last bit between machines.

import { hourMs } from '../../../common/calendar.ts'

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
