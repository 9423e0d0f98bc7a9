// The cost of a timeline: its size in memory and in the shared cache tier, and the time to encode and decode it. Medians
// over simulated weather for the whole country; no cache, no store and no gateway take part.

import { startSimulator } from '../../simulator/simulator.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { decodeTimelines } from '../../src/provider/open-meteo/decode.ts'
import { pathFor } from '../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { type Horizon, stepsWithin } from '../../src/weather/horizon.ts'
import { bytesOf, type Timeline } from '../../src/weather/timeline.ts'
import { decodeTimeline, encodeTimeline } from '../../src/weather/timeline-bytes.ts'

export type TimelineForm = {
  readonly bytesInMemory: number
  readonly bytesShared: number
  readonly encodeUs: number
  readonly decodeUs: number
  readonly timelines: number
}

const timelines = 200
const rounds = 15
// The horizon that keeps a day of weather usable, and the minimum of nine days.
const horizon: Horizon = { quarterHours: 98, days: 9 }

/** Medians of bytes and of microseconds per timeline, warm. */
export const measureTimelineForm = async (): Promise<TimelineForm> => {
  const forms = await simulatedTimelines()
  const metadata = { generation: 1, run: forms[0]?.fetchedAt ?? 0 }
  const expected = {
    key: '0123456789ab:23.7,90.4',
    lengths: stepsWithin(horizon),
    now: systemClock.now(),
    calendar: createCalendar('Asia/Dhaka'),
  }
  const encoded = forms.map(timeline => encodeTimeline(expected.key, timeline, metadata))
  if (encoded.some(bytes => typeof decodeTimeline(bytes, expected) === 'string'))
    throw new Error('a timeline does not come back')
  const medianUs = (act: () => void): number => median(Array.from({ length: rounds }, () => usEach(act)))
  return {
    bytesInMemory: median(forms.map(bytesOf)),
    bytesShared: median(encoded.map(bytes => bytes.length)),
    encodeUs: medianUs(() => {
      for (const timeline of forms) encodeTimeline(expected.key, timeline, metadata)
    }),
    decodeUs: medianUs(() => {
      for (const bytes of encoded) decodeTimeline(bytes, expected)
    }),
    timelines,
  }
}

const simulatedTimelines = async (): Promise<Timeline[]> => {
  const simulator = await startSimulator()
  try {
    const calendar = createCalendar('Asia/Dhaka')
    const grid = createGrid(0.1)
    // Spread over the country by the golden ratio, so that coast, plain and hills all occur.
    const cells = Array.from({ length: timelines }, (_, i) =>
      grid.cellOf(20.5 + ((i * 0.618_034) % 1) * 6, 88 + (i / timelines) * 4.6),
    )
    const requestedAt = systemClock.now()
    const body = await (await fetch(simulator.url + pathFor(cells, horizon, calendar.zone))).bytes()
    const results = await decodeTimelines([body], {
      cells,
      horizon,
      calendar,
      clock: systemClock,
      requestedAt,
    })
    return results.map(result => {
      if (result instanceof Error) throw result
      return result
    })
  } finally {
    await simulator.close()
  }
}

const usEach = (act: () => void): number => {
  const started = performance.now()
  act()
  return ((performance.now() - started) * 1000) / timelines
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

if (import.meta.main) {
  const form = await measureTimelineForm()
  process.stdout.write(
    `a timeline: ${form.bytesInMemory} bytes in memory, ${form.bytesShared} in the shared tier, ` +
      `${form.encodeUs.toFixed(0)} µs to encode, ${form.decodeUs.toFixed(0)} µs to decode ` +
      `(medians over ${form.timelines} timelines, Node ${process.version})\n`,
  )
}
