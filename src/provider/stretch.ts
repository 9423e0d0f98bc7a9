// Computes the stretch: how many times longer than usual weather stays fresh, so that the budget lasts to the end of the
// UTC day. Rises smoothly as a day's budget is spent faster than the day passes; steady demand keeps it over midnight. Pure.

import { utcDayMs } from '../common/calendar.ts'

/** The spending of a day so far; amounts are in the provider's weight. */
export type DaySpending = {
  readonly limit: number
  /** The fraction of the limit, 0 to 1, that is reserved for cells with nothing cached. */
  readonly reserve: number
  readonly spent: number
  /** Until the end of the day. */
  readonly msLeft: number
}

/** The stretch per unit of daily demand, given what is left to spend; Infinity when nothing is. */
export const priceOf = ({ limit, reserve, spent, msLeft }: DaySpending): number => {
  const left = limit * (1 - reserve) - spent
  return left <= 0 ? Number.POSITIVE_INFINITY : msLeft / utcDayMs / left
}

/** At least 1, the usual freshness. @param demandPerDay the cost of a whole day of usual freshness */
export const stretchAt = (price: number, demandPerDay: number): number =>
  demandPerDay === 0 ? 1 : Math.max(1, demandPerDay * price)
