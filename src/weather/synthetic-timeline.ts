// Timelines of made-up weather, plausible for Bangladesh in April, for test keys and what-if. The same seed gives the same numbers;
// hours, quarter-hours and days agree.

import { type Calendar, hourMs, quarterHourMs, utcDayMs } from '../common/calendar.ts'
import { type Lengths, pastDays, pastQuarterHours } from './horizon.ts'
import { layOut, type Span, type Timeline } from './timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from './weather-variables.ts'

type Spans = readonly [quarterHours: Span, hours: Span, days: Span]

/** The spans of a timeline of these lengths that was fetched at an instant. */
export const spansAt = (fetchedAt: number, lengths: Lengths, calendar: Calendar): Spans => {
  const offsetMs = calendar.offsetSecondsAt(fetchedAt) * 1_000
  const today = Math.floor((fetchedAt + offsetMs) / utcDayMs)
  const quarter = Math.floor(fetchedAt / quarterHourMs) - pastQuarterHours
  return [
    { start: quarter * quarterHourMs, length: lengths.quarterHours },
    { start: (today - pastDays) * utcDayMs - offsetMs, length: lengths.hours },
    { start: today - pastDays, length: lengths.days },
  ]
}

// Means over a day, how far the afternoon is above them, and decimals, in the units of weather-variables.ts.
const shapes: Readonly<Record<string, readonly [mean: number, swing: number, decimals: number]>> = {
  temperature_2m: [27, 5, 1],
  apparent_temperature: [31, 6, 1],
  relative_humidity_2m: [72, -18, 0],
  precipitation_probability: [35, 20, 0],
  cloud_cover: [45, 20, 0],
  pressure_msl: [1008, -2, 1],
  surface_pressure: [1006, -2, 1],
  wind_speed_10m: [9, 4, 1],
  wind_direction_10m: [180, 30, 0],
  wind_gusts_10m: [20, 8, 1],
}
const [warmest, sunrise, sunset, showerHours] = [14, 6, 18, 3]

/** A number from 0 to 1 that looks random, and is the same for the same whole numbers. */
const scatter = (seed: number, i: number): number => {
  const mixed = Math.imul(seed ^ Math.imul(i + 1, 2_654_435_761), 2_246_822_519)
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
}

/** A variable at a local time in hours since 1970. */
const valueAt = (variable: string, time: number, seed: number): number => {
  const hour = Math.floor(time)
  const ofDay = time % 24
  const isShower = scatter(seed, Math.floor(time / showerHours)) > 0.92
  if (variable === 'is_day') return ofDay >= sunrise && ofDay < sunset ? 1 : 0
  if (variable === 'weather_code') return isShower ? 80 : 2
  if (variable === 'snowfall' || variable === 'rain') return 0
  // All of it falls as showers.
  if (variable === 'precipitation' || variable === 'showers')
    return isShower ? Math.round(1 + scatter(seed, hour) * 40) / 10 : 0
  if (variable === 'precipitation_probability' && isShower) return 80
  const [mean, swing, decimals] = shapes[variable] ?? [0, 0, 0]
  const afternoon = Math.cos((2 * Math.PI * (ofDay - warmest)) / 24)
  // A few per cent from hour to hour, and from one seed to another.
  const noise = 0.3 * (scatter(seed, hour) - 0.5) + 0.4 * (scatter(seed, 0) - 0.5)
  const power = 10 ** decimals
  return Math.round((mean + swing * (0.8 * afternoon + noise)) * power) / power
}

const ofDay = (variable: string, day: number, seed: number): number => {
  const all = (hourly: string): number[] =>
    Array.from({ length: 24 }, (_, hour) => valueAt(hourly, day * 24 + hour, seed))
  return variable.endsWith('_min')
    ? Math.min(...all(variable.slice(0, -'_min'.length)))
    : Math.max(...all(variable.replace(/_max$/, '')))
}

/** @param seed a whole number */
export const syntheticTimeline = (
  fetchedAt: number,
  lengths: Lengths,
  calendar: Calendar,
  seed = 0,
): Timeline => {
  const timeline = layOut(fetchedAt, ...spansAt(fetchedAt, lengths, calendar))
  const offsetMs = calendar.offsetSecondsAt(fetchedAt) * 1_000
  const hourly = (stepMs: number) => (variable: string, start: number, i: number) =>
    valueAt(variable, (start + i * stepMs + offsetMs) / hourMs, seed)
  const { values, quarterHours, hours, days } = timeline
  const tables = [
    [quarterHours, currentUnits, hourly(quarterHourMs)],
    [hours, hourlyUnits, hourly(hourMs)],
    [days, dailyUnits, (variable: string, start: number, i: number) => ofDay(variable, start + i, seed)],
  ] as const
  for (const [{ offset, start, length }, units, of] of tables)
    Object.keys(units).forEach((variable, column) => {
      for (let i = 0; i < length; i++) values[offset + column * length + i] = of(variable, start, i)
    })
  return timeline
}
