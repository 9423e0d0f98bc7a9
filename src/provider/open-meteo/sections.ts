// The sections of a forecast that make a timeline: the provider's name of each, and its variables with the unit strings
// that they must come in. One table for the query, the decoder, the bounds of a body and the weight. Our names and units
// of variables are the provider's own; a variable that it calls otherwise would be translated here.

import { currentUnits, dailyUnits, hourlyUnits } from '../../weather/weather-variables.ts'

/** The section that each series of a timeline is read from. */
export const sections = {
  quarterHours: { name: 'minutely_15', units: currentUnits },
  hours: { name: 'hourly', units: hourlyUnits },
  days: { name: 'daily', units: dailyUnits },
} as const

/** A variable in two sections counts twice. */
export const variableCount = (...of: readonly { readonly units: object }[]): number =>
  of.reduce((sum, { units }) => sum + Object.keys(units).length, 0)
