// The horizon of timelines: how far they reach into past and future, and so the length of each series. Follows from the
// configuration, not from the provider. Pure.

import { hourMs } from '../calendar.ts'
import type { Lengths } from './timeline-bytes.ts'
import { forecastDays } from './variables.ts'

/** How much of the future a timeline holds. */
export type Horizon = {
  /** Quarter-hours after the running one. */
  readonly quarterHours: number
  /** Local days, today included. */
  readonly days: number
}

// An hour of quarter-hours and a day before now, so that a clock which lags behind the provider's finds its slice too,
// also when one of the two is past midnight already.
export const pastQuarterHours = 4
export const pastDays = 1

/** How many steps each series of a timeline has. */
export const stepsWithin = ({ quarterHours, days }: Horizon): Lengths => ({
  quarterHours: pastQuarterHours + quarterHours,
  hours: (pastDays + days) * 24,
  days: pastDays + days,
})

/** The horizon that keeps every answer whole for `usableForMs` after the fetch. */
export const horizonFor = (usableForMs: number, hourlyHours: number): Horizon => {
  const hours = Math.ceil(usableForMs / hourMs)
  return {
    quarterHours: hours * 4 + 2,
    // One day more than the last answer needs, for a provider whose clock still has yesterday.
    days: Math.max(9, forecastDays + 1 + Math.ceil(hours / 24), Math.ceil((hours + hourlyHours) / 24) + 2),
  }
}
