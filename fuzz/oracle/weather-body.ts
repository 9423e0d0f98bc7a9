// The rules for the weather in a response, whatever the provider sends: the right times for now, as many values as times, and
// values that occur on Earth. Bounds lie beyond every record, so that no real weather is outside; what is, is null.

import { currentVariables, dailyVariables, hourlyVariables } from '../../test/support/weather-contract.ts'
import { demand } from '../fault.ts'

const hourMs = 3_600_000
const quarterMs = hourMs / 4
const dayMs = 24 * hourMs
/** Dhaka is six hours ahead of UTC all year. */
const offsetMs = 6 * hourMs

const localMinute = (instant: number): string => new Date(instant + offsetMs).toISOString().slice(0, 16)
const localDay = (instant: number): string => localMinute(instant).slice(0, 10)

const temperature = [-100, 70]
const percent = [0, 100]
const rain = [0, 500]
const wind = [0, 600]
const physical: Readonly<Record<string, readonly number[]>> = {
  temperature_2m: temperature,
  temperature_2m_max: temperature,
  temperature_2m_min: temperature,
  apparent_temperature: [-200, 120],
  relative_humidity_2m: percent,
  is_day: [0, 1],
  precipitation: rain,
  rain,
  showers: rain,
  snowfall: [0, 350],
  weather_code: [0, 99],
  cloud_cover: percent,
  pressure_msl: [800, 1_150],
  surface_pressure: [250, 1_150],
  wind_speed_10m: wind,
  wind_direction_10m: [0, 360],
  wind_gusts_10m: wind,
  precipitation_probability: percent,
  precipitation_probability_max: percent,
}
const weatherCodes = [
  0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99,
]
const whole = /^(?:is_day|weather_code|wind_direction_10m|.*(?:humidity|probability|cloud_cover).*)$/

export const isPhysical = (name: string, value: unknown): boolean => {
  if (value === null) return true
  const [least = 0, most = -1] = physical[name] ?? []
  if (typeof value !== 'number' || !(value >= least && value <= most)) return false
  if (name === 'weather_code') return weatherCodes.includes(value)
  return !whole.test(name) || Number.isInteger(value)
}

/** What an answer says where the provider said this: the bound for what rounding carried beyond it, null for what can't be. */
export const meantBy = (name: string, value: unknown): unknown => {
  if (isPhysical(name, value)) return value
  if (typeof value !== 'number') return null
  const bounds = physical[name]
  if (bounds === percent && value > 100 && value <= 101) return 100
  const isAmount = bounds === rain || name === 'snowfall'
  return isAmount && value < 0 && value >= -0.1 ? 0 : null
}

export type Section = Readonly<Record<string, unknown>>

/** A response with weather; callers check for missing sections. */
export type WeatherBody = {
  readonly current?: Section
  readonly hourly?: Section
  readonly daily?: Section
  readonly utc_offset_seconds?: unknown
}

/** When the request was sent and when the response was received, ms since the epoch. */
export type Interval = readonly [sent: number, received: number]

/** The whole response of /weather. @throws Fault */
export const checkWeather = (body: WeatherBody, when: Interval): void => {
  const { current } = body
  demand(current, 'weather without current')
  const isNow =
    when.some(now => localMinute(floor(now, quarterMs)) === current.time) && current.interval === 900
  demand(isNow, anotherTime, `current is ${current.time}, ${current.interval} s, at ${localMinute(when[1])}`)
  for (const name of currentVariables) checkValue(`current.${name}`, name, current[name])
  checkSeries('hourly', body.hourly, hourlyVariables, when, 48, (now, i) =>
    localMinute(floor(now, hourMs) + i * hourMs),
  )
  checkForecast(body, when, 7)
}

/** The daily part of a /forecast response with so many days, and the offset of all times. @throws Fault */
export const checkForecast = (body: WeatherBody, when: Interval, days: number): void => {
  checkSeries('daily', body.daily, dailyVariables, when, days, (now, i) => localDay(now + i * dayMs))
  const offset = body.utc_offset_seconds
  demand(offset === offsetMs / 1_000, 'another offset than that of Dhaka', offset)
}

const anotherTime = 'weather for another time'
const floor = (instant: number, step: number): number => Math.floor(instant / step) * step

const checkValue = (where: string, name: string, value: unknown): void =>
  demand(
    isPhysical(name, value),
    'weather outside of physical ranges',
    `${where} is ${JSON.stringify(value)}`,
  )

const checkSeries = (
  name: string,
  section: Section | undefined,
  variables: readonly string[],
  when: Interval,
  count: number,
  timeAt: (now: number, step: number) => string,
): void => {
  const times = section?.time
  demand(section && Array.isArray(times), `weather without ${name}`)
  demand(
    times.length === count,
    'another number of steps than requested',
    `${times.length} in ${name}, not ${count}`,
  )
  const isNow = when.some(now => times.every((time, i) => time === timeAt(now, i)))
  demand(isNow, anotherTime, `${name} begins at ${times[0]} at ${localMinute(when[1])}`)
  for (const variable of variables) {
    const values = section[variable]
    const isWhole = Array.isArray(values) && values.length === count
    demand(isWhole, 'as many values as times', `${name}.${variable}`)
    for (const value of values) checkValue(`${name}.${variable}`, variable, value)
  }
}
