// Without it a record storm could be refused as impossible.

import t from 'tap'
import { allowedIn, ranges } from '../../src/weather/ranges.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../src/weather/weather-variables.ts'

const units = { ...currentUnits, ...hourlyUnits, ...dailyUnits }

t.test('every variable has a range, which fits what timelines can keep and its unit', async t => {
  t.strictSame(Object.keys(ranges).sort(), Object.keys(units).sort())
  for (const [variable, { least, most, whole }] of Object.entries(ranges)) {
    const unit = units[variable as keyof typeof units]
    t.ok(least < most && least > -8192 && most < 8192, variable)
    if (unit === '%') t.strictSame([least, most, whole], [0, 100, true], variable)
    if (unit === '°' || unit === 'wmo code' || unit === '') t.equal(whole, true, variable)
    if (unit === 'mm' || unit === 'cm' || unit === 'km/h') t.equal(least, 0, variable)
  }
})

t.test('records lie within', async t => {
  const records: [keyof typeof ranges, number][] = [
    ['temperature_2m', -89.2],
    ['temperature_2m', 56.7],
    ['apparent_temperature', 81],
    ['precipitation', 401],
    ['pressure_msl', 870],
    ['pressure_msl', 1084.8],
    ['surface_pressure', 310],
    ['wind_gusts_10m', 408],
    ['wind_direction_10m', 360],
    ['weather_code', 99],
  ]
  for (const [variable, record] of records) {
    const { least, most, codes } = ranges[variable]
    t.ok(record >= least && record <= most && (!codes || codes[record]), `${variable} ${record}`)
  }
  t.equal(allowedIn(ranges.is_day), 'whole numbers from 0 to 1')
  t.equal(allowedIn(ranges.rain), 'numbers from 0 to 500')
  t.match(allowedIn(ranges.weather_code), /^the WMO codes 0, 1, 2, 3, 45, 48, /)
})
