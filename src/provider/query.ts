// What is asked of the provider for a list of cells: one path with one fixed set of variables, so that a cell has one
// timeline and one cache entry. Pure; sends nothing.

import { hourMs } from '../calendar.ts'
import type { Cell } from '../weather/cell.ts'
import { currentUnits, dailyUnits, forecastDays, hourlyUnits } from '../weather/variables.ts'

/** How much of the future a timeline holds. */
export type Horizon = {
  /** Quarter-hours after the running one. */
  readonly quarterHours: number
  /** Local days, today included. */
  readonly days: number
}

// An hour of quarter-hours and a day before now, so that a clock which lags behind the provider's finds its slice too,
// also when one of the two is past midnight already. Neither adds to the weight.
const pastQuarterHours = 4
export const pastDays = 1

/** How many steps each series of a timeline has. */
export const stepsOf = ({ quarterHours, days }: Horizon) => ({
  quarterHours: pastQuarterHours + quarterHours,
  hours: (pastDays + days) * 24,
  days: pastDays + days,
})

/** The horizon that keeps every answer whole for `usableForMs` after the fetch. */
export const horizonFor = (usableForMs: number, hourlyHours: number): Horizon => {
  const hours = Math.ceil(usableForMs / hourMs)
  return {
    quarterHours: hours * 4 + 2,
    // One day more than the last question needs, for a provider that thought it was still yesterday.
    days: Math.max(9, forecastDays + 1 + Math.ceil(hours / 24), Math.ceil((hours + hourlyHours) / 24) + 2),
  }
}

/** How many steps each series of an answer has. */
export const stepsWithin = ({ quarterHours, days }: Horizon) => ({
  quarterHours: pastQuarterHours + quarterHours,
  hours: (pastDays + days) * 24,
  days: pastDays + days,
})

/** Path and query for cells in this order; the provider answers them in the same order. */
export const pathFor = (cells: readonly Cell[], horizon: Horizon, zone: string): string =>
  `/v1/forecast?latitude=${cells.map(cell => cell.latitude).join(',')}` +
  `&longitude=${cells.map(cell => cell.longitude).join(',')}` +
  `&minutely_15=${Object.keys(currentUnits).join(',')}` +
  `&past_minutely_15=${pastQuarterHours}&forecast_minutely_15=${horizon.quarterHours}` +
  `&hourly=${Object.keys(hourlyUnits).join(',')}` +
  `&daily=${Object.keys(dailyUnits).join(',')}` +
  `&past_days=${pastDays}&forecast_days=${horizon.days}&timezone=${encodeURIComponent(zone)}`
