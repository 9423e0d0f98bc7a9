// The weight of a request against the provider's limits: by its variables and days, for each point. Pure; the budget decides
// what may be spent.

import { type Horizon, pastDays } from '../../weather/horizon.ts'
import { sections, variableCount } from './sections.ts'

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

/** The weight of one point of the request for a cell. Quarter-hours of the past add nothing. */
export const weightOfPoint = (horizon: Horizon): number =>
  weightOf({
    variables: variableCount(sections.quarterHours, sections.hours, sections.days),
    days: pastDays + horizon.days,
  })
