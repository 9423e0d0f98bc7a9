// What one point of a request weighs against the provider's limits: by the variables asked for and the days they are
// asked for. Pure; what may be spent is the budget's.

import { currentUnits, dailyUnits, hourlyUnits } from '../weather/variables.ts'
import { type Horizon, pastDays } from './query.ts'

/** The shape of a question, as far as it has a weight. */
export type QuestionShape = {
  /** Over all sections: a variable asked for in three of them counts three times. */
  readonly variables: number
  /** Past and future. */
  readonly days: number
  readonly models?: number
}

/** The weight of one point: never below 1, and fractional above it. */
export const weightOf = ({ variables, days, models = 1 }: QuestionShape): number =>
  Math.max(1, ((variables * models) / 10) * Math.max(1, days / 14))

/** The weight of one point of the question that is asked for every cell. */
export const weightOfPoint = (horizon: Horizon): number =>
  weightOf({
    variables: [currentUnits, hourlyUnits, dailyUnits].flatMap(Object.keys).length,
    days: pastDays + horizon.days,
  })
