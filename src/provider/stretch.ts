// How much longer than usual weather has to stay fresh for the rest of the UTC day to be paid for. Rises smoothly as a
// day's budget is spent faster than the day goes by, and stays the same over midnight while demand does. Pure.

import { utcDayMs } from '../calendar.ts'

/** A day's spending so far; amounts are in the provider's weight. */
export type DaySpending = {
  readonly limit: number
  /** The share of the limit, 0 to 1, that is kept for cells with nothing cached. */
  readonly reserve: number
  readonly spent: number
  /** What a whole day of usual freshness would cost. */
  readonly demandPerDay: number
  /** Until the end of the day. */
  readonly msLeft: number
}

/** At least 1, which is usual freshness; Infinity when nothing is left to spend today. */
export const stretchOf = ({ limit, reserve, spent, demandPerDay, msLeft }: DaySpending): number => {
  const left = limit * (1 - reserve) - spent
  if (left <= 0) return Number.POSITIVE_INFINITY
  const demandLeft = demandPerDay * (msLeft / utcDayMs)
  return Math.max(1, demandLeft / left)
}
