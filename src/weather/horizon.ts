// The horizon of timelines: how far they reach into past and future, which decides the length of each series. Follows from
// the configuration, not from the provider. Pure.

import { hourMs } from '../calendar.ts'
import type { Lengths } from './timeline-bytes.ts'
import { forecastDays } from './variables.ts'

/** The future part of a timeline. */
export type Horizon = {
  /** Quarter-hours after the current one. */
  readonly quarterHours: number
  /** Local days, today included. */
  readonly days: number
}

// An hour of quarter-hours and a day before now, so that a clock behind the provider's finds its slice too, also when only
// one of the two is past midnight.
export const pastQuarterHours = 4
export const pastDays = 1

/** How many steps each series of a timeline has. */
export const stepsWithin = ({ quarterHours, days }: Horizon): Lengths => ({
  quarterHours: pastQuarterHours + quarterHours,
  hours: (pastDays + days) * 24,
  days: pastDays + days,
})

/** The horizon that keeps every response complete for `usableForMs` after the load. */
export const horizonFor = (usableForMs: number, hourlyHours: number): Horizon => {
  const hours = Math.ceil(usableForMs / hourMs)
  return {
    quarterHours: hours * 4 + 2,
    // One day more than the last response needs, for a provider whose clock is still at yesterday.
    days: Math.max(9, forecastDays + 1 + Math.ceil(hours / 24), Math.ceil((hours + hourlyHours) / 24) + 2),
  }
}
