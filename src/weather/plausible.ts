// Whether a timeline that comes from elsewhere than the provider holds weather: each value in the range of its variable.
// The provider's own values are looked at while they are decoded.

import { isWithin, type Range, ranges } from './ranges.ts'
import type { Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './variables.ts'

const rangesOf = (units: Partial<Record<keyof typeof ranges, string>>): readonly Range[] =>
  Object.keys(units).map(name => ranges[name as keyof typeof ranges])
const sections = [rangesOf(currentUnits), rangesOf(hourlyUnits), rangesOf(dailyUnits)]

/** Missing values, NaN, are weather too. */
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
