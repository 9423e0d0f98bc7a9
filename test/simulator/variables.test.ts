// Every variable in the provider's documentation has values with its unit, and they are consistent with the other
// variables.

import t from 'tap'
import { dhaka, simulate } from './simulated.ts'

const { send } = await simulate(t, {}, '2026-07-14T00:00:00Z')

const hourlyUnits: Record<string, [unit: string, decimals: number, low: number, high: number]> = {
  temperature_2m: ['°C', 1, 5, 45],
  relative_humidity_2m: ['%', 0, 5, 100],
  dew_point_2m: ['°C', 1, -5, 32],
  apparent_temperature: ['°C', 1, 0, 55],
  precipitation_probability: ['%', 0, 0, 100],
  precipitation: ['mm', 2, 0, 120],
  rain: ['mm', 2, 0, 120],
  showers: ['mm', 2, 0, 120],
  snowfall: ['cm', 2, 0, 0],
  snowfall_water_equivalent: ['mm', 2, 0, 0],
  snow_depth: ['m', 2, 0, 0],
  weather_code: ['wmo code', 0, 0, 99],
  pressure_msl: ['hPa', 1, 980, 1030],
  surface_pressure: ['hPa', 1, 980, 1030],
  cloud_cover: ['%', 0, 0, 100],
  cloud_cover_low: ['%', 0, 0, 100],
  cloud_cover_mid: ['%', 0, 0, 100],
  cloud_cover_high: ['%', 0, 0, 100],
  visibility: ['m', 2, 50, 24_140],
  evapotranspiration: ['mm', 2, 0, 1.2],
  et0_fao_evapotranspiration: ['mm', 2, 0, 1.2],
  vapour_pressure_deficit: ['kPa', 2, 0, 6],
  wind_speed_10m: ['km/h', 1, 0, 90],
  wind_speed_80m: ['km/h', 1, 0, 140],
  wind_speed_100m: ['km/h', 1, 0, 150],
  wind_speed_120m: ['km/h', 1, 0, 150],
  wind_speed_180m: ['km/h', 1, 0, 160],
  wind_direction_10m: ['°', 0, 0, 359],
  wind_direction_80m: ['°', 0, 0, 359],
  wind_direction_120m: ['°', 0, 0, 359],
  wind_direction_180m: ['°', 0, 0, 359],
  wind_gusts_10m: ['km/h', 1, 0, 150],
  temperature_80m: ['°C', 1, 5, 45],
  temperature_120m: ['°C', 1, 5, 45],
  temperature_180m: ['°C', 1, 5, 45],
  soil_temperature_0cm: ['°C', 1, 5, 60],
  soil_temperature_6cm: ['°C', 1, 5, 50],
  soil_temperature_18cm: ['°C', 1, 5, 45],
  soil_temperature_54cm: ['°C', 1, 5, 40],
  soil_moisture_0_to_1cm: ['m³/m³', 3, 0.05, 0.5],
  soil_moisture_1_to_3cm: ['m³/m³', 3, 0.05, 0.5],
  soil_moisture_3_to_9cm: ['m³/m³', 3, 0.05, 0.5],
  soil_moisture_9_to_27cm: ['m³/m³', 3, 0.05, 0.5],
  soil_moisture_27_to_81cm: ['m³/m³', 3, 0.05, 0.5],
  uv_index: ['', 2, 0, 14],
  uv_index_clear_sky: ['', 2, 0, 14],
  is_day: ['', 0, 0, 1],
  sunshine_duration: ['s', 2, 0, 3600],
  wet_bulb_temperature_2m: ['°C', 1, 0, 35],
  total_column_integrated_water_vapour: ['kg/m²', 2, 5, 80],
  cape: ['J/kg', 1, 0, 6000],
  lifted_index: ['', 2, -15, 15],
  convective_inhibition: ['J/kg', 1, 0, 400],
  freezing_level_height: ['m', 2, 1500, 7000],
  boundary_layer_height: ['m', 2, 20, 4000],
  shortwave_radiation: ['W/m²', 1, 0, 1200],
  direct_radiation: ['W/m²', 1, 0, 1200],
  diffuse_radiation: ['W/m²', 1, 0, 700],
  direct_normal_irradiance: ['W/m²', 1, 0, 1200],
  global_tilted_irradiance: ['W/m²', 1, 0, 1200],
  terrestrial_radiation: ['W/m²', 1, 0, 1420],
  shortwave_radiation_instant: ['W/m²', 1, 0, 1200],
  direct_radiation_instant: ['W/m²', 1, 0, 1200],
  diffuse_radiation_instant: ['W/m²', 1, 0, 700],
  direct_normal_irradiance_instant: ['W/m²', 1, 0, 1200],
  global_tilted_irradiance_instant: ['W/m²', 1, 0, 1200],
  terrestrial_radiation_instant: ['W/m²', 1, 0, 1420],
}

const dailyUnits: Record<string, [unit: string, decimals: number, low: number, high: number]> = {
  weather_code: ['wmo code', 0, 0, 99],
  temperature_2m_max: ['°C', 1, 5, 45],
  temperature_2m_mean: ['°C', 1, 5, 45],
  temperature_2m_min: ['°C', 1, 5, 45],
  apparent_temperature_max: ['°C', 1, 0, 55],
  apparent_temperature_mean: ['°C', 1, 0, 55],
  apparent_temperature_min: ['°C', 1, 0, 55],
  daylight_duration: ['s', 2, 37_000, 50_000],
  sunshine_duration: ['s', 2, 0, 50_000],
  uv_index_max: ['', 2, 0, 14],
  uv_index_clear_sky_max: ['', 2, 5, 14],
  rain_sum: ['mm', 2, 0, 400],
  showers_sum: ['mm', 2, 0, 400],
  snowfall_water_equivalent_sum: ['mm', 2, 0, 0],
  snowfall_sum: ['cm', 2, 0, 0],
  precipitation_sum: ['mm', 2, 0, 400],
  precipitation_hours: ['h', 1, 0, 24],
  precipitation_probability_max: ['%', 0, 0, 100],
  precipitation_probability_mean: ['%', 0, 0, 100],
  precipitation_probability_min: ['%', 0, 0, 100],
  wind_speed_10m_max: ['km/h', 1, 0, 90],
  wind_speed_10m_mean: ['km/h', 1, 0, 90],
  wind_gusts_10m_max: ['km/h', 1, 0, 150],
  wind_direction_10m_dominant: ['°', 0, 0, 359],
  shortwave_radiation_sum: ['MJ/m²', 2, 2, 34],
  et0_fao_evapotranspiration: ['mm', 2, 0, 10],
  et0_fao_evapotranspiration_sum: ['mm', 2, 0, 10],
  dew_point_2m_mean: ['°C', 1, -5, 32],
  relative_humidity_2m_mean: ['%', 0, 5, 100],
  relative_humidity_2m_max: ['%', 0, 5, 100],
  relative_humidity_2m_min: ['%', 0, 5, 100],
  cloud_cover_mean: ['%', 0, 0, 100],
  pressure_msl_mean: ['hPa', 1, 980, 1030],
  surface_pressure_mean: ['hPa', 1, 980, 1030],
  visibility_min: ['m', 2, 50, 24_140],
  cape_max: ['J/kg', 1, 0, 6000],
  wet_bulb_temperature_2m_max: ['°C', 1, 0, 35],
  vapour_pressure_deficit_max: ['kPa', 2, 0, 6],
}

// The printed values of a variable in a section that holds arrays.
const printed = (text: string, section: string, name: string): string[] => {
  const data = text.slice(text.indexOf(`"${section}":{`))
  return (new RegExp(`"${name}":\\[([^\\]]*)\\]`).exec(data)?.[1] ?? '').split(',')
}

t.test('the documented variables have their units, their decimals and sound values', async t => {
  const names = { hourly: Object.keys(hourlyUnits), daily: Object.keys(dailyUnits) }
  const { status, text, body } = await send(
    dhaka(`hourly=${names.hourly}&daily=${names.daily}&minutely_15=${names.hourly}&current=${names.hourly}`),
  )
  t.equal(status, 200, text.slice(0, 200))
  for (const [section, table] of [
    ['hourly', hourlyUnits],
    ['minutely_15', hourlyUnits],
    ['daily', dailyUnits],
  ] as const)
    for (const [name, [unit, decimals, low, high]] of Object.entries(table)) {
      t.equal(body[`${section}_units`][name], unit, `${section} ${name}`)
      const pattern = new RegExp(decimals === 0 ? '^-?\\d+$' : `^-?\\d+\\.\\d{${decimals}}$`)
      const wrong = printed(text, section, name).filter(
        value => !pattern.test(value) || Number(value) < low || Number(value) > high,
      )
      t.strictSame(wrong, [], `${section} ${name}`)
      if (section === 'hourly') t.equal(typeof body.current[name], 'number', `current ${name}`)
    }
})

t.test('derived variables agree with the weather they follow from', async t => {
  const names = Object.keys(hourlyUnits)
  const { body } = await send(dhaka(`hourly=${names}&daily=${Object.keys(dailyUnits)}&forecast_days=9`))
  const { hourly, daily } = body
  const fault = (i: number): string | undefined => {
    const at = (name: string): number => hourly[name][i]
    const saturation = (celsius: number): number => 6.112 * Math.exp((17.62 * celsius) / (243.12 + celsius))
    const humidity = (100 * saturation(at('dew_point_2m'))) / saturation(at('temperature_2m'))
    if (Math.abs(humidity - at('relative_humidity_2m')) > 1.2) return `dew point gives ${humidity} %`
    if (at('dew_point_2m') > at('temperature_2m')) return 'dew point above the temperature'
    if (at('wet_bulb_temperature_2m') > at('temperature_2m') + 0.1) return 'wet bulb above the temperature'
    if (at('wet_bulb_temperature_2m') < at('dew_point_2m') - 1.2) return 'wet bulb below the dew point'
    for (const layer of ['low', 'mid', 'high'])
      if (at(`cloud_cover_${layer}`) > at('cloud_cover')) return `more ${layer} cloud than cloud`
    if (at('uv_index') > at('uv_index_clear_sky')) return 'cloud adds ultraviolet'
    const dark = at('is_day') === 0
    if (dark && at('uv_index') + at('shortwave_radiation_instant') > 0) return 'light at night'
    if (at('shortwave_radiation') > at('terrestrial_radiation')) return 'the air adds light'
    const parts = at('direct_radiation') + at('diffuse_radiation')
    if (Math.abs(parts - at('shortwave_radiation')) > 0.11) return `light adds up to ${parts}`
    if (at('wind_speed_80m') < at('wind_speed_10m')) return 'less wind higher up'
    if (at('weather_code') === 45 && at('visibility') > 1000) return 'sight in fog'
    return undefined
  }
  for (const [i, time] of hourly.time.entries()) {
    const found = fault(i)
    if (found) t.fail(`${time}: ${found}`)
  }
  t.ok(Math.max(...hourly.uv_index_clear_sky) > 9, 'the July sun is high')
  const noon = hourly.time.indexOf('2026-07-14T12:00')
  t.ok(hourly.shortwave_radiation[noon] > 100, 'there is light at noon')
  for (const [i, day] of daily.time.entries()) {
    const hours = (name: string): number[] => hourly[name].slice(i * 24, i * 24 + 24)
    const sum = (name: string): number => hours(name).reduce((a, b) => a + b, 0)
    const near = (name: string, expected: number, within: number) =>
      t.ok(Math.abs(daily[name][i] - expected) <= within, `${day} ${name}: ${daily[name][i]}, ${expected}`)
    near('temperature_2m_mean', sum('temperature_2m') / 24, 0.1)
    near('apparent_temperature_max', Math.max(...hours('apparent_temperature')), 0)
    near('apparent_temperature_min', Math.min(...hours('apparent_temperature')), 0)
    near('rain_sum', sum('rain'), 1e-9)
    near('showers_sum', sum('showers'), 1e-9)
    near('precipitation_hours', hours('precipitation').filter(amount => amount > 0).length, 0)
    near('uv_index_max', Math.max(...hours('uv_index')), 0)
    near('wind_speed_10m_max', Math.max(...hours('wind_speed_10m')), 0)
    near('wind_gusts_10m_max', Math.max(...hours('wind_gusts_10m')), 0)
    near('shortwave_radiation_sum', (sum('shortwave_radiation') * 3600) / 1e6, 0.02)
    near('et0_fao_evapotranspiration', sum('et0_fao_evapotranspiration'), 0.13)
    near('sunshine_duration', sum('sunshine_duration'), 0.2)
    t.ok(daily.sunshine_duration[i] <= daily.daylight_duration[i], `${day}: sunshine within daylight`)
  }
})

t.test('lengths follow the unit of precipitation', async t => {
  const { body } = await send(
    dhaka('hourly=visibility,et0_fao_evapotranspiration&daily=rain_sum&precipitation_unit=inch'),
  )
  t.match(body.hourly_units, { visibility: 'ft', et0_fao_evapotranspiration: 'inch' })
  t.equal(body.daily_units.rain_sum, 'inch')
})

t.test('former spellings are valid and come back as requested', async t => {
  const former =
    'relativehumidity_2m,dewpoint_2m,weathercode,cloudcover,cloudcover_low,windspeed_10m,winddirection_10m,' +
    'windgusts_10m,vapor_pressure_deficit'
  const { body } = await send(
    dhaka(`hourly=${former},dew_point_2m&daily=weathercode,windspeed_10m_max,winddirection_10m_dominant`),
  )
  t.strictSame(Object.keys(body.hourly).slice(1), [...former.split(','), 'dew_point_2m'])
  t.strictSame(body.hourly.dewpoint_2m, body.hourly.dew_point_2m)
  t.equal(body.daily_units.windspeed_10m_max, 'km/h')
})
