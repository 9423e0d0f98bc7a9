// The variables of the simulated provider, section by section: the quantity of each and how its value is computed. Most
// follow from the weather of an instant. As with the real provider, some names are valid but have no data.

import type { currentUnits, hourlyUnits } from '../src/weather/weather-variables.ts'
import { deficitOf, dewPointOf, evapotranspirationOf, vapourOf, wetBulbOf } from './moisture.ts'
import { clearSkyUvIndex, type Radiation, radiationOf, sunshineShare, uvIndex } from './radiation.ts'
import type { Quantity } from './units.ts'
import type { Weather } from './weather-field.ts'

type Variable<Source> = { readonly quantity: Quantity; readonly of: (source: Source) => number }

/** Variables by their current names. */
export type Variables<Source> = Readonly<Record<string, Variable<Source>>>

/** Variables that must be there: those that the gateway requests. */
type Served<Units, Source> = Readonly<Record<keyof Units, Variable<Source>>>

/** A variable that the models have no data for. */
export const unavailable: Variable<unknown> = { quantity: 'missing', of: () => Number.NaN }

/** A variable by its current or its former name. */
export const variableOf = <Source>(known: Variables<Source>, name: string): Variable<Source> | undefined => {
  const current = currentName(name)
  return Object.hasOwn(known, current) ? known[current] : undefined
}

/** The name that a former spelling stands for: `windspeed_10m` is `wind_speed_10m`. */
export const currentName = (name: string): string =>
  name
    .replace(/^(dew|cloud|weather|wind)(point|cover|code|speed|direction|gusts)/, '$1_$2')
    .replace(/^relativehumidity/, 'relative_humidity')
    .replace(/^vapor_/, 'vapour_')

/** Whether the real provider knows a variable that this one does not. */
export const isUnsimulated = (name: string): boolean => {
  const current = currentName(name)
  return unsimulated.some(pattern => pattern.test(current))
}

const unsimulated = [
  /^(temperature|dew_point|relative_humidity|cloud_cover|wind_speed|wind_direction)_\d+hPa$/,
  /^(vertical_velocity|geopotential_height)_\d+hPa$/,
  /^[a-z0-9_]+_previous_day\d$/,
  /^soil_(temperature|moisture|moisture_index)_\d+(_to_\d+)?cm(_mean)?$/,
  /^(moonrise|moonset|moon_phase)$/,
  /^(growing_degree_days_base_0_limit_50|leaf_wetness_probability|leaf_wetness_probability_mean)$/,
  /^(surface_temperature|skin_temperature|latent_heat_flux|sensible_heat_flux|runoff|albedo|k_index)$/,
]

// Wind grows and turns with height, and air cools.
const windAt =
  (metres: number) =>
  ({ wind }: Weather): number =>
    wind * (metres / 10) ** 0.14
const directionAt =
  (metres: number) =>
  ({ direction }: Weather): number =>
    direction + metres / 20
const temperatureAt =
  (metres: number) =>
  ({ temperature }: Weather): number =>
    temperature - 0.0065 * (metres - 2)

// The deeper the ground, the nearer its temperature is to the mean of the season; the sun heats its surface.
const soilTemperature =
  (share: number, heating: number) =>
  ({ temperature, ground, sun, cloud }: Weather): number =>
    ground + share * (temperature - ground) + heating * Math.max(0, sun) * (1 - 0.006 * cloud)
// Rain of the step wets only the uppermost layers.
const soilMoisture =
  (share: number, soak: number) =>
  ({ wetness, precipitation }: Weather): number =>
    (0.12 + 0.3 * wetness) * share + soak * Math.min(5, precipitation)

// Fog limits visibility to 1 km; damp air and rain reduce it. 24,140 m is the largest value of the models.
const visibilityOf = ({ code, humidity, precipitation, stepHours }: Weather): number => {
  if (code === 45) return Math.max(50, 900 - 250 * Math.max(0, humidity - 97))
  const haze = Math.max(0, (humidity - 50) / 50) ** 2
  return Math.max(100, (24_140 * (1 - 0.75 * haze)) / (1 + (0.25 * precipitation) / stepHours))
}

// Warm and damp air below lets thunderclouds grow.
const capeOf = (weather: Weather): number =>
  160 * Math.max(0, dewPointOf(weather) - 17) + 80 * Math.max(0, weather.temperature - 28)

// mm in the step.
const evapotranspirationIn = (weather: Weather): number =>
  weather.stepHours *
  evapotranspirationOf({ ...weather, radiation: radiationOf(weather.sunBefore, weather.cloud).global })

// Radiation is the mean over the step before the instant; `_instant` is the value at the instant. Tilted planes are level.
const light = <Name extends string>(name: Name, part: keyof Radiation) => {
  const variables: Variables<Weather> = {
    [name]: { quantity: 'radiation', of: ({ sunBefore, cloud }) => radiationOf(sunBefore, cloud)[part] },
    [`${name}_instant`]: { quantity: 'radiation', of: ({ sun, cloud }) => radiationOf(sun, cloud)[part] },
  }
  return variables as Readonly<Record<Name | `${Name}_instant`, Variable<Weather>>>
}

const atHeight = (metres: number): Variables<Weather> => ({
  [`wind_speed_${metres}m`]: { quantity: 'speed', of: windAt(metres) },
  [`wind_direction_${metres}m`]: { quantity: 'direction', of: directionAt(metres) },
  [`temperature_${metres}m`]: { quantity: 'temperature', of: temperatureAt(metres) },
})

const aloft: Variables<Weather> = Object.fromEntries(
  [20, 40, 50, 80, 100, 120, 140, 150, 160, 180, 200].flatMap(metres => Object.entries(atHeight(metres))),
)

/** In `current`, `minutely_15` and `hourly`. */
export const instantVariables = {
  temperature_2m: { quantity: 'temperature', of: weather => weather.temperature },
  relative_humidity_2m: { quantity: 'percent', of: weather => weather.humidity },
  dew_point_2m: { quantity: 'temperature', of: dewPointOf },
  apparent_temperature: { quantity: 'temperature', of: weather => weather.apparent },
  wet_bulb_temperature_2m: { quantity: 'temperature', of: wetBulbOf },
  vapour_pressure_deficit: { quantity: 'deficit', of: deficitOf },
  is_day: { quantity: 'flag', of: weather => weather.day },
  precipitation: { quantity: 'rain', of: weather => weather.precipitation },
  rain: { quantity: 'rain', of: weather => weather.rain },
  showers: { quantity: 'rain', of: weather => weather.showers },
  snowfall: { quantity: 'snow', of: weather => weather.snowfall },
  snowfall_water_equivalent: { quantity: 'rain', of: weather => weather.snowfall / 0.7 },
  snow_depth: { quantity: 'length', of: weather => weather.snowfall },
  precipitation_probability: { quantity: 'percent', of: weather => weather.chance },
  weather_code: { quantity: 'code', of: weather => weather.code },
  cloud_cover: { quantity: 'percent', of: weather => weather.cloud },
  cloud_cover_low: { quantity: 'percent', of: weather => weather.cloudLow },
  cloud_cover_mid: { quantity: 'percent', of: weather => weather.cloudMid },
  cloud_cover_high: { quantity: 'percent', of: weather => weather.cloudHigh },
  visibility: { quantity: 'length', of: visibilityOf },
  pressure_msl: { quantity: 'pressure', of: weather => weather.seaPressure },
  surface_pressure: { quantity: 'pressure', of: weather => weather.surfacePressure },
  wind_speed_10m: { quantity: 'speed', of: weather => weather.wind },
  wind_direction_10m: { quantity: 'direction', of: weather => weather.direction },
  wind_gusts_10m: { quantity: 'speed', of: weather => weather.gusts },
  ...aloft,
  soil_temperature_0cm: { quantity: 'temperature', of: soilTemperature(1, 9) },
  soil_temperature_6cm: { quantity: 'temperature', of: soilTemperature(0.5, 3) },
  soil_temperature_18cm: { quantity: 'temperature', of: soilTemperature(0.2, 0) },
  soil_temperature_54cm: { quantity: 'temperature', of: soilTemperature(0.03, 0) },
  soil_moisture_0_to_1cm: { quantity: 'soilMoisture', of: soilMoisture(0.9, 0.01) },
  soil_moisture_1_to_3cm: { quantity: 'soilMoisture', of: soilMoisture(0.95, 0.005) },
  soil_moisture_3_to_9cm: { quantity: 'soilMoisture', of: soilMoisture(1, 0) },
  soil_moisture_9_to_27cm: { quantity: 'soilMoisture', of: soilMoisture(1.02, 0) },
  soil_moisture_27_to_81cm: { quantity: 'soilMoisture', of: soilMoisture(1.05, 0) },
  uv_index: { quantity: 'index', of: ({ sun, cloud }) => uvIndex(sun, cloud) },
  uv_index_clear_sky: { quantity: 'index', of: ({ sun }) => clearSkyUvIndex(sun) },
  sunshine_duration: {
    quantity: 'duration',
    of: ({ sunBefore, cloud, stepHours }) => 3600 * stepHours * sunshineShare(sunBefore, cloud),
  },
  ...light('shortwave_radiation', 'global'),
  ...light('direct_radiation', 'direct'),
  ...light('diffuse_radiation', 'diffuse'),
  ...light('direct_normal_irradiance', 'beam'),
  ...light('global_tilted_irradiance', 'global'),
  ...light('terrestrial_radiation', 'terrestrial'),
  et0_fao_evapotranspiration: { quantity: 'rain', of: evapotranspirationIn },
  evapotranspiration: { quantity: 'rain', of: weather => evapotranspirationIn(weather) * weather.wetness },
  total_column_integrated_water_vapour: { quantity: 'column', of: weather => 1.7 * vapourOf(weather) },
  cape: { quantity: 'energy', of: capeOf },
  lifted_index: { quantity: 'index', of: weather => 4 - capeOf(weather) / 400 },
  convective_inhibition: { quantity: 'energy', of: weather => Math.max(0, 120 - capeOf(weather) / 20) },
  freezing_level_height: {
    quantity: 'length',
    of: ({ ground, temperature }) => 1500 + 130 * ground + 40 * (temperature - ground),
  },
  boundary_layer_height: {
    quantity: 'length',
    of: ({ sun, cloud, wind }) => 60 + 1500 * Math.max(0, sun) * (1 - 0.006 * cloud) + 12 * wind,
  },
  lightning_potential: unavailable,
  snowfall_height: unavailable,
  updraft: unavailable,
} as const satisfies Variables<Weather> & Served<typeof currentUnits & typeof hourlyUnits, Weather>

/** A local day: its hours, and the sun over it in ms since the epoch. */
export type Day = { readonly hours: readonly Weather[]; readonly sun: { rise: number; set: number } }

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
const aggregations = {
  max: (values: readonly number[]) => Math.max(...values),
  min: (values: readonly number[]) => Math.min(...values),
  mean: (values: readonly number[]) => total(values) / values.length,
  sum: total,
}

// Daily variables, named after the hourly variable that they are computed from: temperature_2m_max.
const daily = (
  aggregation: keyof typeof aggregations,
  ...names: readonly (keyof typeof instantVariables)[]
): Variables<Day> =>
  Object.fromEntries(
    names.map(name => [`${name}_${aggregation}`, overDay(instantVariables[name], aggregations[aggregation])]),
  )

const overDay = (
  { quantity, of }: Variable<Weather>,
  aggregate: (values: readonly number[]) => number,
): Variable<Day> => ({ quantity, of: ({ hours }) => aggregate(hours.map(of)) })

const wide = [
  'temperature_2m',
  'apparent_temperature',
  'relative_humidity_2m',
  'dew_point_2m',
  'wet_bulb_temperature_2m',
  'precipitation_probability',
  'cloud_cover',
  'pressure_msl',
  'surface_pressure',
  'visibility',
  'wind_speed_10m',
  'wind_gusts_10m',
  'cape',
] as const

// The direction of the mean wind vector.
const dominantDirection = ({ hours }: Day): number => {
  const along = (part: (radians: number) => number): number =>
    total(hours.map(({ wind, direction }) => wind * part((direction * Math.PI) / 180)))
  return ((Math.atan2(along(Math.sin), along(Math.cos)) * 180) / Math.PI + 360) % 360
}

/** In `daily`. A day without all of its hours has no maximum, minimum, mean or sum. */
export const dailyVariables: Variables<Day> = {
  weather_code: overDay(instantVariables.weather_code, aggregations.max),
  ...daily('max', ...wide, 'uv_index', 'uv_index_clear_sky', 'vapour_pressure_deficit'),
  ...daily('min', ...wide),
  ...daily('mean', ...wide),
  ...daily('sum', 'precipitation', 'rain', 'showers', 'snowfall', 'snowfall_water_equivalent'),
  ...daily('sum', 'et0_fao_evapotranspiration'),
  et0_fao_evapotranspiration: overDay(instantVariables.et0_fao_evapotranspiration, total),
  precipitation_hours: {
    quantity: 'hours',
    of: ({ hours }) => total(hours.map(({ precipitation: mm }) => (mm > 0 ? 1 : 0 * mm))),
  },
  wind_direction_10m_dominant: { quantity: 'direction', of: dominantDirection },
  shortwave_radiation_sum: {
    quantity: 'radiationSum',
    of: ({ hours }) => total(hours.map(instantVariables.shortwave_radiation.of)) * 0.0036,
  },
  sunrise: { quantity: 'instant', of: ({ sun }) => sun.rise },
  sunset: { quantity: 'instant', of: ({ sun }) => sun.set },
  daylight_duration: { quantity: 'duration', of: ({ sun }) => (sun.set - sun.rise) / 1000 },
  sunshine_duration: overDay(instantVariables.sunshine_duration, total),
  updraft_max: unavailable,
}
