// How far timelines reach into past and future, which decides the length of each series; and how long an entry may be served after its
// fetch, which decides the reach. Follows from the configuration.

import { hourMs, quarterHourMs, utcDayMs } from '../common/calendar.ts'
import type { Span } from './timeline.ts'
import { forecastDays } from './weather-variables.ts'

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

// Beyond these days a request weighs more against the provider's limits.
const maxDays = 14

export type Lengths = { readonly quarterHours: number; readonly hours: number; readonly days: number }

export const stepsWithin = ({ quarterHours, days }: Horizon): Lengths => ({
  quarterHours: pastQuarterHours + quarterHours,
  hours: (pastDays + days) * 24,
  days: pastDays + days,
})

export type FreshnessOptions = {
  /** The least time an entry is fresh, by age. */
  readonly freshForMs: number
  /** The largest jitter, as a share of `freshForMs`, so that entries loaded together do not turn stale together. */
  readonly freshSpread: number
  /** The most that freshness is stretched to, and the longest an entry is fresh without a newer run; at least freshFor. */
  readonly freshForAtMostMs: number
  /** How long before it turns stale an entry in demand is refreshed. */
  readonly refreshAheadForMs: number
  /** How long after it turned stale an entry may still be served: stale-while-revalidate, and stale-if-error (RFC 5861). */
  readonly staleForMs: number
}

/** The longest that an entry is fresh, but for jitter. */
export const maxFreshMs = ({ freshForMs, freshForAtMostMs }: FreshnessOptions): number =>
  Math.max(freshForMs, freshForAtMostMs)

/** How long before it turns stale an entry is due: at most a tenth of the freshness, so that it is not due for most of its life. */
export const refreshLeadMs = ({ refreshAheadForMs, freshForMs }: FreshnessOptions): number =>
  Math.min(refreshAheadForMs, freshForMs / 10)

/** The longest time after its fetch that any entry is served under these options. */
export const longestUseMs = (options: FreshnessOptions): number =>
  maxFreshMs(options) * (1 + options.freshSpread) + refreshLeadMs(options) + options.staleForMs

/** The horizon that keeps every response complete for `usableForMs` after the load. */
export const horizonFor = (usableForMs: number, hourlyHours: number): Horizon => {
  const hours = Math.ceil(usableForMs / hourMs)
  return {
    quarterHours: hours * 4 + 2,
    // One day more than the last response needs, for a provider whose clock is still at yesterday.
    days: Math.min(
      maxDays - pastDays,
      Math.max(9, forecastDays + 1 + Math.ceil(hours / 24), Math.ceil((hours + hourlyHours) / 24) + 2),
    ),
  }
}

/** The horizon of the default configuration, and of bytes without lengths: part of the stored format, so it never changes. */
export const usualHorizon: Horizon = { quarterHours: 110, days: 10 }
export const usualLengths: Lengths = stepsWithin(usualHorizon)

/** No timeline is longer: twice 48 hours of use, and an hour. */
export const longestLengths: Lengths = stepsWithin({ quarterHours: 98 * 4 + 2, days: maxDays - pastDays })

/** Until when a timeline of these spans has all that any response needs, ms since the epoch. */
export const coverageEndOf = (
  { quarterHours, hours, days }: { readonly quarterHours: Span; readonly hours: Span; readonly days: Span },
  hourlyHours: number,
): number =>
  Math.min(
    quarterHours.start + quarterHours.length * quarterHourMs,
    hours.start + (hours.length - hourlyHours + 1) * hourMs,
    // Hours begin with the first local day.
    hours.start + (days.length - forecastDays + 1) * utcDayMs,
  )
