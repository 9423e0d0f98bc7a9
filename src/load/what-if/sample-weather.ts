// One plausible timeline, moved to the instant of each load: its numbers differ from hour to hour as weather does, so that
// it is as large in both tiers, and its bodies are as long, as real ones. What the weather is does not matter here.

import { entryOf } from '../../cache/entry-codec.ts'
import { jitterOf } from '../../cache/freshness.ts'
import type { Codec } from '../../cache/tiers.ts'
import { type Calendar, hourMs, quarterHourMs, utcDayMs } from '../../common/calendar.ts'
import { type Horizon, pastDays, pastQuarterHours, reachOf, stepsWithin } from '../../weather/horizon.ts'
import { layOut, type Timeline } from '../../weather/timeline.ts'
import { encodeTimeline } from '../../weather/timeline-bytes.ts'
import { createTimelineText, type TimelineText } from '../../weather/timeline-text.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../weather/weather-variables.ts'

export type SampleWeather = {
  timelineAt(fetchedAt: number): Timeline
  readonly text: TimelineText
  /** Of the shared tier: an entry without its numbers, which are the same in all. */
  readonly codec: Codec<Timeline>
  readonly encodedBytes: number
}

// Means and swings over a day, in the units of weather-variables.ts; `wet` variables are 0 outside of showers.
const shapes: Readonly<Record<string, readonly [mean: number, swing: number, decimals: number]>> = {
  temperature_2m: [27, 5, 1],
  temperature_2m_max: [32, 2, 1],
  temperature_2m_min: [22, 2, 1],
  apparent_temperature: [31, 6, 1],
  relative_humidity_2m: [72, 18, 0],
  precipitation_probability: [35, 30, 0],
  precipitation_probability_max: [60, 30, 0],
  cloud_cover: [55, 40, 0],
  pressure_msl: [1008, 2, 1],
  surface_pressure: [1006, 2, 1],
  wind_speed_10m: [9, 5, 1],
  wind_direction_10m: [180, 60, 0],
  wind_gusts_10m: [20, 9, 1],
}
const wet = new Set(['precipitation', 'rain', 'showers'])

// The same for the same place in a column: a whole number that looks random.
const scatter = (i: number): number => ((Math.imul(i + 1, 2_654_435_761) >>> 0) % 1_000) / 1_000

const numberOf = (variable: string, i: number, perDay: number): number => {
  const phase = Math.sin((2 * Math.PI * i) / perDay)
  if (variable === 'is_day') return phase > 0 ? 1 : 0
  const isShower = scatter(Math.floor(i / 6)) > 0.8
  if (variable === 'weather_code') return isShower ? 61 : 3
  if (variable === 'snowfall') return 0
  if (wet.has(variable)) return isShower ? Math.round(scatter(i) * 40) / 10 : 0
  const [mean, swing, decimals] = shapes[variable] ?? [10, 5, 1]
  const power = 10 ** decimals
  return Math.round((mean + swing * (0.8 * phase + 0.4 * (scatter(i) - 0.5))) * power) / power
}

export const createSampleWeather = (
  horizon: Horizon,
  hourlyHours: number,
  calendar: Calendar,
): SampleWeather => {
  const lengths = stepsWithin(horizon)
  const timelineAt = (fetchedAt: number, values?: Float32Array): Timeline => {
    const offsetMs = calendar.offsetSecondsAt(fetchedAt) * 1_000
    const today = Math.floor((fetchedAt + offsetMs) / utcDayMs)
    const quarter = Math.floor(fetchedAt / quarterHourMs) - pastQuarterHours
    const spans = [
      { start: quarter * quarterHourMs, length: lengths.quarterHours },
      { start: (today - pastDays) * utcDayMs - offsetMs, length: lengths.hours },
      { start: today - pastDays, length: lengths.days },
    ] as const
    if (values) return { ...layout, values, fetchedAt, ...placed(spans) }
    return layOut(fetchedAt, ...spans)
  }
  const placed = (spans: readonly { readonly start: number; readonly length: number }[]) => ({
    quarterHours: { ...layout.quarterHours, ...spans[0] },
    hours: { ...layout.hours, ...spans[1] },
    days: { ...layout.days, ...spans[2] },
  })
  const layout = timelineAt(0)
  const { values } = layout
  const tables = [
    [layout.quarterHours, currentUnits, utcDayMs / quarterHourMs],
    [layout.hours, hourlyUnits, utcDayMs / hourMs],
    [layout.days, dailyUnits, 7],
  ] as const
  for (const [{ offset, length }, units, perDay] of tables)
    Object.keys(units).forEach((variable, column) => {
      for (let i = 0; i < length; i++) values[offset + column * length + i] = numberOf(variable, i, perDay)
    })

  const real = createTimelineText(calendar)
  const noon = 12 * hourMs
  const sample = timelineAt(noon, values)
  const current = real.current(sample, noon)
  const texts = new Map<string, string | undefined>()
  const kept = (name: string, make: () => string | undefined): string | undefined => {
    if (!texts.has(name)) texts.set(name, make())
    return texts.get(name)
  }
  const entryAt = (key: string, bytes: Buffer) => {
    const run = bytes.readDoubleLE(16)
    const metadata = { generation: bytes.readDoubleLE(8), run: Number.isNaN(run) ? null : run }
    return { key, fetchedAt: bytes.readDoubleLE(0), metadata }
  }
  const encodedBytes = encodeTimeline('sample', sample, { generation: 0, run: null }).length

  return {
    timelineAt: fetchedAt => timelineAt(fetchedAt, values),
    text: {
      current: () => current,
      hourly: (_, __, count) => kept(`hourly ${count}`, () => real.hourly(sample, noon, count)),
      daily: (_, __, count) => kept(`daily ${count}`, () => real.daily(sample, noon, count)),
    },
    codec: {
      maxBytes: 24,
      encode: ({ fetchedAt, generation, run }) => {
        const bytes = Buffer.alloc(24)
        bytes.writeDoubleLE(fetchedAt, 0)
        bytes.writeDoubleLE(generation, 8)
        bytes.writeDoubleLE(run ?? Number.NaN, 16)
        return bytes
      },
      metadata: (bytes, key) => {
        const { fetchedAt, metadata } = entryAt(key, bytes)
        const reachesUntil = reachOf(timelineAt(fetchedAt, values), hourlyHours)
        return { fetchedAt, jitter: jitterOf(key, fetchedAt), reachesUntil, ...metadata }
      },
      decode: (bytes, key) => {
        const { fetchedAt, metadata } = entryAt(key, bytes)
        return entryOf(key, timelineAt(fetchedAt, values), metadata, hourlyHours)
      },
    },
    encodedBytes,
  }
}
