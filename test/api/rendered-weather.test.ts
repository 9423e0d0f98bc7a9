// Without it weather could be rendered for each request, served beyond its quarter-hour, or missed in the bound of memory.

import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  gunzipSync,
  inflateRawSync,
} from 'node:zlib'
import t from 'tap'
import { type Answers, type CellResult, createAnswers } from '../../src/api/answer.ts'
import type { Compression, Encoded } from '../../src/api/content-coding.ts'
import { copyOutOfPool, createArena, textOutOfPool } from '../../src/api/copy-out-of-pool.ts'
import type { Representation } from '../../src/api/endpoint.ts'
import { type PlacePart, pointPart } from '../../src/api/places.ts'
import { createRenderedWeather } from '../../src/api/rendered-weather.ts'
import { createMemoryTier, type Derived, keepEntry } from '../../src/cache/tiers.ts'
import { createCalendar, quarterHourMs, utcDayMs } from '../../src/common/calendar.ts'
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
const timelines = { read: () => Promise.reject(new Error('not read')) }

const setUp = (compression?: Compression) => {
  let rendered = 0
  const real = createAnswers({ grid, calendar, hourlyHours: 48, timelines })
  const counted = <Slice>(slice: Slice): Slice => {
    rendered += 1
    return slice
  }
  let next: CellResult | undefined
  const answers: Answers = {
    ...real,
    read: () => next ?? timelines.read(),
    weather: result => counted(real.weather(result)),
    forecast: (result, days) => counted(real.forecast(result, days)),
  }
  const weather = createRenderedWeather(answers, calendar.zone, compression)
  return {
    current: (result: CellResult, place: PlacePart, words?: 'bn' | 'en') => {
      next = result
      return weather.represent(cell, undefined, place, '', undefined, words) as Representation
    },
    forecast: (result: CellResult, days: number, words?: 'bn' | 'en') => {
      next = result
      return weather.represent(cell, days, somewhere, '', undefined, words) as Representation
    },
    ...{ part: weather.part, deflated: weather.deflated },
    rendered: () => rendered,
  }
}
const somewhere = pointPart(1, 90)

const memory = createMemoryTier<Timeline>(100_000_000)
const derived = new Map<Timeline, Derived>()
/** Replaces the timeline in memory. */
const keptTimeline = (fetchedAt: number): Timeline => {
  const value = timelineAt(fetchedAt)
  const entry = { value, bytes: bytesOf(value), fetchedAt, jitter: 0, generation: 0, run: null }
  derived.set(value, keepEntry(memory, 'cell', entry).derived)
  return value
}

const resultAt = (readAt: number, value = keptTimeline(start)): CellResult => ({
  subject: cell,
  value,
  readAt,
  fetchedAt: value.fetchedAt,
  freshUntil: start + utcDayMs + 500,
  outcome: 'hit',
  source: 'memory',
  forwarded: false,
  collapsed: false,
  derived: derived.get(value) ?? { data: undefined, setBytes: () => {} },
})
/** The bytes that memory accounts for beside the timeline. */
const beside = (): number => memory.calculatedSize - (memory.peek('cell')?.bytes ?? 0)
const textOf = ({ chunks }: Representation): string => Buffer.concat([...chunks]).toString()

t.test('a slice is rendered once, for every place and answer until it ends', async t => {
  const { current, forecast, rendered } = setUp()
  const timeline = keptTimeline(start)
  const [one, other] = [pointPart(1, 90), pointPart(2, 90)]
  for (const after of [0, 1, quarterHourMs - 1])
    for (const place of [one, other]) {
      const result = resultAt(start + after, timeline)
      const body = JSON.parse(textOf(current(result, place)))
      t.hasStrict(body, { location: {}, current: { time: '2026-11-21T12:00' } })
      t.hasStrict(body, { timezone: 'Asia/Dhaka', utc_offset_seconds: 21_600 })
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

t.test('what codes mean is a slice of its own in each language, rendered once and counted', async t => {
  const { current, rendered } = setUp()
  const timeline = keptTimeline(start)
  const at = (after: number) => resultAt(start + after, timeline)
  const plain = textOf(current(at(0), somewhere))
  const before = beside()
  const texts = new Set<string>()
  for (const after of [0, 1, quarterHourMs - 1])
    for (const words of ['bn', 'en'] as const) {
      const text = textOf(current(at(after), somewhere, words))
      texts.add(text)
      t.hasStrict(JSON.parse(text).current, {
        weather_text: words === 'en' ? 'Clear sky' : 'পরিষ্কার আকাশ',
        icon: 'clear-night',
      })
      t.equal(textOf(current(at(after), somewhere)), plain, 'that without stays as it is')
    }
  t.strictSame([texts.size, rendered()], [2, 3])
  const bytes = [...texts].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  t.ok(beside() - before > bytes - 1_000, 'both are in the size of the entry')
})

t.test('weather and each length of a forecast are slices of their own, as are those with words', async t => {
  const { current, forecast, rendered } = setUp()
  const result = resultAt(start)
  const texts = new Set<string>()
  for (const _ of ['rendered', 'kept'])
    for (const words of [undefined, 'bn', 'en'] as const) {
      texts.add(textOf(current(result, somewhere, words)))
      for (let days = 1; days <= 7; days++) texts.add(textOf(forecast(result, days, words)))
    }
  t.strictSame([texts.size, rendered()], [24, 24])
})

t.test('a response says what the cache did, since when its weather is, and how long it is right', async t => {
  const { current } = setUp()
  const hit = resultAt(start)
  const [second, day] = [1_000, utcDayMs]
  for (const [more, maxAge, cache, since] of [
    [{}, 900, 'hit; ttl=86400; detail=memory'],
    [{ freshUntil: start + 2 * day }, 900, 'hit; ttl=172800; detail=memory'],
    [{ readAt: start + second }, 899, 'hit; ttl=86399; detail=memory'],
    [{ freshUntil: start + 1_999 }, 1, 'hit; ttl=1; detail=memory'],
    [{ source: 'redis', upstream: 'second' }, 900, 'hit; ttl=86400; detail=redis; upstream=second'],
    [{ outcome: 'stale', freshUntil: start - 1 }, 0, 'hit; ttl=-1; detail=memory'],
    [{ outcome: 'stale', freshUntil: start, forwarded: true }, 0, 'fwd=stale; ttl=0; detail=memory'],
    [
      ...[{ outcome: 'stale', freshUntil: start, forwarded: true, collapsed: true }, 0],
      'fwd=stale; collapsed; ttl=0; detail=memory',
    ],
    [{ outcome: 'miss', forwarded: true, source: 'x' }, 900, 'fwd=miss; stored; ttl=86400'],
    [{ outcome: 'miss', collapsed: true, source: 'x' }, 900, 'fwd=miss; collapsed; stored; ttl=86400'],
    [{ fetchedAt: start + second }, 900, 'hit; ttl=86400; detail=memory', 'Sat, 21 Nov 2026 06:00:00 GMT'],
    [{}, 900, 'hit; ttl=86400; detail=memory'],
  ] as [Partial<CellResult>, number, string, string?][]) {
    const said = current({ ...hit, ...more }, somewhere)
    t.equal(said.cache, cache)
    t.equal(
      said.fresh,
      `cache-control: private, max-age=${maxAge}\r\nlast-modified: ${since ?? 'Sat, 21 Nov 2026 06:00:00 GMT'}\r\ncache-status: abohawa; ${cache}; key="${cell.id}"\r\n`,
    )
  }
})

t.test('weather that was fetched by a clock that is ahead is no newer than its response', async t => {
  const { current } = setUp()
  const result = { ...resultAt(start), fetchedAt: start + 60_000 }
  t.match(current(result, somewhere).fresh, 'last-modified: Sat, 21 Nov 2026 06:00:00 GMT')
  const later = { ...result, readAt: start + 120_000 }
  t.match(current(later, somewhere).fresh, 'last-modified: Sat, 21 Nov 2026 06:00:00 GMT')
})

t.test('a timeline that has ended is an error, which names its cell and its instants', async t => {
  const answers = createAnswers({ grid, calendar, hourlyHours: 48, timelines })
  for (const act of [
    () => answers.weather(resultAt(start + 10 * utcDayMs)),
    () => answers.forecast(resultAt(start + 10 * utcDayMs), 7),
  ])
    t.throws(act, {
      code: 'timeline_exhausted',
      message: `the timeline of ${cell.id}, fetched 2026-11-21T06:00:00.000Z, does not reach 2026-12-01T06:00:00.000Z`,
    })
})

t.test('the part of a list is the slice, compressed once, and counts towards the memory', async t => {
  const { part, deflated, current } = setUp()
  const result = resultAt(start)
  const found = part(result, somewhere, undefined)
  t.hasStrict(found, { maxAge: 900, ttl: 86_400, place: somewhere, result })
  const alone = beside()
  const zipped = deflated(found)
  t.equal(deflated(part(result, pointPart(2, 90), undefined)), zipped)
  const finishFlush = constants.Z_SYNC_FLUSH
  t.ok(inflateRawSync(zipped.bytes, { finishFlush }).equals(found.slice.bytes))
  t.ok(beside() >= alone + zipped.bytes.length, 'its bytes')
  t.ok(beside() < alone + zipped.bytes.length + 1_000)
  t.equal(textOf(current(result, somewhere)), Buffer.concat([somewhere.bytes, found.slice.bytes]).toString())
  t.match(part(result, somewhere, 1).slice.bytes.toString(), /^"daily"/)
})

t.test('answers that come later with the same bytes say each for itself how long they are right', async t => {
  const timeline = keptTimeline(start)
  const results = [0, 60_000].map(after => resultAt(start + after, timeline))
  const real = createAnswers({ grid, calendar, hourlyHours: 48, timelines })
  const read = async () => results.shift() as CellResult
  const weather = createRenderedWeather({ ...real, read }, calendar.zone)
  // As a place of the catalogue, whose body is kept.
  const place = { ...pointPart(1, 90), isKept: true }
  const both = await Promise.all([0, 1].map(() => weather.represent(cell, undefined, place, '')))
  const ages = both.map(({ fresh = '' }) => Number(/max-age=(\d+)/.exec(fresh)?.[1]))
  t.strictSame(ages, [900, 840])
  t.equal(both[0]?.tag, both[1]?.tag)
})

t.test('the offset is that of the instant, also on the day that changes it', async t => {
  const berlin = createCalendar('Europe/Berlin')
  const answers = createAnswers({ grid, calendar: berlin, hourlyHours: 48, timelines })
  const hour = 4 * quarterHourMs
  const day = Date.parse('2026-10-24T22:00Z')
  const steps = { start: day, length: 200 }
  const timeline = layOut(day, steps, steps, { start: Math.floor(day / utcDayMs), length: 10 })
  for (const [after, offset, endsAt] of [
    [0, 7_200, day + quarterHourMs],
    [3 * hour - 1, 7_200, day + 3 * hour],
    [3 * hour, 3_600, day + 25 * hour],
    [25 * hour, 3_600, day + 49 * hour],
  ] as const) {
    const result = resultAt(day + after, timeline)
    t.equal(answers.weather(result).utcOffsetSeconds, offset, `${after}`)
    t.hasStrict(answers.forecast(result, 1), { utcOffsetSeconds: offset, endsAt }, `${after}`)
  }
})

const gzip = { preferred: 'gzip', gzip: true } as const
const both = { preferred: 'br', gzip: true } as const
const brOnly = { preferred: 'br', gzip: false } as const

t.test('weather is compressed once for all places of a cell, and counts towards the memory', async t => {
  let deflated = 0
  const deflate = (bytes: Buffer) => {
    deflated += 1
    return deflateRawSync(bytes)
  }
  const { current } = setUp({ deflate, brotli: async () => Buffer.alloc(0) })
  const result = resultAt(start)
  current(result, somewhere)
  const alone = beside()
  let compressed = 0
  for (let i = 0; i < 100; i++) {
    const body = current(result, pointPart(i, 90))
    const { coding, chunks } = (await body.encode(gzip)) as Encoded
    t.equal(coding, 'gzip')
    t.ok(gunzipSync(Buffer.concat(chunks)).equals(Buffer.concat(body.chunks)))
    compressed = beside() - alone
  }
  t.equal(deflated, 1)
  t.ok(compressed > 100 && compressed < 2_000, `${compressed} bytes for a hundred places`)
  current(resultAt(start + quarterHourMs, result.value), somewhere)
  t.equal(beside(), alone, 'they go with their slice')
})

t.test('br is for bodies that are often requested, and for those who take nothing else', async t => {
  let made = 0
  const brotli = async (bytes: Buffer) => {
    made += 1
    return brotliCompressSync(bytes)
  }
  const { current } = setUp({ deflate: bytes => deflateRawSync(bytes), brotli })
  const result = resultAt(start)
  const seldom = current(result, pointPart(1, 90))
  t.hasStrict(await seldom.encode(both), { coding: 'gzip' })
  t.equal(made, 0)
  const { coding, chunks } = (await seldom.encode(brOnly)) as Encoded
  t.equal(coding, 'br')
  t.ok(brotliDecompressSync(Buffer.concat(chunks)).equals(Buffer.concat(seldom.chunks)))
  t.hasStrict(await seldom.encode(brOnly), { coding: 'br' })
  t.equal(made, 1, 'it is kept')
  const often = current(result, pointPart(2, 90))
  const codings: string[] = []
  for (let i = 0; i < 1_100; i++) codings.push((await often.encode(both))?.coding ?? 'none')
  t.strictSame([codings[0], codings[900], codings.at(-1)], ['gzip', 'gzip', 'br'])
  t.equal(made, 2)

  const alone = current(resultAt(start + 1), somewhere)
  for (let i = 0; i < 1_023; i++) await alone.encode(both)
  t.equal(made, 2)
  t.hasStrict(await alone.encode(both), { coding: 'gzip' }, 'nobody waits for it')
  t.equal(made, 3, 'from the 1,024th request on')
})

t.test('br that fails is tried again, and nobody who takes gzip meets the failure', async t => {
  let tries = 0
  const brotli = async () => {
    tries += 1
    throw new Error('no memory')
  }
  const { current } = setUp({ deflate: bytes => deflateRawSync(bytes), brotli })
  const body = current(resultAt(start), somewhere)
  for (let i = 0; i < 1_200; i++) t.equal((await body.encode(both))?.coding, 'gzip')
  t.ok(tries > 1, `${tries} tries`)
  await t.rejects(Promise.resolve(body.encode(brOnly)), /no memory/)
})

t.test('a body that is compressed after its timeline was replaced is not accounted for', async t => {
  const { current } = setUp()
  const result = resultAt(start)
  const body = current(result, pointPart(1, 90))
  t.ok(beside() > 0)
  const renewed = resultAt(start + 1)
  t.equal(beside(), 0)
  await body.encode(gzip)
  await body.encode(brOnly)
  t.equal(beside(), 0)
  current(renewed, somewhere)
  t.ok(beside() > 0)
})

t.test('cached bytes are in memory of their own', async t => {
  const text = textOutOfPool('{"name_bn":"ঢাকা"}')
  t.equal(text.toString(), '{"name_bn":"ঢাকা"}')
  t.equal(text.buffer.byteLength, text.length)
  const part = Buffer.alloc(100, 7).subarray(10, 20)
  t.strictSame([...copyOutOfPool(part)], [...part])
  t.equal(copyOutOfPool(part).buffer.byteLength, 10)
})

t.test('small buffers share blocks, and none overwrites another', async t => {
  const keep = createArena()
  const texts = Array.from({ length: 1_000 }, (_, i) => `${i} ঢাকা`.repeat(1 + (i % 70)))
  texts.push('x'.repeat(1 << 20), '')
  const kept = texts.map(text => keep(Buffer.from(text)))
  t.strictSame(kept.map(String), texts)
  const blocks = new Set(kept.map(({ buffer }) => buffer))
  t.ok(blocks.size < 20, `${blocks.size} blocks`)
})

t.test('there is no end of points: some are kept, and none keeps an often requested one from br', async t => {
  const { current } = setUp({
    deflate: bytes => deflateRawSync(bytes),
    brotli: async () => Buffer.alloc(2_000),
  })
  const result = resultAt(start)
  current(result, somewhere)
  const alone = beside()
  for (let i = 0; i < 3_000; i++) await current(result, pointPart(i, 90)).encode(both)
  const zipped = beside()
  await current(result, pointPart(4_000, 90)).encode(brOnly)
  const one = beside() - zipped
  t.ok(one >= 2_000)
  const often = current(result, pointPart(5_000, 90))
  let last: Encoded | undefined
  for (let i = 0; i < 1_100; i++) last = await often.encode(both)
  t.hasStrict(last, { coding: 'br' })
  // Bodies in br that are displaced count no more.
  for (let i = 0; i < 1_000; i++) await current(result, pointPart(6_000 + i, 90)).encode(brOnly)
  t.ok(beside() >= alone + 60 * 2_000, 'those of the first are kept')
  t.equal(beside(), zipped + 64 * one)
})
