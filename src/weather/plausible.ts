// Checks a timeline from the shared tier: each value is in the range of its variable. The decoder of the provider's response
// checks its values itself.

import { isWithin, type Range, ranges } from './ranges.ts'
import type { Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './weather-variables.ts'

const rangesOf = (units: Partial<Record<keyof typeof ranges, string>>): readonly Range[] =>
  Object.keys(units).map(name => ranges[name as keyof typeof ranges])
const sections = [rangesOf(currentUnits), rangesOf(hourlyUnits), rangesOf(dailyUnits)]

/** NaN, a missing value, is plausible. */
export const isPlausible = ({ values, quarterHours, hours, days }: Timeline): boolean =>
  [quarterHours, hours, days].every(({ offset, length }, section) =>
    (sections[section] ?? []).every((range, column) => {
      const from = offset + column * length
      return isColumnWithin(values, from, from + length, range)
    }),
  )

const isColumnWithin = (values: Float32Array, from: number, to: number, range: Range): boolean => {
  for (let i = from; i < to; i++) {
    const value = values[i] as number
    if (!Number.isNaN(value) && !isWithin(range, value)) return false
  }
  return true
}
