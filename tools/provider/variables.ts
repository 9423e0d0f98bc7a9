// The variables of the simulated provider by section: unit, decimals, and how the value is computed.

import { currentUnits, type dailyUnits, type hourlyUnits } from 'abohawa/weather/weather-variables.ts'
import type { Weather } from './weather-field.ts'

const quantity = (unit: string, decimals: number) => ({ unit, decimals })
const temperature = quantity(currentUnits.temperature_2m, 1)
const percent = quantity(currentUnits.relative_humidity_2m, 0)
const pressure = quantity(currentUnits.surface_pressure, 1)
const rain = quantity(currentUnits.rain, 2)
const snow = quantity(currentUnits.snowfall, 2)
const speed = quantity(currentUnits.wind_speed_10m, 1)
const direction = quantity(currentUnits.wind_direction_10m, 0)
const code = quantity(currentUnits.weather_code, 0)
const flag = quantity(currentUnits.is_day, 0)
/** Daily variables that are instants, in ms since the epoch. */
export const instant = quantity('iso8601', 0)

type Variable<Source> = ReturnType<typeof quantity> & { readonly of: (source: Source) => number }

export type Variables<Source> = Readonly<Record<string, Variable<Source>>>

/** The variables that the gateway requests. */
type Served<Units, Source> = Readonly<Record<keyof Units, Variable<Source>>>

/** In `current`, `minutely_15` and `hourly`. */
export const instantVariables = {
  temperature_2m: { ...temperature, of: weather => weather.temperature },
  relative_humidity_2m: { ...percent, of: weather => weather.humidity },
  apparent_temperature: { ...temperature, of: weather => weather.apparent },
  is_day: { ...flag, of: weather => weather.day },
  precipitation: { ...rain, of: weather => weather.precipitation },
  rain: { ...rain, of: weather => weather.rain },
  showers: { ...rain, of: weather => weather.showers },
  snowfall: { ...snow, of: weather => weather.snowfall },
  precipitation_probability: { ...percent, of: weather => weather.chance },
  weather_code: { ...code, of: weather => weather.code },
  cloud_cover: { ...percent, of: weather => weather.cloud },
  pressure_msl: { ...pressure, of: weather => weather.seaPressure },
  surface_pressure: { ...pressure, of: weather => weather.surfacePressure },
  wind_speed_10m: { ...speed, of: weather => weather.wind },
  // 360 degrees is printed as 0, which is north too.
  wind_direction_10m: { ...direction, of: weather => Math.round(weather.direction) % 360 },
  wind_gusts_10m: { ...speed, of: weather => weather.gusts },
} as const satisfies Variables<Weather> & Served<typeof currentUnits & typeof hourlyUnits, Weather>

/** A local day: its hours, and the sun over it in ms since the epoch. */
export type Day = { readonly hours: readonly Weather[]; readonly sun: { rise: number; set: number } }

const overDay = (
  { unit, decimals, of }: Variable<Weather>,
  aggregate: (values: readonly number[]) => number,
): Variable<Day> => ({ unit, decimals, of: ({ hours }) => aggregate(hours.map(of)) })

const most = (values: readonly number[]): number => Math.max(...values)
const least = (values: readonly number[]): number => Math.min(...values)
const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** In `daily`. A day without all of its hours has no maximum, minimum or sum. */
export const dailyVariables = {
  weather_code: overDay(instantVariables.weather_code, most),
  temperature_2m_max: overDay(instantVariables.temperature_2m, most),
  temperature_2m_min: overDay(instantVariables.temperature_2m, least),
  precipitation_probability_max: overDay(instantVariables.precipitation_probability, most),
  precipitation_sum: overDay(instantVariables.precipitation, total),
  sunrise: { ...instant, of: ({ sun }) => sun.rise },
  sunset: { ...instant, of: ({ sun }) => sun.set },
} as const satisfies Variables<Day> & Served<typeof dailyUnits, Day>
