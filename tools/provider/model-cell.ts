// Finds the cell of the provider's main model for a point: a reduced Gaussian grid with rows 0.07 degrees apart and fewer cells towards
// the poles (0.095 degrees wide at 24° N). Centres are 32-bit numbers.

import { printFloat } from './fixed-decimals.ts'
import type { Place } from './points.ts'

const rowsPerHemisphere = 1280
const rowDegrees = 180 / (2 * rowsPerHemisphere + 0.5)
// Rows are counted from the pole; the first lies a little less than a full step away from it.
const polarShift = 0.25

/** The centre of the nearest cell, as 32-bit numbers. */
export const modelCellOf = ({ latitude, longitude }: Place): Place => {
  const fromPole = (90 - Math.abs(latitude)) / rowDegrees
  const row = Math.min(rowsPerHemisphere, Math.max(1, Math.round(fromPole + polarShift)))
  const cellDegrees = 360 / (16 + 4 * row)
  const centre = 90 - (row - polarShift) * rowDegrees
  return {
    latitude: Math.fround(latitude < 0 ? -centre : centre),
    longitude: Math.fround(Math.round(longitude / cellDegrees) * cellDegrees),
  }
}

/** The shortest decimal spelling that reads back as the same 32-bit number; a whole number has one decimal. */
export const spell32 = (value: number): string => {
  for (let digits = 6; digits < 9; digits++) {
    const spelled = Number(value.toPrecision(digits))
    if (Math.fround(spelled) === Math.fround(value)) return printFloat(spelled)
  }
  return printFloat(Number(value.toPrecision(9)))
}
