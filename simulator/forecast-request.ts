// Parses the parameters of a call into a validated forecast request, or throws the provider's refusal. Does not check limits
// and keys.

import { maxForecastDays, maxPastDays, usualForecastDays } from '../src/provider/open-meteo/limits.ts'
import { weightOf } from '../src/provider/open-meteo/weight.ts'
import { type Format, formats } from './formats.ts'
import { readChoice, readCount, readDates, readNames, refuseUnsimulated } from './parameter-values.ts'
import type { Parameters } from './parameters.ts'
import { type Point, readPoints } from './points.ts'
import type { StepCounts, Stretch, TimeFormat } from './time-axis.ts'
import { type UnitChoice, unitChoices } from './units.ts'
import { dailyVariables, instantVariables } from './variables.ts'

/** The sections a call can request, in the order of the response. */
export type SectionName = 'current' | 'minutely_15' | 'hourly' | 'daily'

/** A valid call: every value checked, defaults filled in. */
export type ForecastRequest = Stretch & {
  readonly points: readonly Point[]
  readonly variables: Readonly<Record<SectionName, readonly string[]>>
  readonly hours: StepCounts
  readonly quarterHours: StepCounts
  readonly timeformat: TimeFormat
  readonly format: Format
  readonly units: UnitChoice
  /** The weight of the call against the limits. */
  readonly weight: number
  /** Formats times with this offset, whatever the zone is. */
  readonly offsetSeconds?: number
}

/** The request, or undefined when it has no coordinates. @throws Refusal */
export const readForecastRequest = (given: Parameters, now: number): ForecastRequest | undefined => {
  if (!given.list('latitude') && !given.list('longitude')) return undefined
  refuseUnsimulated(given)
  const points = readPoints(given)
  const named = {
    current: readNames(given, 'current', instantVariables),
    minutely_15: readNames(given, 'minutely_15', instantVariables),
    hourly: readNames(given, 'hourly', instantVariables),
    daily: readNames(given, 'daily', dailyVariables),
  }
  const pastDays = readCount(given, 'past_days', maxPastDays) ?? 0
  const forecastDays = readCount(given, 'forecast_days', maxForecastDays) ?? usualForecastDays
  const dates = readDates(given, now)
  const format = readChoice(given, 'format', formats)
  const timeformat = readChoice(given, 'timeformat', { iso8601: true, unixtime: true })
  const variables = Object.values(named).reduce((sum, names) => sum + names.length, 0)
  return {
    points,
    variables: {
      current: [...new Set(named.current)],
      minutely_15: [...new Set(named.minutely_15)],
      hourly: [...new Set(named.hourly)],
      daily: [...new Set(named.daily)],
    },
    pastDays,
    forecastDays,
    dates,
    hours: {
      past: readCount(given, 'past_hours', maxPastDays * 24),
      forecast: readCount(given, 'forecast_hours', maxForecastDays * 24),
    },
    quarterHours: {
      past: readCount(given, 'past_minutely_15', maxPastDays * 96),
      forecast: readCount(given, 'forecast_minutely_15', maxForecastDays * 96),
    },
    format,
    // FlatBuffers responses have no texts for times.
    timeformat: format === 'flatbuffers' ? 'unixtime' : timeformat,
    units: readUnits(given),
    weight: points.length * weightOf({ variables, days: dates?.days ?? pastDays + forecastDays }),
  }
}

const readUnits = (given: Parameters): UnitChoice => {
  // The old spelling wins.
  const speed = given.text('windspeed_unit') === undefined ? 'wind_speed_unit' : 'windspeed_unit'
  return {
    temperature_unit: readChoice(given, 'temperature_unit', unitChoices.temperature_unit),
    wind_speed_unit: readChoice(given, speed, unitChoices.wind_speed_unit),
    precipitation_unit: readChoice(given, 'precipitation_unit', unitChoices.precipitation_unit),
  }
}
