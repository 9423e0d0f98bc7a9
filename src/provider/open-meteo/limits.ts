// Facts of the provider's service: the weight and size of one request, and when model runs come. The client keeps to them, and the
// simulator enforces them.

import { hourMs } from '../../common/calendar.ts'

/** The part of a request that decides its weight. */
export type RequestShape = {
  /** Over all sections: a variable in three of them counts three times. */
  readonly variables: number
  /** Past and future. */
  readonly days: number
  readonly models?: number
}

/** The weight of one point: never below 1, and fractional above it. */
export const weightOf = ({ variables, days, models = 1 }: RequestShape): number =>
  Math.max(1, ((variables * models) / 10) * Math.max(1, days / 14))

/** The weight of a request that gets an error response. A 429 weighs nothing. */
export const weightOfFailure = 1

export const maxPointsPerRequest = 1_000

/** The days of a request that names none. */
export const usualForecastDays = 7

/** As the largest models have it: the interval between two runs, and how long after its begin one is available. */
export const runEveryMs = 6 * hourMs
export const runDelayMs = 6.5 * hourMs
