// The weather is consistent at any place and instant, and typical of Bangladesh: seasons, days and nights, sea and hills.

import t from 'tap'
import { modelCellOf } from '../../simulator/model-cell.ts'
import { broadHeight, groundHeight } from '../../simulator/terrain.ts'
import { createSiteWeather, type Weather } from '../../simulator/weather-field.ts'

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
          const fault = faultOf(weather, height)
          if (fault) t.fail(`${name}, ${new Date(at).toISOString()}, ${step}: ${fault}`)
          checked += 1
        }
    }
  t.ok(checked > 50_000, `${checked} instants`)
})

t.test('raining quarter-hours are under cloud', async t => {
  const { quarterHour } = weatherAt(...places.sylhet)
  for (let at = Date.UTC(2026, 5, 1); at < Date.UTC(2026, 8, 1); at += 900_000) {
    const { precipitation, cloud, humidity } = quarterHour(at)
    if (precipitation > 0 && (cloud < 60 || humidity < 70)) t.fail(`${at}: ${cloud} %, ${humidity} %`)
  }
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

t.test('July is wet, January dry, and Sylhet wetter than Rajshahi', async t => {
  const july = rainDays('dhaka', 7)
  const january = rainDays('dhaka', 1)
  t.ok(july > 12 && july < 28, `${july} rain days in July`)
  t.ok(january < 4 && july > january + 10, `${january} in January`)
  t.ok(rainDays('sylhet', 7) > rainDays('rajshahi', 7) + 3)
})

t.test('nor’westers come late in the day before the monsoon', async t => {
  const storms = (hours: readonly number[]) =>
    hoursOf('sylhet', 4, hours).filter(({ code, gusts }) => code >= 95 && gusts > 30).length
  const evening = storms([15, 16, 17, 18, 19, 20])
  const morning = storms([4, 5, 6, 7, 8, 9])
  t.ok(evening > 3 && evening > 2 * morning, `${evening} stormy evening hours, ${morning} in the morning`)
})

t.test('winter is clearer and drier than the monsoon, and cooler in the hills and the north', async t => {
  const about = (place: keyof typeof places, month: number, of: (weather: Weather) => number) =>
    mean(hoursOf(place, month, allDay).map(of))
  t.ok(about('dhaka', 1, w => w.cloud) < 35 && about('dhaka', 7, w => w.cloud) > 60)
  t.ok(about('dhaka', 2, w => w.humidity) < 68 && about('dhaka', 8, w => w.humidity) > 78)
  const warmth = (place: keyof typeof places) => about(place, 1, w => w.temperature)
  t.ok(warmth('rangpur') < warmth('dhaka') && warmth('dhaka') < warmth('coxsBazar'))
  t.ok(warmth('bandarban') < warmth('chattogram') - 1)
  t.ok(about('coxsBazar', 7, w => w.wind) > about('dhaka', 7, w => w.wind), 'windier by the sea')
})

t.test('days swing less by the sea than inland', async t => {
  const swing = (place: keyof typeof places) =>
    mean(hoursOf(place, 1, [14]).map(({ temperature }) => temperature)) -
    mean(hoursOf(place, 1, [6]).map(({ temperature }) => temperature))
  t.ok(swing('rajshahi') > swing('coxsBazar') + 3, `${swing('rajshahi')} and ${swing('coxsBazar')}`)
})

t.test('the chance of rain knows about the rain', async t => {
  const hours = hoursOf('dhaka', 7, allDay)
  const chance = (wet: boolean) =>
    mean(hours.filter(({ precipitation }) => precipitation > 0.1 === wet).map(weather => weather.chance))
  t.ok(chance(true) > chance(false) + 30, `${chance(true)} when it rains, ${chance(false)} when not`)
})

t.test('the land is low in the delta, high in the Hill Tracts, and the sea is at zero', async t => {
  const height = (latitude: number, longitude: number) => groundHeight({ latitude, longitude })
  t.ok(height(...places.dhaka) > 3 && height(...places.dhaka) < 25)
  t.ok(height(...places.bandarban) > 60)
  t.equal(height(20.5, 90), 0)
  t.ok(height(25.5, 91.5) > 500, 'the Meghalaya plateau')
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
