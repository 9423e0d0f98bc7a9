// Every variable that the gateway requests has values with its unit and decimals, within what is possible in July.

import t from 'tap'
import { dhaka, simulate } from './simulated.ts'

const { send } = await simulate(t, {}, '2026-07-14T00:00:00Z')

const hourlyUnits: Record<string, [unit: string, decimals: number, low: number, high: number]> = {
  temperature_2m: ['°C', 1, 5, 45],
  relative_humidity_2m: ['%', 0, 5, 100],
  apparent_temperature: ['°C', 1, 0, 55],
  precipitation_probability: ['%', 0, 0, 100],
  precipitation: ['mm', 2, 0, 120],
  rain: ['mm', 2, 0, 120],
  showers: ['mm', 2, 0, 120],
  snowfall: ['cm', 2, 0, 0],
  weather_code: ['wmo code', 0, 0, 99],
  pressure_msl: ['hPa', 1, 980, 1030],
  surface_pressure: ['hPa', 1, 980, 1030],
  cloud_cover: ['%', 0, 0, 100],
  wind_speed_10m: ['km/h', 1, 0, 90],
  wind_direction_10m: ['°', 0, 0, 359],
  wind_gusts_10m: ['km/h', 1, 0, 150],
  is_day: ['', 0, 0, 1],
}

const dailyUnits: Record<string, [unit: string, decimals: number, low: number, high: number]> = {
  weather_code: ['wmo code', 0, 0, 99],
  temperature_2m_max: ['°C', 1, 5, 45],
  temperature_2m_min: ['°C', 1, 5, 45],
  precipitation_sum: ['mm', 2, 0, 400],
  precipitation_probability_max: ['%', 0, 0, 100],
}

// The printed values of a variable in a section that holds arrays.
const printed = (text: string, section: string, name: string): string[] => {
  const data = text.slice(text.indexOf(`"${section}":{`))
  return (new RegExp(`"${name}":\\[([^\\]]*)\\]`).exec(data)?.[1] ?? '').split(',')
}

t.test('the variables have their units, their decimals and sound values', async t => {
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
