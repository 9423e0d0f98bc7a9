// Bodies of the real protocol, each damaged in one place.

import t from 'tap'
import { createCalendar } from '../../../src/common/calendar.ts'
import { decodeTimelines } from '../../../src/provider/open-meteo/decode.ts'
import { pathFor } from '../../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../../src/weather/cell.ts'
import { horizonFor } from '../../../src/weather/horizon.ts'
import type { Timeline } from '../../../src/weather/timeline.ts'
import { manualClock, noon } from '../../support/manual-clock.ts'
import { startProvider } from '../../support/provider-process.ts'
import { currentAt, daysFrom } from '../../support/slices.ts'

const provider = await startProvider(t)
const calendar = createCalendar('Asia/Dhaka')
const horizon = horizonFor(13 * 3_600_000, 48)
const grid = createGrid(0.1)
const cells = [grid.cellOf(23.8, 90.4), grid.cellOf(22.3, 91.8)]
const text = await (await fetch(provider.url + pathFor(cells, horizon, calendar.zone))).text()
const now = Date.parse(noon)
const decode = (body: unknown) =>
  decodeTimelines([Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))], {
    cells,
    horizon,
    calendar,
    clock: manualClock(),
    requestedAt: now,
  })

t.test('a good body gives a timeline for each cell', async t => {
  const [dhaka, chattogram] = (await decode(text)) as Timeline[]
  const body = JSON.parse(text)
  t.equal(currentAt(dhaka as Timeline, now, calendar)?.temperature_2m, body[0].minutely_15.temperature_2m[4])
  t.equal(
    currentAt(chattogram as Timeline, now, calendar)?.temperature_2m,
    body[1].minutely_15.temperature_2m[4],
  )
})

t.test('every number of the body lies where its variable and step are looked for, -0 as 0', async t => {
  const body = JSON.parse(text)
  body[1].hourly.temperature_2m[30] = -0
  body[1].hourly.cloud_cover[31] = null
  const { hours, days, values } = (await decode(body))[1] as Timeline
  t.equal(values.buffer.byteLength, values.byteLength, 'in a buffer of its own')
  t.ok(Object.is(values[hours.offset + 30], 0))
  t.ok(Number.isNaN(values[hours.offset + 6 * hours.length + 31]))
  t.strictSame(
    Array.from(values.subarray(days.offset)),
    [
      ...body[1].daily.weather_code,
      ...body[1].daily.temperature_2m_max,
      ...body[1].daily.temperature_2m_min,
      ...body[1].daily.precipitation_probability_max,
    ].map(Math.fround),
  )
})

t.test('a variable that the models do not have is null, and the others are there', async t => {
  const body = JSON.parse(text)
  body[0].minutely_15_units.snowfall = 'undefined'
  body[0].minutely_15.snowfall.fill(null)
  const current = currentAt((await decode(body))[0] as Timeline, now, calendar)
  t.equal(current?.snowfall, null)
  t.type(current?.temperature_2m, 'number')
})

// biome-ignore lint/suspicious/noExplicitAny: bodies are spoilt in places of every shape
const spoilings: [string, (element: any) => void, RegExp][] = [
  [
    'another unit',
    e => (e.hourly_units.temperature_2m = '°F'),
    /hourly\.temperature_2m is in "°F", expected "°C"/,
  ],
  [
    'a number as text',
    e => (e.daily.weather_code[2] = '3'),
    /daily\.weather_code holds "3", expected numbers and nulls/,
  ],
  [
    'a number that no weather has',
    e => (e.hourly.cloud_cover[0] = 1e9),
    /hourly\.cloud_cover holds 1000000000/,
  ],
  ['a column that is none', e => (e.daily.weather_code = 3), /daily\.weather_code: expected an array/],
  [
    'a time in the middle that is out of step, where the element before had none',
    e => (e.hourly.time[7] = e.hourly.time[8]),
    /hourly\.time\[7\] is .*, out of step/,
  ],
  ['no units', e => delete e.daily_units, /daily_units: /],
  ['a section without times', e => delete e.hourly.time, /hourly\.time: /],
  [
    'fewer days than requested',
    e => {
      for (const column of Object.values<unknown[]>(e.daily)) column.pop()
    },
    /daily has 9 steps, expected 10/,
  ],
  ['no offset', e => delete e.utc_offset_seconds, /utc_offset_seconds: /],
  ['a time that is none', e => (e.daily.time[0] = 'today'), /daily\.time\[0\] is today, out of step/],
  [
    'hours of other days',
    e => {
      e.hourly.time = e.hourly.time.map((time: string) =>
        new Date(Date.parse(`${time}Z`) - 3 * 86_400_000).toISOString().slice(0, 16),
      )
    },
    /hourly begins at .*, expected the beginning of/,
  ],
  [
    'no value at all',
    e => {
      for (const [name, column] of Object.entries<unknown[]>(e.daily)) if (name !== 'time') column.fill(null)
    },
    /daily has no value at all/,
  ],
]
for (const [what, spoil, message] of spoilings)
  t.test(`${what} spoils its own element and no other`, async t => {
    const body = JSON.parse(text)
    spoil(body[0])
    const [spoilt, good] = await decode(body)
    t.match(spoilt, { code: 'provider_garbled', message, retryable: false })
    t.ok(daysFrom(good as Timeline, now, calendar, 7))
  })

t.test('a body that is not JSON to its end, or empty, is cut off, and a wrong count is garbled', async t => {
  await t.rejects(decode(text.slice(0, -1)), { code: 'provider_cut_off', retryable: true })
  await t.rejects(decode('<html>'), { code: 'provider_cut_off' })
  for (const empty of ['', ' \n'])
    await t.rejects(decode(empty), { code: 'provider_cut_off', refused: 'damaged', retryable: true })
  await t.rejects(decode(JSON.parse(text).slice(1)), {
    code: 'provider_garbled',
    message: /1 elements for 2 points/,
  })
  for (const nothing of ['null', '[]', '{}']) await t.rejects(decode(nothing), { code: 'provider_garbled' })
})

t.test('other requests run between its elements', async t => {
  const times = 100
  const many = Array(times).fill(cells).flat()
  const body = Array(times)
    .fill(JSON.parse(text))
    .flat()
    .map((element, i) => (i === 0 ? element : { ...element, location_id: i }))
  let turns = 0
  let next = setImmediate(function count() {
    turns += 1
    next = setImmediate(count)
  })
  const decoded = await decodeTimelines([Buffer.from(JSON.stringify(body))], {
    cells: many,
    horizon,
    calendar,
    clock: manualClock(),
    requestedAt: now,
  })
  clearImmediate(next)
  t.equal(decoded.length, many.length)
  t.ok(turns > 8, `${turns} turns`)
})

t.test('times of a longer body before are no times of a shorter one', async t => {
  await decode(text)
  const shorter = horizonFor(3_600_000, 48)
  const body = await (await fetch(provider.url + pathFor(cells, shorter, calendar.zone))).text()
  const [timeline] = (await decodeTimelines([Buffer.from(body)], {
    cells,
    horizon: shorter,
    calendar,
    clock: manualClock(),
    requestedAt: now,
  })) as Timeline[]
  const [first] = JSON.parse(body)
  t.equal(timeline?.quarterHours.length, first.minutely_15.time.length)
  t.strictSame(
    Array.from(timeline?.values.subarray(timeline.hours.offset, timeline.hours.offset + 24) ?? []),
    first.hourly.temperature_2m.slice(0, 24).map(Math.fround),
  )
})

t.test('times of a body before are no times of another zone', async t => {
  await decode(text)
  const body = JSON.parse(text)
  for (const element of body) element.utc_offset_seconds += 3_600
  const elsewhere = { ...calendar, offsetSecondsAt: (at: number) => calendar.offsetSecondsAt(at) + 3_600 }
  const [timeline] = await decodeTimelines([Buffer.from(JSON.stringify(body))], {
    cells,
    horizon,
    calendar: elsewhere,
    clock: manualClock(),
    requestedAt: now,
  })
  const [known] = (await decode(text)) as Timeline[]
  t.equal((timeline as Timeline).hours.start, (known as Timeline).hours.start - 3_600_000)
})
