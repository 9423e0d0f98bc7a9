// Reads the parameters of a call into a validated forecast request, or throws the provider's refusal.

import { usualForecastDays, weightOf } from 'abohawa/protocol/limits.ts'
import { countIn, listIn, namesIn, type Parameters, refuseUnsimulated } from './parameters.ts'
import { type Place, readPoints, readZone, type Zone } from './points.ts'
import type { StepCounts, Stretch } from './time-axis.ts'
import { dailyVariables, instantVariables } from './variables.ts'

/** The range of days around today that a request may cover. */
const maxPastDays = 92
const maxForecastDays = 16

/** The sections a call can request, in the order of the response. */
export type SectionName = 'current' | 'minutely_15' | 'hourly' | 'daily'

/** A valid call: every value checked, defaults filled in. */
export type ForecastRequest = Stretch & {
  readonly points: readonly Place[]
  readonly zone: Zone
  readonly variables: Readonly<Record<SectionName, readonly string[]>>
  readonly hours: StepCounts
  readonly quarterHours: StepCounts
  /** The weight of the call against the limits. */
  readonly weight: number
  /** Formats times with this offset, whatever the zone is. */
  readonly offsetSeconds?: number
}

/** The request, or undefined when it has no coordinates. @throws Refusal */
export const readForecastRequest = (given: Parameters): ForecastRequest | undefined => {
  if (!listIn(given, 'latitude') && !listIn(given, 'longitude')) return undefined
  refuseUnsimulated(given)
  const points = readPoints(given)
  const named = {
    current: namesIn(given, 'current', instantVariables),
    minutely_15: namesIn(given, 'minutely_15', instantVariables),
    hourly: namesIn(given, 'hourly', instantVariables),
    daily: namesIn(given, 'daily', dailyVariables),
  }
  const pastDays = countIn(given, 'past_days', maxPastDays) ?? 0
  const forecastDays = countIn(given, 'forecast_days', maxForecastDays) ?? usualForecastDays
  // Repeated names are charged too.
  const charged = Object.values(named).reduce((sum, names) => sum + names.length, 0)
  const distinct = Object.entries(named).map(([section, names]) => [section, [...new Set(names)]])
  return {
    points,
    zone: readZone(given),
    variables: Object.fromEntries(distinct) as Record<SectionName, string[]>,
    pastDays,
    forecastDays,
    hours: {
      past: countIn(given, 'past_hours', maxPastDays * 24),
      forecast: countIn(given, 'forecast_hours', maxForecastDays * 24),
    },
    quarterHours: {
      past: countIn(given, 'past_minutely_15', maxPastDays * 96),
      forecast: countIn(given, 'forecast_minutely_15', maxForecastDays * 96),
    },
    weight: points.length * weightOf({ variables: charged, days: pastDays + forecastDays }),
  }
}
