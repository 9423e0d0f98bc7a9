// Without it a timeline could change in the shared tier, or damaged and forged bytes could be served as weather.

import fc from 'fast-check'
import t from 'tap'
import {
  createCalendar,
  dayNumber,
  hourMs,
  minuteMs,
  quarterHourMs,
  utcDayMs,
} from '../../src/common/calendar.ts'
import { decodeTimelines } from '../../src/provider/open-meteo/decode.ts'
import { pathFor } from '../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { stepsWithin } from '../../src/weather/horizon.ts'
import { layOut, type Timeline } from '../../src/weather/timeline.ts'
import {
  decodeTimeline,
  type Expectation,
  encodeTimeline,
  readHead,
} from '../../src/weather/timeline-bytes.ts'
import { startSimulator } from '../../tools/provider/simulator.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { sampleTimeline } from './sample-timeline.ts'
import { compressed, plainColumns, plainHead, sealed, sealedBytes } from './sealed-bytes.ts'
import { currentAt, hoursFrom } from './slices.ts'

const calendar = createCalendar('Asia/Dhaka')
const metadata = { generation: 3, run: Date.parse('2026-11-21T01:40Z') }
const now = Date.parse(noon)
const horizon = { quarterHours: 98, days: 9 }
const key = 'q:23.7,90.4'
const expected: Expectation = { key, lengths: stepsWithin(horizon), now, calendar }
/** The decoder's expectations for the sample timeline. */
const ofSample: Expectation = { ...expected, lengths: { quarterHours: 60, hours: 216, days: 9 } }

const encode = (timeline: Timeline, { lengths } = expected) =>
  encodeTimeline(key, timeline, metadata, lengths)
/** The decoded timeline, or undefined when the bytes are refused. */
const decode = (bytes: Buffer, against = expected) => {
  const found = decodeTimeline(bytes, against)
  return typeof found === 'string' ? undefined : found
}
/** Why bytes are refused. */
const refusal = (bytes: Buffer, against: Partial<Expectation> = {}) => {
  const found = decodeTimeline(bytes, { ...expected, ...against })
  return typeof found === 'string' ? found : 'not refused'
}

const simulated = async (): Promise<Timeline[]> => {
  const clock = manualClock()
  const simulator = await startSimulator({ clock })
  t.teardown(() => simulator.close())
  const grid = createGrid(0.1)
  const cells = Array.from({ length: 25 }, (_, i) =>
    grid.cellOf(20.7 + i * 0.24, 88.1 + ((i * 7) % 25) * 0.18),
  )
  const body = await (await fetch(simulator.url + pathFor(cells, horizon, calendar.zone))).bytes()
  const expected = { cells, horizon, calendar, clock, requestedAt: now, onOdd: () => {} }
  return (await decodeTimelines([body], expected)) as Timeline[]
}
const weather = await simulated()

t.test('simulated weather comes back value for value, metadata with it, in a ninth of its room', async t => {
  for (const timeline of weather) {
    const bytes = encode(timeline)
    t.strictSame(decode(bytes), { timeline, metadata })
    const room = timeline.values.byteLength
    t.ok(bytes.length < room / 9, `${bytes.length} of ${room} bytes`)
  }
})

t.test('metadata come back as they were given, and values in a buffer no larger than they are', async t => {
  for (const given of [
    { generation: 0, run: null },
    { generation: 1, run: 0 },
    { generation: Number.MAX_SAFE_INTEGER, run: now },
  ]) {
    const bytes = encodeTimeline(key, sampleTimeline(), given, ofSample.lengths)
    const back = decode(bytes, ofSample)
    t.strictSame(back?.metadata, given)
    t.match(readHead(bytes, ofSample), { fetchedAt: sampleTimeline().fetchedAt, metadata: given })
    t.equal(back?.timeline.values.buffer.byteLength, back?.timeline.values.byteLength)
  }
})

t.test('numbers of every size, with up to three decimals and with gaps, come back', async t => {
  const seeded = seededNumbers(7)
  const spans = { start: now, length: 37 }
  const midnight = { start: Date.parse('2026-11-20T18:00Z') }
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
    const lengths = { quarterHours: 37, hours: round % 5, days: 1 }
    const timeline = layOut(
      now,
      spans,
      { ...midnight, length: lengths.hours },
      { start: dayNumber('2026-11-21'), length: 1 },
    )
    let kind = kinds[0] as (step: number) => number
    timeline.values.forEach((_, i) => {
      if (i % 37 === 0) kind = kinds[Math.floor(seeded() * kinds.length)] as typeof kind
      timeline.values[i] = kind(i % 37)
    })
    // A series without any value is refused.
    for (const { offset } of [timeline.quarterHours, timeline.hours, timeline.days])
      timeline.values[offset] = 1
    const of = { ...expected, lengths }
    t.strictSame(decode(encode(timeline, of), of)?.timeline, timeline)
  }
})

t.test('numbers with more decimals are answered from the bytes as from memory', async t => {
  const timeline = sampleTimeline()
  const seeded = seededNumbers(11)
  timeline.values.forEach((_, i) => {
    timeline.values[i] = (seeded() - 0.5) * 16_383
  })
  timeline.values[0] = 8191.999
  const back = decode(encode(timeline, ofSample), ofSample)?.timeline as Timeline
  for (let i = 0; i < 60; i++) {
    const instant = timeline.fetchedAt + i * quarterHourMs
    t.strictSame(currentAt(back, instant, calendar), currentAt(timeline, instant, calendar))
  }
  t.strictSame(
    hoursFrom(back, timeline.fetchedAt, calendar, 48),
    hoursFrom(timeline, timeline.fetchedAt, calendar, 48),
  )
})

const bytes = encode(weather[0] as Timeline)

t.test('bytes turned over, replaced, swapped, blanked or cut off anywhere are absent', async t => {
  const wasRead: string[] = []
  const damage = (at: number, what: string, spoil: (copy: Buffer) => Buffer) => {
    const spoilt = spoil(Buffer.from(bytes))
    if (!spoilt.equals(bytes) && decode(spoilt)) wasRead.push(`${what} at ${at}`)
  }
  for (let at = 0; at < bytes.length; at++) {
    const [here, next] = [bytes[at] ?? 0, bytes[(at + 1) % bytes.length] ?? 0]
    for (let bit = 0; bit < 8; bit++)
      damage(at, `bit ${bit}`, copy => copy.fill(here ^ (1 << bit), at, at + 1))
    damage(at, 'another byte', copy => copy.fill(here ^ 0xff, at, at + 1))
    damage(at, 'blanks', copy => copy.fill(0, at, Math.min(at + 64, copy.length)))
    damage(at, 'two swapped', copy => {
      ;[copy[at], copy[(at + 1) % bytes.length]] = [next, here]
      return copy
    })
    damage(at, 'the end', copy => copy.subarray(0, at))
    damage(at, 'the begin', copy => copy.subarray(at))
  }
  for (const more of [Buffer.alloc(1), Buffer.alloc(4), Buffer.alloc(100, 0xff), bytes]) {
    damage(bytes.length, 'more behind', copy => Buffer.concat([copy, more]))
    damage(0, 'more before', copy => Buffer.concat([more, copy]))
  }
  t.strictSame(wasRead, [])
  t.ok(decode(bytes), 'and the whole is there')
})

t.test('timelines of other lengths than the reader has say theirs, and are read by all', async t => {
  for (const horizon of [
    { quarterHours: 60, days: 9 },
    { quarterHours: 61, days: 10 },
    { quarterHours: 394, days: 13 },
  ]) {
    const timeline = sampleTimeline({ quarterHours: horizon.quarterHours, days: horizon.days })
    const written = encode(timeline)
    t.equal(written[0], 4)
    t.strictSame(decode(written)?.timeline, timeline)
    t.strictSame(decode(written, ofSample)?.timeline, timeline, 'whatever lengths the reader has')
    const { values: _, ...spans } = timeline
    const head = readHead(written, expected)
    t.match(head, { fetchedAt: timeline.fetchedAt, quarterHours: { length: horizon.quarterHours } })
    t.same(Object.keys(head).sort(), ['metadata', ...Object.keys(spans)].sort())
    for (let length = 0; length < written.length; length += 7)
      t.equal(decode(written.subarray(0, length)), undefined)
  }
  // Of no gateway, and with the checksum right.
  const plain = encode(sampleTimeline())
  for (const [at, value, reason] of [
    [57, 65_535, /^malformed$/],
    [57, 399, /^malformed$/],
    [59, 15, /^malformed$/],
    [57, 0, /^instant$/],
    [59, 0, /^instant$/],
    [57, 61, /^(?!not refused)/],
    [59, 8, /^(?!not refused)/],
  ] as const) {
    const forged = Buffer.from(plain)
    forged.writeUInt16LE(value, at)
    t.match(refusal(sealed(forged)), reason, `${value} at ${at}`)
  }
})

// From here on the bytes are crafted: every checksum is correct.

const columns = plainColumns(expected.lengths)
const body = compressed(columns)

t.test('bytes put together as they are described are read, under their key alone', async t => {
  for (const other of ['q:23.8,90.4', 'p:23.7,90.4', 'q:23.7,90.40', '', 'q:'])
    t.equal(refusal(bytes, { key: other }), 'key', other)
  const found = decode(sealedBytes(key, {}, body))
  t.strictSame(found?.metadata, { generation: 0, run: null })
  t.equal(found?.timeline.fetchedAt, plainHead.fetchedAt)
  t.ok(found?.timeline.values.every(value => value === 0))
})

t.test('columns of another length are refused, and take no room by what they say', async t => {
  const { quarterHours, hours, days } = expected.lengths
  for (const lengths of [
    { quarterHours: quarterHours + 1, hours, days },
    { quarterHours: quarterHours - 1, hours, days },
    { quarterHours, hours: hours + 24, days: days + 1 },
    { quarterHours: 0, hours: 0, days: 0 },
  ])
    t.equal(refusal(sealedBytes(key, {}, compressed(plainColumns(lengths)))), 'length')
  t.equal(refusal(sealedBytes(key, {}, compressed(Buffer.alloc(200_000, 1)))), 'too_large')
  t.equal(refusal(sealedBytes(key, {}, Buffer.alloc(30_000))), 'too_large', 'before anything is unpacked')
})

const odd = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 1e300, -1e300]

t.test("an instant that can't be is refused, and clocks of a fleet may differ by five minutes", async t => {
  const { lengths } = expected
  const heads: [string, object][] = [
    ...['fetchedAt', 'generation', 'quarterHours', 'hours', 'days', 'run'].flatMap(name =>
      // Without a run it is no number.
      odd
        .slice(name === 'run' ? 1 : 0)
        .map((value): [string, object] => [`${name} ${value}`, { [name]: value }]),
    ),
    ['fetched after now', { fetchedAt: now + 5 * minuteMs + 1 }],
    ['fetched a year after now', { fetchedAt: now + 365 * utcDayMs }],
    ['a run after the fetch', { run: now + 5 * minuteMs + 1 }],
    ['half a purge', { generation: 0.5 }],
    ['more purges than can be counted', { generation: 2 ** 53 }],
    ['quarter-hours out of step', { quarterHours: now - minuteMs }],
    ['quarter-hours after the fetch', { quarterHours: now + quarterHourMs }],
    ['quarter-hours that ended before it', { quarterHours: now - lengths.quarterHours * quarterHourMs }],
    ['hours out of step with days', { hours: plainHead.hours + hourMs }],
    ['hours of another day', { hours: plainHead.hours + utcDayMs }],
    ['days after the fetch', { days: plainHead.days + 1, hours: plainHead.hours + utcDayMs }],
    ['days that ended before it', { days: plainHead.days - 10, hours: plainHead.hours - 10 * utcDayMs }],
    ['half a day', { days: plainHead.days + 0.5, hours: plainHead.hours + utcDayMs / 2 }],
  ]
  for (const [what, head] of heads) t.equal(refusal(sealedBytes(key, head, body)), 'instant', what)
  const ahead = { fetchedAt: now + 5 * minuteMs, run: now + 10 * minuteMs }
  t.ok(decode(sealedBytes(key, ahead, body)))
})

t.test('columns that are never written so are refused', async t => {
  const altered = (at: number, ...values: number[]): Buffer => {
    const copy = Buffer.from(columns)
    copy.set(values, at)
    return compressed(copy)
  }
  const never = [
    ...Array.from({ length: 248 }, (_, i) => altered(0, 8 + i)),
    // A number of five bytes or more takes the place of as many values.
    ...[5, 6, 10, 300].map(length => altered(1, ...Buffer.alloc(length, 0x80).fill(1, length - 1))),
    // 8,192 as a whole number, with three decimals, and below zero; stored as twice the number plus one.
    altered(0, 0, ...varint(2 * 8_192 + 1)),
    altered(0, 3, ...varint(2 * 8_192_000 + 1)),
    altered(0, 0, ...varint(2 * 8_192)),
    // A slope that never ends is soon out of bounds.
    altered(0, 4, 1, ...varint(8_001)),
  ]
  for (const [i, packed] of never.entries())
    t.equal(refusal(sealedBytes(key, {}, packed)), 'malformed', `case ${i}`)
})

t.test('a series without any value is refused, as the provider’s is', async t => {
  const { quarterHours, hours, days } = expected.lengths
  const starts = [0, 15 * (1 + quarterHours), 15 * (1 + quarterHours) + 11 * (1 + hours), columns.length]
  const counts = [15, 11, 4]
  const lengths = [quarterHours, hours, days]
  for (const [i, length] of lengths.entries()) {
    const copy = Buffer.from(columns)
    for (let column = 0; column < (counts[i] ?? 0); column++) {
      const from = (starts[i] ?? 0) + column * (1 + length) + 1
      copy.fill(0, from, from + length)
    }
    t.equal(refusal(sealedBytes(key, {}, compressed(copy))), 'malformed', `series ${i}`)
    // One value is enough.
    copy[(starts[i + 1] ?? 0) - 1] = 1
    t.ok(decode(sealedBytes(key, {}, compressed(copy))), `series ${i} with one value`)
  }
})

t.test('what is compressed otherwise, cut off or has more behind it is refused', async t => {
  for (const [other, reason] of [
    [Buffer.concat([body, Buffer.alloc(1)]), 'length'],
    [Buffer.concat([body, body]), 'length'],
    [body.subarray(0, -1), 'length'],
    [Buffer.alloc(0), 'length'],
    // A window of 16 MiB, and not compressed at all.
    [compressed(columns, 24), 'malformed'],
    [columns, 'malformed'],
  ] as const)
    t.equal(refusal(sealedBytes(key, {}, other)), reason)
  t.equal(refusal(sealedBytes(key, { version: 2 }, body)), 'version')
})

const seed = 20_261_121
const places = fc.integer({ min: 0, max: bytes.length - 1 })
const changes = fc.array(
  fc.oneof(
    fc.record({ at: places, put: fc.uint8Array({ minLength: 1, maxLength: 9 }) }),
    fc.record({ at: places, drop: fc.integer({ min: 1, max: 80 }) }),
    fc.record({ at: places, add: fc.uint8Array({ minLength: 1, maxLength: 80 }) }),
  ),
  { minLength: 1, maxLength: 5 },
)
const mutated = (
  list: readonly ({ at: number } & Partial<Record<'put' | 'add', Uint8Array> & { drop: number }>)[],
) => {
  let copy = Buffer.from(bytes)
  for (const { at, put, drop, add } of list) {
    if (put && at < copy.length) copy.set(put.subarray(0, copy.length - at), at)
    if (drop) copy = Buffer.concat([copy.subarray(0, at), copy.subarray(at + drop)])
    if (add) copy = Buffer.concat([copy.subarray(0, at), add, copy.subarray(at)])
  }
  return copy
}

t.test('a mutated entry with a right checksum has possible numbers and the expected lengths', async t => {
  let read = 0
  const outcomes = new Map<string, number>()
  fc.assert(
    fc.property(changes, list => {
      const copy = mutated(list)
      if (copy.length < 57) return
      const found = decodeTimeline(sealed(copy), expected)
      const outcome = typeof found === 'string' ? found : 'read'
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      if (typeof found === 'string') return
      read += 1
      const { values, fetchedAt } = found.timeline
      if (!values.every(value => Number.isNaN(value) || Math.abs(value) < 8_192))
        throw new Error('out of bounds')
      if (values.length !== (weather[0] as Timeline).values.length) throw new Error('another length')
      if (!(fetchedAt <= now + 5 * minuteMs)) throw new Error('from the future')
      if (!currentAt(found.timeline, fetchedAt, calendar)) throw new Error('not of its own time')
    }),
    { seed, numRuns: 3_000 },
  )
  t.comment(JSON.stringify(Object.fromEntries(outcomes)))
  t.ok(read > 10 && outcomes.size > 4, `${read} could be read, ${outcomes.size} outcomes`)
})

/** A number as encoded in a column. */
function varint(code: number): Uint8Array {
  const out: number[] = []
  for (; code > 127; code = Math.floor(code / 128)) out.push((code % 128) + 128)
  return Uint8Array.from([...out, code])
}

/** Pseudo-random numbers from 0 to 1 for a seed. */
function seededNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
