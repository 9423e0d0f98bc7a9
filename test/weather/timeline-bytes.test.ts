// Timelines to bytes and back: simulated weather, numbers no weather has, and bytes spoilt in every place.

import t from 'tap'
import { createCalendar, quarterHourMs, utcDayMs } from '../../src/calendar.ts'
import { decodeTimelines } from '../../src/provider/decode.ts'
import { pathFor } from '../../src/provider/query.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { currentAt, daysFrom, hoursFrom, layOut, type Timeline } from '../../src/weather/timeline.ts'
import { decodeTimeline, encodeTimeline, readHead } from '../../src/weather/timeline-bytes.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { sampleTimeline } from './sample-timeline.ts'

const calendar = createCalendar('Asia/Dhaka')
const marks = { generation: 3, run: Date.parse('2026-11-21T01:40Z') }
const now = Date.parse(noon)

const simulated = async (): Promise<Timeline[]> => {
  const clock = manualClock()
  const simulator = await startSimulator({ clock })
  t.teardown(() => simulator.close())
  const grid = createGrid(0.1)
  const cells = Array.from({ length: 25 }, (_, i) =>
    grid.cellOf(20.7 + i * 0.24, 88.1 + ((i * 7) % 25) * 0.18),
  )
  const horizon = { quarterHours: 98, days: 9 }
  const body = await (await fetch(simulator.url + pathFor(cells, horizon, calendar.zone))).bytes()
  const expected = { cells, horizon, calendar, clock, askedAt: now }
  return (await decodeTimelines([body], expected)) as Timeline[]
}
const weather = await simulated()

const answersOf = (timeline: Timeline) => ({
  current: Array.from({ length: 97 }, (_, i) => currentAt(timeline, now + i * quarterHourMs, calendar)),
  hours: hoursFrom(timeline, now, calendar, 48),
  days: [0, 1, 2].map(i => daysFrom(timeline, now + i * utcDayMs, calendar, 7)),
})

t.test('simulated weather comes back value for value, marks with it, in a ninth of its room', t => {
  for (const timeline of weather) {
    const bytes = encodeTimeline(timeline, marks)
    const back = decodeTimeline(bytes)
    t.strictSame(back, { timeline, marks })
    t.strictSame(answersOf(back?.timeline as Timeline), answersOf(timeline))
    t.ok(
      bytes.length < timeline.values.byteLength / 9,
      `${bytes.length} of ${timeline.values.byteLength} bytes`,
    )
  }
  t.end()
})

t.test('what comes back stands in a buffer of its own, no larger than its values', t => {
  const values = decodeTimeline(encodeTimeline(sampleTimeline(), marks))?.timeline.values
  t.equal(values?.buffer.byteLength, values?.byteLength)
  t.end()
})

t.test('marks come back as they were given', t => {
  for (const given of [
    { generation: 0, run: null },
    { generation: 1, run: 0 },
    { generation: Number.MAX_SAFE_INTEGER, run: now },
  ]) {
    const bytes = encodeTimeline(sampleTimeline(), given)
    t.strictSame(decodeTimeline(bytes)?.marks, given)
    t.strictSame(readHead(bytes), { fetchedAt: sampleTimeline().fetchedAt, marks: given })
  }
  t.end()
})

t.test('numbers of every size, with up to three decimals and with gaps, come back', t => {
  const seeded = seededNumbers(7)
  const span = { start: now, length: 37 }
  const kinds: ((step: number) => number)[] = [
    step => (step % 2 ? 8191.999 : -8191.999),
    step => [8191.999, -8191.999, -8191.999, 8191.999][step % 4] as number,
    () => Number.NaN,
    step => (step % 3 ? Number.NaN : step / 1000),
    step => (step < 36 ? Number.NaN : -0.001),
    step => 1000 - step * 0.25,
    () => 0,
    () => 127,
    () => Math.round((seeded() - 0.5) * 16_383_000) / 1000,
    () => Math.round(seeded() * 400) / 10,
    () => (seeded() < 0.1 ? Number.NaN : Math.round(seeded() * 8_000) / 100),
  ]
  for (let round = 0; round < 200; round++) {
    const timeline = layOut(now, span, { ...span, length: round % 5 }, { ...span, length: 1 })
    let kind = kinds[0] as (step: number) => number
    timeline.values.forEach((_, i) => {
      if (i % 37 === 0) kind = kinds[Math.floor(seeded() * kinds.length)] as typeof kind
      timeline.values[i] = kind(i % 37)
    })
    t.strictSame(decodeTimeline(encodeTimeline(timeline, marks))?.timeline, timeline)
  }
  t.end()
})

t.test('numbers with more decimals are answered from the bytes as from memory', t => {
  const timeline = sampleTimeline()
  const seeded = seededNumbers(11)
  timeline.values.forEach((_, i) => {
    timeline.values[i] = (seeded() - 0.5) * 16_383
  })
  timeline.values[0] = 8191.9999
  const back = decodeTimeline(encodeTimeline(timeline, marks))?.timeline as Timeline
  for (let i = 0; i < 60; i++) {
    const instant = timeline.fetchedAt + i * quarterHourMs
    t.strictSame(currentAt(back, instant, calendar), currentAt(timeline, instant, calendar))
  }
  t.strictSame(
    hoursFrom(back, timeline.fetchedAt, calendar, 48),
    hoursFrom(timeline, timeline.fetchedAt, calendar, 48),
  )
  t.end()
})

const bytes = encodeTimeline(weather[0] as Timeline, marks)

t.test('one bit turned over anywhere makes the bytes absent', t => {
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const spoilt = Buffer.from(bytes)
    spoilt[bit >> 3] = (spoilt[bit >> 3] as number) ^ (1 << (bit & 7))
    if (decodeTimeline(spoilt)) t.fail(`bit ${bit & 7} of byte ${bit >> 3} is not noticed`)
  }
  t.end()
})

t.test('bytes replaced, swapped or blanked anywhere make the bytes absent', t => {
  for (let at = 0; at < bytes.length; at++) {
    const blanked = Buffer.from(bytes).fill(0, at, Math.min(at + 64, bytes.length))
    const turned = Buffer.from(bytes)
    turned[at] = (turned[at] as number) ^ 0xff
    const swapped = Buffer.from(bytes)
    swapped[at] = bytes[(at + 1) % bytes.length] as number
    swapped[(at + 1) % bytes.length] = bytes[at] as number
    for (const spoilt of [blanked, turned, swapped])
      if (!spoilt.equals(bytes) && decodeTimeline(spoilt)) t.fail(`byte ${at} is not noticed`)
  }
  t.end()
})

t.test('bytes cut off at any length, or with more behind or before them, are absent', t => {
  for (let length = 0; length < bytes.length; length++) {
    if (decodeTimeline(bytes.subarray(0, length))) t.fail(`${length} bytes are taken for whole`)
    if (length > 0 && decodeTimeline(bytes.subarray(length))) t.fail(`the bytes from ${length} on are taken`)
  }
  for (const more of [Buffer.alloc(1), Buffer.alloc(4), Buffer.alloc(100, 0xff), bytes]) {
    t.equal(decodeTimeline(Buffer.concat([bytes, more])), undefined)
    t.equal(decodeTimeline(Buffer.concat([more, bytes])), undefined)
  }
  t.ok(decodeTimeline(bytes), 'and the whole is there')
  t.end()
})

t.test('bytes of every other version are absent, and of anything else too', t => {
  for (let version = 0; version < 256; version++) {
    const other = Buffer.from(bytes)
    other[0] = version
    t.equal(decodeTimeline(other) !== undefined, version === bytes[0])
  }
  t.equal(decodeTimeline(Buffer.from('{"not":"ours"}'.repeat(20))), undefined)
  t.equal(decodeTimeline(Buffer.alloc(5_000, bytes[0])), undefined)
  t.end()
})

/** Numbers from 0 to 1 that a seed decides. */
function seededNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
