// Facts of the provider's service: the free limits in weight, the weight and size of one request, and when model runs come. The
// simulator enforces them and the client keeps to them.

import { hourMs } from '../../common/calendar.ts'

/** Weight per window of the free service, for one client address. */
export const freeLimits = { minute: 600, hour: 5_000, day: 10_000 } as const

/** Requests of one client address that run concurrently, and that are queued, before more are refused. */
export const freeConcurrency = { running: 1, waiting: 4 } as const

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

/** A request that weighs more is always refused. */
export const maxWeightPerRequest = 5_000

export const maxPointsPerRequest = 1_000

/** The range of days around today that a request may cover, and its default number of days. */
export const maxPastDays = 92
export const maxForecastDays = 16
export const usualForecastDays = 7

/** As the largest models have it: the interval between two runs, and how long after its begin one is available. */
export const runEveryMs = 6 * hourMs
export const runDelayMs = 6.5 * hourMs
