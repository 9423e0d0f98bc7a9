// Without it the simulated weather could be impossible, or unlike Bangladesh.

import t from 'tap'
import { modelCellOf } from '../../../tools/provider/model-cell.ts'
import { broadHeight, groundHeight } from '../../../tools/provider/terrain.ts'
import { createSiteWeather, type Weather } from '../../../tools/provider/weather-field.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const places = {
  dhaka: [23.8103, 90.4125],
  chattogram: [22.3569, 91.7832],
  coxsBazar: [21.4272, 92.0058],
  sylhet: [24.8949, 91.8687],
  rajshahi: [24.3745, 88.6042],
  rangpur: [25.7439, 89.2752],
  khulna: [22.8456, 89.5403],
  bandarban: [22.1953, 92.2184],
  barishal: [22.701, 90.3535],
  bay: [20.6, 89.5],
} as const

const weatherAt = (latitude: number, longitude: number, seed = 1, run?: { initialisedAt: number }) => {
  const place = { latitude, longitude }
  const cell = modelCellOf(place)
  const site = { cell, cellHeight: Math.round(broadHeight(cell)), height: groundHeight(place) }
  return { ...createSiteWeather(seed, run, site), height: site.height }
}

const faultOf = (weather: Weather, height: number): string | undefined => {
  const round = (value: number, digits: number) => Number(value.toFixed(digits))
  const between = (value: number, low: number, high: number) => value >= low && value <= high
  const { temperature, humidity, apparent, wind, gusts, code, cloud } = weather
  if (!between(temperature, 2, 44)) return `temperature ${temperature}`
  if (!between(humidity, 5, 100)) return `humidity ${humidity}`
  if (!between(apparent, -8, 56)) return `apparent temperature ${apparent}`
  if (humidity > 60 && temperature > 30 && wind < 15 && apparent < temperature) return 'muggy but felt cooler'
  if (!between(weather.seaPressure, 985, 1032)) return `pressure ${weather.seaPressure}`
  const drop = weather.seaPressure - weather.surfacePressure
  if (Math.abs(drop - height * 0.113) > 0.5 + height * 0.012) return `pressure falls ${drop} in ${height} m`
  if (!between(wind, 0, 90) || !between(weather.direction, 0, 360)) return `wind ${wind}`
  if (gusts < wind || gusts > 150) return `gusts ${gusts} of wind ${wind}`
  if (round(weather.rain + weather.showers, 2) !== weather.precipitation)
    return 'rain and showers do not add up'
  if (weather.showers < 0 || weather.rain < 0 || weather.snowfall !== 0) return 'negative rain, or snow'
  if (code >= 51 !== weather.precipitation > 0) return `code ${code} with ${weather.precipitation} mm`
  const known = [0, 1, 2, 3, 45, 51, 53, 55, 61, 63, 65, 80, 81, 82, 95, 96, 99]
  if (!known.includes(code)) return `code ${code}`
  if (!between(cloud, 0, 100) || (code === 0 && cloud >= 15) || (code === 3 && cloud < 80))
    return `code ${code} under ${cloud} % of cloud`
  if (code === 45 && humidity < 95) return 'fog in dry air'
  if (!between(weather.chance, 0, 100)) return `chance ${weather.chance}`
  return undefined
}

t.test('it holds together in 10 places through a year, with and without model runs', async t => {
  let checked = 0
  for (const [name, [latitude, longitude]] of Object.entries(places))
    for (const run of [undefined, { initialisedAt: Date.UTC(2026, 0, 1) }]) {
      const { quarterHour, hour, height } = weatherAt(latitude, longitude, 3, run)
      // A step that is coprime with the day, so that all hours occur.
      for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += 23 * 900_000)
        for (const [step, weather] of Object.entries({ quarter: quarterHour(at), hour: hour(at) })) {
          const { precipitation, cloud, humidity } = weather
          const isDryRain = step === 'quarter' && precipitation > 0 && (cloud < 60 || humidity < 70)
          const fault = isDryRain ? 'rain without cloud' : faultOf(weather, height)
          if (fault) t.fail(`${name}, ${new Date(at).toISOString()}, ${step}: ${fault}`)
          checked += 1
        }
    }
  t.ok(checked > 50_000, `${checked} instants`)
})

// The hours of a month by local hour of the day, over three years.
const hoursOf = (place: keyof typeof places, month: number, hours: readonly number[]): Weather[] => {
  const [latitude, longitude] = places[place]
  const { hour } = weatherAt(latitude, longitude)
  const found: Weather[] = []
  for (const year of [2024, 2025, 2026])
    for (let day = Date.UTC(year, month - 1, 1); day < Date.UTC(year, month, 1); day += dayMs)
      for (const local of hours) found.push(hour(day + (local - 6) * hourMs))
  return found
}
const night = [0, 1, 2, 3, 4, 5, 6, 22, 23]
const allDay = Array.from({ length: 24 }, (_, hour) => hour)
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length
const rainDays = (place: keyof typeof places, month: number): number => {
  const hours = hoursOf(place, month, allDay)
  let days = 0
  for (let i = 0; i < hours.length; i += 24)
    if (hours.slice(i, i + 24).reduce((sum, { precipitation }) => sum + precipitation, 0) >= 1) days += 1
  return days / 3
}

t.test('a January night in Dhaka has 8 to 22 °C, an April afternoon 28 to 41', async t => {
  for (const { temperature } of hoursOf('dhaka', 1, night))
    if (temperature < 8 || temperature > 22) t.fail(`January: ${temperature}`)
  const april = hoursOf('dhaka', 4, allDay)
  for (let i = 0; i < april.length; i += 24) {
    const highest = Math.max(...april.slice(i, i + 24).map(({ temperature }) => temperature))
    if (highest < 28 || highest > 41) t.fail(`April: ${highest}`)
  }
})

t.test('seasons, hours and places differ as they do in Bangladesh', async t => {
  type Place = keyof typeof places
  const about = (place: Place, month: number, of: (weather: Weather) => number, hours = allDay) =>
    mean(hoursOf(place, month, hours).map(of))
  const warmth = (place: Place) => about(place, 1, w => w.temperature)
  const swing = (place: Place) =>
    about(place, 1, w => w.temperature, [14]) - about(place, 1, w => w.temperature, [6])
  const storms = (hours: readonly number[]) =>
    hoursOf('sylhet', 4, hours).filter(({ code, gusts }) => code >= 95 && gusts > 30).length
  const [evening, morning] = [storms([15, 16, 17, 18, 19, 20]), storms([4, 5, 6, 7, 8, 9])]
  const [january, july] = [rainDays('dhaka', 1), rainDays('dhaka', 7)]
  const chance = (wet: boolean) =>
    mean(
      hoursOf('dhaka', 7, allDay)
        .filter(({ precipitation }) => precipitation > 0.1 === wet)
        .map(weather => weather.chance),
    )
  const height = (latitude: number, longitude: number) => groundHeight({ latitude, longitude })
  const inOrder: [what: string, ...rising: number[]][] = [
    ['rain days of July in Dhaka', 12, july, 28],
    ['rain days of January, far fewer', january, Math.min(4, july - 10)],
    ['Sylhet has more than Rajshahi', rainDays('rajshahi', 7) + 3, rainDays('sylhet', 7)],
    ['nor’westers come late in the day before the monsoon', Math.max(3, 2 * morning), evening],
    ['winter is clearer', about('dhaka', 1, w => w.cloud), 35, 60, about('dhaka', 7, w => w.cloud)],
    ['winter is drier', about('dhaka', 2, w => w.humidity), 68, 78, about('dhaka', 8, w => w.humidity)],
    ['the north is cooler', warmth('rangpur'), warmth('dhaka'), warmth('coxsBazar')],
    ['the hills are cooler', warmth('bandarban'), warmth('chattogram') - 1],
    ['the sea is windier', about('dhaka', 7, w => w.wind), about('coxsBazar', 7, w => w.wind)],
    ['days swing less by the sea', swing('coxsBazar') + 3, swing('rajshahi')],
    ['the chance of rain knows about the rain', chance(false) + 30, chance(true)],
    [
      'the delta is low, the Hill Tracts are high',
      3,
      height(...places.dhaka),
      25,
      60,
      height(...places.bandarban),
    ],
    ['the Meghalaya plateau is higher', 500, height(25.5, 91.5)],
  ]
  for (const [what, ...rising] of inOrder)
    t.ok(
      rising.every((value, i) => i === 0 || value > (rising[i - 1] ?? 0)),
      `${what}: ${rising}`,
    )
  t.equal(height(20.5, 90), 0, 'the sea is at zero')
})

t.test('temperature is corrected for height only where point and cell differ by more than 100 m', async t => {
  const cell = modelCellOf({ latitude: 22.2, longitude: 92.3 })
  const at = (height: number) =>
    createSiteWeather(1, undefined, { cell, cellHeight: 200, height }).quarterHour(0).temperature
  t.equal(at(300), at(200))
  t.ok(Math.abs(at(200) - at(400) - 1.3) < 1e-9)
})

t.test('model cells are those of the provider’s grid', async t => {
  const { latitude, longitude } = modelCellOf({ latitude: 23.8103, longitude: 90.4125 })
  t.ok(Math.abs(latitude - 23.796133) < 1e-5 && Math.abs(longitude - 90.38055) < 1e-5)
  const south = modelCellOf({ latitude: -23.8103, longitude: -90.4125 })
  t.strictSame(south, { latitude: -latitude, longitude: -longitude })
})
