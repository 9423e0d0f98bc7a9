// What a request weighs against the provider's limits: by the variables asked for and the days they are asked for, for
// each point. Pure; what may be spent is the budget's.

import { type Horizon, pastDays } from '../../weather/horizon.ts'
import { sections, variableCount } from './sections.ts'

/** The shape of a request, as far as it has a weight. */
export type RequestShape = {
  /** Over all sections: a variable asked for in three of them counts three times. */
  readonly variables: number
  /** Past and future. */
  readonly days: number
  readonly models?: number
}

/** The weight of one point: never below 1, and fractional above it. */
export const weightOf = ({ variables, days, models = 1 }: RequestShape): number =>
  Math.max(1, ((variables * models) / 10) * Math.max(1, days / 14))

/** The weight of a request that is answered with an error. One that its limits refuse weighs nothing. */
export const weightOfFailure = 1

/** The weight of one point of the request that is sent for every cell. Quarter-hours of the past add nothing to it. */
export const weightOfPoint = (horizon: Horizon): number =>
  weightOf({
    variables: variableCount(sections.quarterHours, sections.hours, sections.days),
    days: pastDays + horizon.days,
  })
