// The variables that the product serves, with the provider's strings for the units of the contract, in the order of every response.

/** The fields of `current` besides time and interval; requested from the provider as quarter-hours. */
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
} as const

export const hourlyUnits = {
  temperature_2m: '°C',
  relative_humidity_2m: '%',
  apparent_temperature: '°C',
  precipitation_probability: '%',
  precipitation: 'mm',
  weather_code: 'wmo code',
  cloud_cover: '%',
  wind_speed_10m: 'km/h',
  wind_direction_10m: '°',
  wind_gusts_10m: 'km/h',
  is_day: '',
} as const

export const dailyUnits = {
  weather_code: 'wmo code',
  temperature_2m_max: '°C',
  temperature_2m_min: '°C',
  precipitation_probability_max: '%',
} as const

/** The number of days in every daily forecast, by the contract. */
export const forecastDays = 7
