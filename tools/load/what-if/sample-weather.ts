// One plausible timeline, moved to the instant of each load. Its values vary like weather, so that entries and bodies are as large as
// real ones.

import { type Calendar, hourMs } from 'abohawa/common/calendar.ts'
import {
  type Codec,
  coverageEndOf,
  createTimelineText,
  encodeTimeline,
  entryOf,
  type Horizon,
  jitterOf,
  spansAt,
  stepsWithin,
  syntheticTimeline,
  type Timeline,
  type TimelineText,
} from 'abohawa/parts'

export type SampleWeather = ReturnType<typeof createSampleWeather>

export const createSampleWeather = (horizon: Horizon, hourlyHours: number, calendar: Calendar) => {
  const lengths = stepsWithin(horizon)
  const layout = syntheticTimeline(0, lengths, calendar)
  const { values } = layout
  const timelineAt = (fetchedAt: number): Timeline => {
    const [quarterHours, hours, days] = spansAt(fetchedAt, lengths, calendar)
    return {
      ...{ fetchedAt, values },
      quarterHours: { ...layout.quarterHours, ...quarterHours },
      hours: { ...layout.hours, ...hours },
      days: { ...layout.days, ...days },
    }
  }

  const real = createTimelineText(calendar)
  const noon = 12 * hourMs
  const sample = timelineAt(noon)
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

  const text: TimelineText = {
    current: () => current,
    hourly: (_, __, count) => kept(`hourly ${count}`, () => real.hourly(sample, noon, count)),
    daily: (_, __, count) => kept(`daily ${count}`, () => real.daily(sample, noon, count)),
  }
  // Entries of the shared tier have no values, because all have the same.
  const codec: Codec<Timeline> = {
    maxBytes: 24,
    encode: ({ fetchedAt, generation, run }) => {
      const bytes = Buffer.alloc(24)
      for (const [i, number] of [fetchedAt, generation, run ?? Number.NaN].entries())
        bytes.writeDoubleLE(number, 8 * i)
      return bytes
    },
    metadata: (bytes, key) => {
      const { fetchedAt, metadata } = entryAt(key, bytes)
      const coversUntil = coverageEndOf(timelineAt(fetchedAt), hourlyHours)
      return { fetchedAt, jitter: jitterOf(key, fetchedAt), coversUntil, ...metadata }
    },
    decode: (bytes, key) => {
      const { fetchedAt, metadata } = entryAt(key, bytes)
      return entryOf(key, timelineAt(fetchedAt), metadata, hourlyHours)
    },
  }
  return { timelineAt, text, codec, encodedBytes }
}
