// The variables the simulated provider knows, section by section: the quantity each is measured in and where its value
// comes from. Some it knows but has no data for, as the real one does.

import type { Quantity } from './units.ts'
import type { Weather } from './weather-field.ts'

type Variable<Source> = { readonly quantity: Quantity; readonly of: (source: Source) => number }

/** A variable the models have no data for. */
export const unavailable: Variable<unknown> = { quantity: 'missing', of: () => Number.NaN }

/** In `current`, `minutely_15` and `hourly`. */
export const instantVariables: Readonly<Record<string, Variable<Weather>>> = {
  temperature_2m: { quantity: 'temperature', of: weather => weather.temperature },
  relative_humidity_2m: { quantity: 'percent', of: weather => weather.humidity },
  apparent_temperature: { quantity: 'temperature', of: weather => weather.apparent },
  is_day: { quantity: 'flag', of: weather => weather.day },
  precipitation: { quantity: 'rain', of: weather => weather.precipitation },
  rain: { quantity: 'rain', of: weather => weather.rain },
  showers: { quantity: 'rain', of: weather => weather.showers },
  snowfall: { quantity: 'snow', of: weather => weather.snowfall },
  weather_code: { quantity: 'code', of: weather => weather.code },
  cloud_cover: { quantity: 'percent', of: weather => weather.cloud },
  pressure_msl: { quantity: 'pressure', of: weather => weather.seaPressure },
  surface_pressure: { quantity: 'pressure', of: weather => weather.surfacePressure },
  wind_speed_10m: { quantity: 'speed', of: weather => weather.wind },
  wind_direction_10m: { quantity: 'direction', of: weather => weather.direction },
  wind_gusts_10m: { quantity: 'speed', of: weather => weather.gusts },
  precipitation_probability: { quantity: 'percent', of: weather => weather.chance },
  visibility: unavailable,
  freezing_level_height: unavailable,
}

/** A local day: its hours, and the sun over it in ms since the epoch. */
export type Day = { readonly hours: readonly Weather[]; readonly sun: { rise: number; set: number } }

/** In `daily`. A day that lacks an hour at its end has no maximum, minimum or sum. */
export const dailyVariables: Readonly<Record<string, Variable<Day>>> = {
  weather_code: { quantity: 'code', of: day => highest(day, weather => weather.code) },
  temperature_2m_max: { quantity: 'temperature', of: day => highest(day, weather => weather.temperature) },
  temperature_2m_min: { quantity: 'temperature', of: day => -highest(day, weather => -weather.temperature) },
  precipitation_probability_max: { quantity: 'percent', of: day => highest(day, weather => weather.chance) },
  precipitation_sum: {
    quantity: 'rain',
    of: ({ hours }) => hours.reduce((sum, weather) => sum + weather.precipitation, 0),
  },
  sunrise: { quantity: 'instant', of: ({ sun }) => sun.rise },
  sunset: { quantity: 'instant', of: ({ sun }) => sun.set },
  uv_index_max: unavailable,
}

const highest = ({ hours }: Day, of: (weather: Weather) => number): number => Math.max(...hours.map(of))
