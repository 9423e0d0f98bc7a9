// The range of each variable, outside which no number is accepted. Ranges are wider than any record on Earth, so that they refuse no
// storm.

import type { Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './weather-variables.ts'

/** The numbers a variable may have, ends included, in the unit of its table. */
export type Range = {
  readonly least: number
  readonly most: number
  /** Only whole numbers are allowed. */
  readonly whole: boolean
  /** The allowed numbers by value: 1 for each of them. */
  readonly codes: Uint8Array | undefined
  /** How far rounding at the provider may carry a value beyond either end: up to there it counts as the end. */
  readonly roundedBelow: number
  readonly roundedAbove: number
}

const exact = { codes: undefined, roundedBelow: 0, roundedAbove: 0 }
const decimals = (least: number, most: number): Range => ({ least, most, whole: false, ...exact })
const wholes = (least: number, most: number): Range => ({ least, most, whole: true, ...exact })

// The codes of WMO table 4677 that the provider uses.
const weatherCodes = [
  0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99,
] as const
export type WeatherCode = (typeof weatherCodes)[number]
const codes: Range = {
  ...wholes(0, 99),
  codes: Uint8Array.from({ length: 100 }, (_, code) =>
    Number((weatherCodes as readonly number[]).includes(code)),
  ),
}

// Records: -89.2 °C (Vostok, 1983) and 56.7 °C (Death Valley, 1913).
const temperature = decimals(-100, 70)
// Wind lowers and moisture raises the felt temperature by some degrees; the record is 81 °C (Dhahran, 2003).
const apparent = decimals(-200, 120)
// The provider rounds to whole per cent: 101 is a saturated cell.
const percent: Range = { ...wholes(0, 100), roundedAbove: 1 }
// Sums that are interpolated fall below 0 by a tenth at most.
const amount = (most: number): Range => ({ ...decimals(0, most), roundedBelow: 0.1 })
// Records: 401 mm in an hour (Shangdi, 1947), 198 mm in a quarter of one (Plumb Point, 1916).
const rain = amount(500)
// The provider makes 0.7 cm of snow of each mm of water.
const snow = amount(350)
// Records: 870 hPa (Typhoon Tip, 1979) and 1,084.8 hPa (Tosontsengel, 2001).
const seaPressure = decimals(800, 1150)
// From the top of Everest, some 310 hPa, to the shore of the Dead Sea.
const surfacePressure = decimals(250, 1150)
// Records: 408 km/h in a gust (Barrow Island, 1996), some 500 km/h in a tornado.
const wind = decimals(0, 600)

export type Variable = keyof typeof currentUnits | keyof typeof hourlyUnits | keyof typeof dailyUnits

/** The range of every variable, the same in each section that has it. */
export const ranges: Readonly<Record<Variable, Range>> = {
  temperature_2m: temperature,
  temperature_2m_max: temperature,
  temperature_2m_min: temperature,
  apparent_temperature: apparent,
  relative_humidity_2m: percent,
  is_day: wholes(0, 1),
  precipitation: rain,
  rain,
  showers: rain,
  snowfall: snow,
  precipitation_probability: percent,
  precipitation_probability_max: percent,
  weather_code: codes,
  cloud_cover: percent,
  pressure_msl: seaPressure,
  surface_pressure: surfacePressure,
  wind_speed_10m: wind,
  wind_direction_10m: wholes(0, 360),
  wind_gusts_10m: wind,
}

export const allowedIn = ({ least, most, whole, codes }: Range): string =>
  codes
    ? `the WMO codes ${weatherCodes.join(', ')}`
    : `${whole ? 'whole numbers' : 'numbers'} from ${least} to ${most}`

export const isWithin = ({ least, most, whole, codes }: Range, value: number): boolean =>
  value >= least && value <= most && (!whole || Number.isInteger(value)) && (!codes || codes[value] === 1)

/** The value of a variable that a provider means by this one: within the range, or NaN if it can't be one. */
export const valueWithin = (range: Range, value: unknown): number => {
  if (typeof value !== 'number') return Number.NaN
  // "+ 0" turns the provider's -0 into 0.
  if (isWithin(range, value)) return value + 0
  const { least, most, roundedBelow, roundedAbove } = range
  if (value > most && value <= most + roundedAbove) return most
  return value < least && value >= least - roundedBelow ? least : Number.NaN
}

const rangesOf = (units: Partial<Record<Variable, string>>): readonly Range[] =>
  Object.keys(units).map(name => ranges[name as Variable])
const sections = [rangesOf(currentUnits), rangesOf(hourlyUnits), rangesOf(dailyUnits)]

/** Whether each value is in the range of its variable, for a timeline from the shared tier. NaN, a missing value, is. */
export const isPlausible = ({ values, quarterHours, hours, days }: Timeline): boolean =>
  [quarterHours, hours, days].every(({ offset, length }, section) =>
    (sections[section] ?? []).every((range, column) => {
      const from = offset + column * length
      for (let i = from; i < from + length; i++) {
        const value = values[i] as number
        if (!Number.isNaN(value) && !isWithin(range, value)) return false
      }
      return true
    }),
  )
