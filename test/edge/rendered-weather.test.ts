// Weather as bytes: rendered once per slice, shared by the places of a cell, accounted for, and dropped with its timeline.

import t from 'tap'
import { type Answers, type CellResult, createAnswers } from '../../src/answer.ts'
import { createMemoryTier, keepEntry } from '../../src/cache/memory-tier.ts'
import { createCalendar, quarterHourMs, utcDayMs } from '../../src/calendar.ts'
import { type PlacePiece, pointPiece } from '../../src/edge/places.ts'
import { createRenderedWeather } from '../../src/edge/rendered-weather.ts'
import type { Representation } from '../../src/edge/representation.ts'
import { createArena, unpooledCopy, unpooledText } from '../../src/edge/unpooled.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { bytesOf, layOut, type Timeline } from '../../src/weather/timeline.ts'

const start = Date.parse('2026-11-21T06:00Z')
const calendar = createCalendar('Asia/Dhaka')
const midnight = calendar.nextMidnight(start - utcDayMs)
const timelineAt = (fetchedAt: number) =>
  layOut(
    fetchedAt,
    { start, length: 20 },
    { start: midnight, length: 72 },
    { start: Math.floor(start / utcDayMs), length: 9 },
  )
const grid = createGrid(0.1)
const cell = grid.cellOf(23.7, 90.4)

const setUp = () => {
  let rendered = 0
  const real = createAnswers({
    grid,
    calendar,
    hourlyHours: 48,
    timelines: { read: () => Promise.reject(new Error('not read')) },
  })
  const counted = <Slice>(slice: Slice): Slice => {
    rendered += 1
    return slice
  }
  let next: CellResult | undefined
  const answers: Answers = {
    ...real,
    read: () => next ?? Promise.reject(new Error('not read')),
    weather: result => counted(real.weather(result)),
    forecast: (result, days) => counted(real.forecast(result, days)),
  }
  const weather = createRenderedWeather(answers, calendar.zone)
  return {
    current: (result: CellResult, place: PlacePiece) => {
      next = result
      return weather.current(cell, place, '') as Representation
    },
    forecast: (result: CellResult, days: number) => {
      next = result
      return weather.forecast(cell, days, somewhere) as Representation
    },
    rendered: () => rendered,
  }
}
const somewhere = pointPiece(1, 90)

const memory = createMemoryTier<Timeline>(100_000_000)
const setExtraBytes = new WeakMap<Timeline, (bytes: number) => void>()
/** Replaces the timeline in memory. */
const keptTimeline = (fetchedAt: number): Timeline => {
  const value = timelineAt(fetchedAt)
  const entry = { value, bytes: bytesOf(value), fetchedAt, jitter: 0, generation: 0, run: null }
  setExtraBytes.set(value, keepEntry(memory, 'cell', entry).setExtraBytes)
  return value
}

const resultAt = (readAt: number, value = keptTimeline(start)): CellResult => ({
  subject: cell,
  value,
  readAt,
  fetchedAt: value.fetchedAt,
  freshUntil: start + utcDayMs,
  outcome: 'hit',
  source: 'memory',
  forwarded: false,
  collapsed: false,
  setExtraBytes: bytes => setExtraBytes.get(value)?.(bytes),
})
/** The bytes that memory accounts for beside the timeline. */
const beside = (): number => memory.calculatedSize - (memory.peek('cell')?.bytes ?? 0)
const textOf = ({ pieces }: Representation): string => Buffer.concat([...pieces]).toString()

t.test('a slice is rendered once, for every place and answer until it ends', async t => {
  const { current, forecast, rendered } = setUp()
  const timeline = keptTimeline(start)
  const [one, other] = [pointPiece(1, 90), pointPiece(2, 90)]
  for (const after of [0, 1, quarterHourMs - 1])
    for (const place of [one, other]) {
      const result = resultAt(start + after, timeline)
      const body = JSON.parse(textOf(current(result, place)))
      t.match(body, { location: {}, current: { time: '2026-11-21T12:00' }, timezone: 'Asia/Dhaka' })
    }
  t.equal(rendered(), 1)
  const next = resultAt(start + quarterHourMs, timeline)
  t.match(textOf(current(next, one)), '"time":"2026-11-21T12:15"')
  t.equal(rendered(), 2)
  // After a jump back of the clock, no weather of the future is served.
  const back = resultAt(start + 5, timeline)
  t.match(textOf(current(back, one)), '"time":"2026-11-21T12:00"')
  t.equal(rendered(), 3)
  const renewed = resultAt(start + 6, keptTimeline(start + 6))
  current(renewed, one)
  t.equal(rendered(), 4)
  for (const days of [1, 7, 1]) forecast(renewed, days)
  t.equal(rendered(), 6, 'forecasts of other lengths are others')
})

t.test('tags differ by place and by weather', async t => {
  const { current } = setUp()
  const result = resultAt(start)
  const tagOf = (latitude: number, at: CellResult) => current(at, pointPiece(latitude, 90)).tag
  t.equal(tagOf(1, result), tagOf(1, resultAt(start + 1)))
  t.not(tagOf(1, result), tagOf(2, result))
  t.not(tagOf(1, result), tagOf(1, resultAt(start + quarterHourMs)))
})

t.test('cached bodies are accounted for, compressed ones too, and their number is bounded', async t => {
  const { current } = setUp()
  const result = resultAt(start)
  const [, bytes] = current(result, somewhere).pieces
  const alone = beside()
  t.ok(bytes && alone >= bytes.length)
  const compress = (latitude: number) => {
    const body = current(result, pointPiece(latitude, 90))
    body.encodings().br = Buffer.alloc(2_000)
    body.onEncoded?.(Buffer.alloc(2_000))
  }
  compress(1)
  t.ok(beside() >= alone + 2_000)
  for (let i = 0; i < 1_000; i++) compress(2 + i)
  t.ok(beside() < alone + 320 * 2_600, `${beside()} bytes`)
  current(resultAt(start + quarterHourMs, result.value), somewhere)
  t.equal(beside(), alone, 'they go with their slice')
})

t.test('a body that is compressed after its timeline was replaced is not accounted for', async t => {
  const { current } = setUp()
  const result = resultAt(start)
  const body = current(result, pointPiece(1, 90))
  t.ok(beside() > 0)
  const renewed = resultAt(start + 1)
  t.equal(beside(), 0)
  body.encodings().br = Buffer.alloc(2_000)
  body.onEncoded?.(Buffer.alloc(2_000))
  t.equal(beside(), 0)
  current(renewed, somewhere)
  t.ok(beside() > 0)
})

t.test('a form that others displaced while it was made is not accounted for', async t => {
  const { current } = setUp()
  const result = resultAt(start)
  current(result, somewhere)
  const alone = beside()
  const bodies = Array.from({ length: 1_000 }, (_, i) => current(result, pointPiece(i, 90)))
  // All encodings start before the first of them is ready.
  const making = bodies.map(body => ({ body, encodings: body.encodings() }))
  for (const { body, encodings } of making) {
    encodings.br = Buffer.alloc(2_000)
    body.onEncoded?.(encodings.br)
  }
  t.ok(beside() < alone + 320 * 2_600, `${beside()} bytes`)
})

t.test('a body is kept for a second from its second request on, and stays the same', async t => {
  const { current } = setUp()
  const timeline = timelineAt(start)
  // A place of the catalogue, whose bodies are kept; those of raw points are not.
  const place = { ...pointPiece(1, 90), identity: 1 }
  const representAt = (after: number) => {
    const result = resultAt(start + after, timeline)
    return current(result, place)
  }
  const [first, second, third] = [representAt(0), representAt(10), representAt(999)]
  t.not(first, second)
  t.equal(second, third)
  t.equal(first.headers, second.headers)
  t.not(representAt(1_000), third)
  t.not(representAt(1_000).headers, third.headers)
})

t.test('cached bytes are in memory of their own', async t => {
  const text = unpooledText('{"name_bn":"ঢাকা"}')
  t.equal(text.toString(), '{"name_bn":"ঢাকা"}')
  t.equal(text.buffer.byteLength, text.length)
  const part = Buffer.alloc(100, 7).subarray(10, 20)
  t.strictSame([...unpooledCopy(part)], [...part])
  t.equal(unpooledCopy(part).buffer.byteLength, 10)
})

t.test('texts in a slab share blocks, and none overwrites another', async t => {
  const place_in_arena = createArena()
  const texts = Array.from({ length: 1_000 }, (_, i) => `${i} ঢাকা`.repeat(1 + (i % 70)))
  texts.push('x'.repeat(1 << 20), '')
  const shelved = texts.map(place_in_arena)
  t.strictSame(shelved.map(String), texts)
  const blocks = new Set(shelved.map(({ buffer }) => buffer))
  t.ok(blocks.size < 20, `${blocks.size} blocks`)
})
