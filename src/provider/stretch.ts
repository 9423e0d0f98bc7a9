// How much longer than usual weather has to stay fresh for the rest of the UTC day to be paid for. Rises smoothly as a
// day's budget is spent faster than the day goes by, and stays the same over midnight while demand does. Pure.

import { utcDayMs } from '../calendar.ts'

/** A day's spending so far; amounts are in the provider's weight. */
export type DaySpending = {
  readonly limit: number
  /** The share of the limit, 0 to 1, that is kept for cells with nothing cached. */
  readonly reserve: number
  readonly spent: number
  /** Until the end of the day. */
  readonly msLeft: number
}

/** The stretch for each unit of daily demand, by what is left to spend; Infinity when nothing is. */
export const priceOf = ({ limit, reserve, spent, msLeft }: DaySpending): number => {
  const left = limit * (1 - reserve) - spent
  return left <= 0 ? Number.POSITIVE_INFINITY : msLeft / utcDayMs / left
}

/** At least 1, which is usual freshness. @param demandPerDay what a whole day of usual freshness would cost */
export const stretchAt = (price: number, demandPerDay: number): number =>
  demandPerDay === 0 ? 1 : Math.max(1, demandPerDay * price)
