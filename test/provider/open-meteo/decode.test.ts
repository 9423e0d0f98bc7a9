// Without it weather of another place, time or unit, or an impossible value, could reach consumers.

import t from 'tap'
import { createCalendar } from '../../../src/common/calendar.ts'
import { ProviderError } from '../../../src/provider/errors.ts'
import { decodeTimelines } from '../../../src/provider/open-meteo/decode.ts'
import { pathFor } from '../../../src/provider/open-meteo/request.ts'
import type { OddValues } from '../../../src/provider/protocol.ts'
import { type Cell, createGrid } from '../../../src/weather/cell.ts'
import { horizonFor } from '../../../src/weather/horizon.ts'
import { ranges } from '../../../src/weather/ranges.ts'
import type { Timeline } from '../../../src/weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../../src/weather/weather-variables.ts'
import { manualClock, noon } from '../../support/manual-clock.ts'
import { startProvider } from '../../support/provider.ts'
import { currentAt, daysFrom } from '../../weather/slices.ts'

const provider = await startProvider(t)
const calendar = createCalendar('Asia/Dhaka')
const horizon = horizonFor(13 * 3_600_000, 48)
const grid = createGrid(0.1)
// Neighbouring cells, so that the coordinates of the response do not identify them.
const cells = [grid.cellOf(23.8, 90.4), grid.cellOf(23.8, 90.5), grid.cellOf(23.8, 90.6)]
const now = Date.parse(noon)
const clock = manualClock()
const fetchBody = async (of: readonly Cell[], within = horizon) =>
  (await fetch(provider.url + pathFor(of, within, calendar.zone))).text()
const text = await fetchBody(cells)

type Expected = Partial<Parameters<typeof decodeTimelines>[1]>
const onOdd = (): void => {}
/** @param body its text, or what JSON makes one of */
const decode = (body: unknown, expected: Expected = {}) =>
  decodeTimelines([Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))], {
    ...{ cells, horizon, calendar, clock, requestedAt: clock.now(), onOdd },
    ...expected,
  })
const isRefused = (result: unknown): boolean => result instanceof ProviderError

// biome-ignore lint/suspicious/noExplicitAny: bodies are spoilt in places of every shape
type Element = any
/** The results of a body with one element that was changed. */
const decodeWith = (index: number, change: (element: Element) => void, expected: Expected = {}) => {
  const body = JSON.parse(text)
  change(body[index])
  return decode(body, expected)
}

t.test('every number of the body lies where its variable and step are looked for, -0 as 0', async t => {
  const body = JSON.parse(text)
  body[1].hourly.temperature_2m[30] = -0
  body[1].hourly.cloud_cover[31] = null
  const timelines = (await decode(body)) as Timeline[]
  for (const [i, timeline] of timelines.entries())
    t.equal(currentAt(timeline, now, calendar)?.temperature_2m, body[i].minutely_15.temperature_2m[4])
  const { hours, days, values } = timelines[1] as Timeline
  t.equal(values.buffer.byteLength, values.byteLength, 'in a buffer of its own')
  t.ok(Object.is(values[hours.offset + 30], 0))
  t.ok(Number.isNaN(values[hours.offset + 6 * hours.length + 31]))
  const { daily } = body[1]
  const columns = Object.keys(dailyUnits).flatMap(name => daily[name])
  t.strictSame(Array.from(values.subarray(days.offset)), columns.map(Math.fround))
})

const sections = { minutely_15: currentUnits, hourly: hourlyUnits, daily: dailyUnits }
const series = { minutely_15: 'quarterHours', hourly: 'hours', daily: 'days' } as const

t.test('a value outside of the range of its variable is left out and counted, in every section', async t => {
  for (const [section, units] of Object.entries(sections) as [keyof typeof sections, object][])
    for (const [column, variable] of (Object.keys(units) as (keyof typeof ranges)[]).entries()) {
      const range = ranges[variable]
      const { least, most, whole, codes } = range
      const odd: OddValues[] = []
      const served = async (value: unknown): Promise<number | undefined> => {
        const change = (element: Element) => (element[section][variable][3] = value)
        const timeline = (await decodeWith(1, change, { onOdd: each => odd.push(each) }))[1] as Timeline
        const { offset, length } = timeline[series[section]]
        return timeline.values[offset + column * length + 3]
      }
      const name = `${section}.${variable}`
      for (const value of [least, most]) t.equal(await served(value), value, `${name} ${value}`)
      if (range.roundedAbove > 0) t.equal(await served(most + range.roundedAbove), most)
      if (range.roundedBelow > 0) t.equal(await served(least - range.roundedBelow), least)
      t.ok(Number.isNaN(await served(null)))
      t.strictSame(odd, [], `${name}: neither missing values nor rounded ones`)
      const beyond = [least - 1, most + 1.01, 1e308, -1e308, 8191.9, '1', true, [1], {}]
      for (const value of [...beyond, ...(whole ? [least + 0.5] : []), ...(codes ? [4] : [])]) {
        t.ok(Number.isNaN(await served(value)), `${name} ${value}`)
        t.hasStrict(odd.pop(), { section, variable, count: 1, value: JSON.stringify(value) })
      }
    }
})

t.test('only an element with more odd values of a variable than one and a tenth is refused', async t => {
  const counts: Record<keyof typeof sections, number> = { minutely_15: 0, hourly: 0, daily: 0 }
  for (const [section, units] of Object.entries(sections) as [keyof typeof sections, object][]) {
    const fillOdd = (count: number) => (element: Element) => {
      counts[section] = element[section].time.length
      for (const variable of Object.keys(units)) element[section][variable].fill(999_999, 0, count)
    }
    await decodeWith(1, fillOdd(0))
    const most = Math.max(1, Math.floor(counts[section] / 10))
    t.notOk((await decodeWith(1, fillOdd(most))).some(isRefused), `${most} of ${counts[section]}`)
    const [first, refused, last] = await decodeWith(1, fillOdd(most + 1))
    t.hasStrict(refused, { refused: 'out_of_range', opensCircuit: false })
    for (const good of [first, last]) t.notOk(isRefused(good))
  }
  t.ok(counts.daily <= 19 && counts.hourly > 100, 'both bounds were met')
})

t.test('odd but possible weather is accepted', async t => {
  const odd = text
    .replace(/("temperature_2m":\[)[^,]+,[^,]+,[^,]+,/, '$1-0.0,1e-400,100e-1,')
    .replace(/("relative_humidity_2m":\[)[^,]+,/, '$1100.0,')
  const [first] = (await decode(odd)) as Timeline[]
  t.strictSame(Array.from(first?.values.subarray(0, 3) ?? []), [0, 0, 10])
  t.equal(first?.values[first.quarterHours.length], 100)
  // Parts may come from different models: showers without rain, gusts below the wind, and variables that one does not have.
  const left: OddValues[] = []
  const mix = (element: Element) => {
    element.hourly.wind_gusts_10m.fill(0)
    element.minutely_15.showers.fill(5)
    element.minutely_15.precipitation.fill(0)
    element.minutely_15_units.snowfall = 'undefined'
    element.minutely_15.snowfall.fill(null)
    element.timezone = 'Asia/Dacca'
  }
  const [mixed] = await decodeWith(0, mix, { onOdd: each => left.push(each) })
  t.match(currentAt(mixed as Timeline, now, calendar), { snowfall: null, showers: 5 })
  t.strictSame(left, [])
})

/** Moves the times of a section, in their own spelling. */
const moved = (times: readonly string[], ms: number): string[] =>
  times.map(time => new Date(Date.parse(`${time}Z`) + ms).toISOString().slice(0, 16))
const later = (section: string, ms: number) => (e: Element) => (e[section].time = moved(e[section].time, ms))
const long = 'x'.repeat(50_000)
const holding = (section: string, name: string, value: unknown) => (e: Element) =>
  e[section][name].fill(value)

const beyond = 'out_of_range'
const rain = (value: unknown) => holding('hourly', 'precipitation', value)

// What is wrong, the reason as it is counted, and the sentence, which says what is allowed and cuts what was given.
const lies: [(element: Element) => void, string, RegExp][] = [
  [e => delete e.latitude, 'shape', /latitude: expected a number, got nothing$/],
  [e => (e.latitude = '23.8'), 'shape', /latitude: expected a number, got 23\.8$/],
  [e => (e.longitude = null), 'shape', /longitude: expected a number, got null$/],
  [e => (e.latitude = 1e308), 'place', /latitude is 1e\+308, expected 23\.8 or up to 0\.5 degrees/],
  [e => (e.latitude = 24.31), 'place', /latitude is 24\.31, expected 23\.8 or up to 0\.5/],
  [e => (e.longitude = 91.2), 'place', /longitude is 91\.2, expected 90\.5 or up to 0\.55/],
  [e => (e.longitude -= 180), 'place', /longitude is -89\./],
  [e => delete e.utc_offset_seconds, 'shape', /utc_offset_seconds: /],
  [e => (e.utc_offset_seconds = '21600'), 'shape', /utc_offset_seconds: expected a number, got 21600$/],
  [e => (e.utc_offset_seconds = 0), 'time', /utc_offset_seconds is 0, expected 21600$/],
  [e => (e.hourly_units.temperature_2m = '°F'), 'unit', /hourly\.temperature_2m is in "°F", expected "°C"$/],
  [e => (e.hourly_units.temperature_2m = ['°C']), 'unit', /is in "\["°C"\]", expected "°C"$/],
  [e => (e.hourly_units.temperature_2m = long), 'unit', /is in "x{80}…", expected "°C"$/],
  [e => (e.hourly_units.wind_speed_10m = 'undefined'), 'unit', /has values in no unit, expected "km\/h"$/],
  [
    e => {
      e.hourly_units.wind_speed_10m = 'undefined'
      e.hourly.wind_speed_10m.fill(null, 1)
    },
    'unit',
    /wind_speed_10m has values in no unit/,
  ],
  [e => delete e.daily_units, 'shape', /daily_units: /],
  [e => (e.daily_units = []), 'shape', /daily_units: expected an object, got \[\]$/],
  [e => (e.hourly = []), 'shape', /hourly: expected an object, got \[\]$/],
  [e => (e.daily.weather_code = 3), 'shape', /daily\.weather_code: expected an array/],
  [e => delete e.hourly.time, 'shape', /hourly\.time: /],
  [e => (e.hourly.time = { length: 9 }), 'shape', /hourly\.time: expected an array, got \{"length":9\}$/],
  [e => (e.hourly.time = [...e.hourly.time.keys()]), 'time', /time\[0\] is 0, out of step$/],
  [e => (e.hourly.time[7] = e.hourly.time[8]), 'time', /hourly\.time\[7\] is .*, out of step$/],
  [e => (e.minutely_15.time[0] += ' '.repeat(50_000)), 'time', /\[0\] is 2026-11-21T11:00 {64}…, out of st/],
  [later('minutely_15', 420_000), 'time', /11:07, expected a whole quarter of/],
  [
    later('hourly', -259_200_000),
    'time',
    /hourly begins at 2026-11-17T00:00, expected the beginning of 2026-11-20$/,
  ],
  [e => (e.hourly.time[0] = '2026-11-20 00:00'), 'time', /time\[0\] is 2026-11-20 00:00, out of step$/],
  [e => (e.daily.time[0] = '+002026-11-20'), 'time', /daily\.time\[0\] is \+002026-11-20, out of step$/],
  [e => (e.daily.time[0] = 'today'), 'time', /daily\.time\[0\] is today, out of step/],
  [e => Object.values<unknown[]>(e.daily).map(each => each.pop()), 'shape', /daily has 9 steps, expected 10/],
  [
    e => Object.keys(dailyUnits).map(name => e.daily[name].fill(null)),
    'no_value',
    /daily has no value at all/,
  ],
  [
    e => {
      for (const name of Object.keys(dailyUnits)) e.daily[name].fill(null)
      e.daily.weather_code[0] = 0.5
    },
    'no_value',
    /daily has no value at all/,
  ],
  [
    holding('daily', 'weather_code', 0.5),
    beyond,
    /daily\.weather_code holds 10 odd values of 10, such as 0\.5, expected the WMO codes 0, 1, 2, 3, 45, .*, 99$/,
  ],
  [holding('minutely_15', 'temperature_2m', 99), beyond, /such as 99, expected numbers from -100 to 70$/],
  [holding('hourly', 'is_day', -3), beyond, /such as -3, expected whole numbers from 0 to 1$/],
  [rain('1.5'), 'shape', /such as "1\.5", expected numbers from 0 to 500$/],
  [rain('\u001b[2J\n\u202e\u009b'), 'shape', /such as "[^\p{Cc}\p{Cf}]*", expected numbers/u],
]

t.test('an element that lies is refused in a sentence, and its neighbours are not', async t => {
  for (const [lie, why, message] of lies) {
    const [first, lying, last] = await decodeWith(1, lie)
    const refused = /_/.test(why) ? why : `wrong_${why}`
    t.match(
      lying,
      { code: 'provider_garbled', refused, message, retryable: false, opensCircuit: false },
      String(message),
    )
    for (const good of [first, last]) t.ok(daysFrom(good as Timeline, now, calendar, 7))
  }
})

t.test('an element has to cover now, up to its last quarter-hour, and may be a day off', async t => {
  const [{ minutely_15 }] = JSON.parse(text)
  const begin = Date.parse(`${minutely_15.time[0]}+06:00`)
  const end = begin + minutely_15.time.length * 900_000
  const message =
    /^the provider's body does not match the request: its times, from 2026-11-21T11:00 and 2026-11-20 on,/
  for (const [at, isGood] of [
    [begin - 1, false],
    [begin, true],
    [end - 1, true],
    [end, false],
  ] as const) {
    const [requested, answered] = [{ requestedAt: at }, { clock: manualClock(at) }]
    for (const when of [{ ...requested, ...answered }, requested, answered]) {
      const [result] = await decode(text, { requestedAt: now, ...when })
      t.equal(!isRefused(result), isGood, `${at - begin} ms`)
      if (!isGood) t.match(result, { refused: 'wrong_time', message })
    }
  }
  for (const [days, isGood] of [
    [-2, false],
    [-1, true],
    [1, true],
    [2, false],
  ] as const) {
    const [result] = await decodeWith(0, element => {
      for (const [section, length] of [
        ['hourly', 16],
        ['daily', 10],
      ] as const)
        element[section].time = moved(element[section].time, days * 86_400_000).map(time =>
          time.slice(0, length),
        )
    })
    t.equal(!isRefused(result), isGood, `${days} days`)
  }
})

t.test('of a repeated member the second counts, and is checked', async t => {
  const twice = (what: string) =>
    text.replace('"daily":{', `"daily":{"time":[]},"daily":{`).replace(/\}\}/, `},${what}}`)
  t.match((await decode(twice('"hourly":{}')))[0], { refused: 'wrong_shape', message: /hourly\.time: / })
  t.notOk(isRefused((await decode(twice('"x":1')))[0]))
})

t.test('names that mean something to JavaScript mean nothing here', async t => {
  for (const name of ['__proto__', 'constructor', 'prototype']) {
    const hidden = text
      .replace('"hourly":{', `"${name}":{`)
      .replace('{"latitude"', `{"${name}":{"hourly":{},"polluted":1},"latitude"`)
    const column = text.replace('"cloud_cover":[', `"${name}":[`)
    for (const [body, message] of [
      [hidden, /hourly: expected an object, got nothing$/],
      [column, /minutely_15\.cloud_cover is missing$/],
    ] as const)
      t.match((await decode(body))[0], { refused: 'wrong_shape', message })
  }
  t.notOk('polluted' in {})
})

t.test('elements in another order are nobody’s weather, however close the places are', async t => {
  const elements: Element[] = JSON.parse(text)
  t.equal(elements[2].location_id, 2, 'the provider numbers them')
  for (const [order, message] of [
    [[1, 0, 2], /element 0 has the location_id 1, expected 0$/],
    [[0, 2, 1], /element 1 has the location_id 2, expected 1$/],
    [[2, 0, 1], /element 0 has the location_id 2, expected 0$/],
    [[0, 0, 2], /element 2 has the location_id 2, expected none$/],
    [[0, 1, 0], /element 2 has no location_id, expected 2$/],
    [[0, 1, 1], /element 2 has the location_id 1, expected 2$/],
  ] as const) {
    const body = order.map(i => elements[i])
    await t.rejects(decode(body), { code: 'provider_garbled', refused: 'wrong_place', message }, order.join())
  }
  t.notOk((await decode(elements.with(0, { ...elements[0], location_id: 0 }))).some(isRefused))
  const message = /element 1 has the location_id \{"id":1\}, expected 1$/
  const strange = elements.with(1, { ...elements[1], location_id: { id: 1 } })
  await t.rejects(decode(strange), { refused: 'wrong_place', message })
})

t.test('a provider that numbers nothing is believed for places that are close enough', async t => {
  const unnumbered = (body: string): Element[] =>
    JSON.parse(body).map(({ location_id: _, ...element }: Element) => element)
  t.notOk((await decode(unnumbered(text))).some(isRefused))
  const far = { cells: [grid.cellOf(23.8, 90.4), grid.cellOf(24.9, 90.4), grid.cellOf(23.8, 92)] }
  const [first, second, third] = unnumbered(await fetchBody(far.cells))
  t.notOk((await decode([first, second, third], far)).some(isRefused))
  t.match(await decode([second, first, third], far), [
    { refused: 'wrong_place', message: /latitude is 24\.\d+, expected 23\.8/ },
    { refused: 'wrong_place', message: /latitude is 23\.\d+, expected 24\.9/ },
    { fetchedAt: now },
  ])
  t.match(await decode([third, second, first], far), [
    { refused: 'wrong_place', message: /longitude is 9[12]\.\d+, expected 90\.4/ },
    { fetchedAt: now },
    { refused: 'wrong_place', message: /longitude is 90\.\d+, expected 92/ },
  ])
})

t.test('places by the date line and the poles have neighbours on the other side', async t => {
  const element = JSON.parse(text)[0]
  const [dateLine, north, pole] = [grid.cellOf(0, 180), grid.cellOf(89, 10), grid.cellOf(90, 10)]
  for (const [latitude, longitude, cell, refused] of [
    [0, -179.95, dateLine, false],
    [0.1, 179.9, dateLine, false],
    [0, -179.4, dateLine, true],
    [0, 179.5, dateLine, false],
    [0.5, 180, dateLine, false],
    [0, 0, dateLine, true],
    [89.05, 30, north, false],
    [89.05, 50, north, true],
    [90, -170, pole, false],
  ] as const) {
    const [result] = await decode([{ ...element, latitude, longitude }], { cells: [cell] })
    t.equal(isRefused(result), refused, `${latitude}, ${longitude} for ${cell.id}`)
  }
})

t.test('a body that is not JSON to its end, or empty, is cut off, and a wrong count is garbled', async t => {
  for (const body of [text.slice(0, -1), '<html>'])
    await t.rejects(decode(body), {
      ...{ code: 'provider_cut_off', retryable: true },
      message: `the provider's body is not complete JSON (${Buffer.byteLength(body)} bytes)`,
    })
  for (const empty of ['', ' \n'])
    await t.rejects(decode(empty), { code: 'provider_cut_off', refused: 'damaged', retryable: true })
  const short = JSON.parse(text).slice(1)
  await t.rejects(decode(short), { code: 'provider_garbled', message: /2 elements for 3 points/ })
  for (const nothing of ['null', '[]', '{}']) await t.rejects(decode(nothing), { code: 'provider_garbled' })
  let read = 0
  const endless = function* () {
    yield Buffer.from('[{}')
    for (;;) {
      read += 1
      yield Buffer.from(',{}')
    }
  }
  await t.rejects(decodeTimelines(endless(), { cells, horizon, calendar, clock, requestedAt: now, onOdd }), {
    code: 'provider_garbled',
    refused: 'too_many_elements',
    message: /^the provider's body has more than 3 elements$/,
  })
  t.equal(read, 3, 'and read no further than its bound')
})

t.test('other requests run between its elements', async t => {
  const [many, body] = [cells, JSON.parse(text)].map(list => Array(67).fill(list).flat()) as [
    Cell[],
    Element[],
  ]
  for (const [i, element] of body.entries()) body[i] = { ...element, location_id: i === 0 ? undefined : i }
  // Each look at the clock comes so much later.
  for (const [ms, expected] of [
    [0, 0],
    [0.6, 100],
    [2, 201],
  ] as const) {
    let [turns, elapsed] = [0, 0]
    t.intercept(performance, 'now', { value: () => (elapsed += ms) })
    let next = setImmediate(function count() {
      turns += 1
      next = setImmediate(count)
    })
    const decoded = await decode(body, { cells: many })
    clearImmediate(next)
    t.notOk(decoded.some(isRefused))
    t.equal(turns, expected, `${ms} ms`)
  }
})

t.test('times of a body before are no times of a shorter one, nor of another zone', async t => {
  const [known] = (await decode(text)) as Timeline[]
  const shorter = horizonFor(3_600_000, 48)
  const body = await fetchBody(cells, shorter)
  const [timeline] = (await decode(body, { horizon: shorter })) as Timeline[]
  const [first] = JSON.parse(body)
  t.equal(timeline?.quarterHours.length, first.minutely_15.time.length)
  const { hours, values } = timeline as Timeline
  const expected = first.hourly.temperature_2m.slice(0, 24).map(Math.fround)
  t.strictSame(Array.from(values.subarray(hours.offset, hours.offset + 24)), expected)

  await decode(text)
  const later = JSON.parse(text)
  for (const element of later) element.utc_offset_seconds += 3_600
  const elsewhere = { ...calendar, offsetSecondsAt: (at: number) => calendar.offsetSecondsAt(at) + 3_600 }
  const [there] = (await decode(later, { calendar: elsewhere })) as Timeline[]
  t.equal(there?.hours.start, (known?.hours.start ?? 0) - 3_600_000)
})
