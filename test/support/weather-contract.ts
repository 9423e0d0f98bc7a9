// The weather fields of the API contract (docs/api.md), written out once for tests and the fuzzer. Independent of
// src/weather/weather-variables.ts, which must agree with them.

/** The variables of the `current` block, with their units. */
export const currentUnits = {
  temperature_2m: '°C',
  relative_humidity_2m: '%',
  apparent_temperature: '°C',
  is_day: '',
  precipitation: 'mm',
  rain: 'mm',
  showers: 'mm',
  snowfall: 'cm',
  weather_code: 'wmo code',
  cloud_cover: '%',
  pressure_msl: 'hPa',
  surface_pressure: 'hPa',
  wind_speed_10m: 'km/h',
  wind_direction_10m: '°',
  wind_gusts_10m: 'km/h',
}

export const currentVariables: readonly string[] = Object.keys(currentUnits)

/** The variables of the `hourly` block. */
export const hourlyVariables: readonly string[] = [
  ...['temperature_2m', 'relative_humidity_2m', 'apparent_temperature', 'precipitation_probability'],
  ...['precipitation', 'weather_code', 'cloud_cover', 'wind_speed_10m', 'wind_direction_10m'],
  ...['wind_gusts_10m', 'is_day'],
]

/** The variables of the `daily` block. */
export const dailyVariables: readonly string[] = [
  ...['weather_code', 'temperature_2m_max', 'temperature_2m_min', 'precipitation_probability_max'],
]
