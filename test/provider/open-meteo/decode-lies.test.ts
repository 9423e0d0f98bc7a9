// Complete bodies of the real protocol with wrong content: impossible values, weather for other places, times and units, and
// deceptive JSON. A wrong element does not affect the others.

import t from 'tap'
import { createCalendar } from '../../../src/common/calendar.ts'
import { ProviderError } from '../../../src/provider/errors.ts'
import { decodeTimelines } from '../../../src/provider/open-meteo/decode.ts'
import { pathFor } from '../../../src/provider/open-meteo/request.ts'
import { type Cell, createGrid } from '../../../src/weather/cell.ts'
import { horizonFor } from '../../../src/weather/horizon.ts'
import { ranges } from '../../../src/weather/ranges.ts'
import type { Timeline } from '../../../src/weather/timeline.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../../../src/weather/weather-variables.ts'
import { manualClock, noon } from '../../support/manual-clock.ts'
import { startProvider } from '../../support/provider-process.ts'
import { daysFrom } from '../../support/slices.ts'

const provider = await startProvider(t)
const calendar = createCalendar('Asia/Dhaka')
const horizon = horizonFor(13 * 3_600_000, 48)
const grid = createGrid(0.1)
// Neighbouring cells, so that the coordinates of the response do not identify them.
const cells = [grid.cellOf(23.8, 90.4), grid.cellOf(23.8, 90.5), grid.cellOf(23.8, 90.6)]
const now = Date.parse(noon)
const clock = manualClock()
const fetchBody = async (cells: readonly Cell[]) =>
  (await fetch(provider.url + pathFor(cells, horizon, calendar.zone))).text()
const text = await fetchBody(cells)

const decodeText = (text: string, from: readonly Cell[] = cells) =>
  decodeTimelines([Buffer.from(text)], { cells: from, horizon, calendar, clock, requestedAt: now })
const decode = (body: unknown, from?: readonly Cell[]) => decodeText(JSON.stringify(body), from)

const sevenMinutesLater = (time: string): string =>
  new Date(Date.parse(`${time}Z`) + 420_000).toISOString().slice(0, 16)

// biome-ignore lint/suspicious/noExplicitAny: bodies are spoilt in places of every shape
type Element = any
const sections = { minutely_15: currentUnits, hourly: hourlyUnits, daily: dailyUnits }

t.test(
  'every variable has its range in every section: its ends are weather, what lies beyond is not',
  async t => {
    for (const [section, units] of Object.entries(sections))
      for (const variable of Object.keys(units) as (keyof typeof ranges)[]) {
        const { least, most, whole, codes } = ranges[variable]
        const name = `${section}.${variable}`
        const given = async (value: unknown) => {
          const body = JSON.parse(text)
          body[1][section][variable][3] = value
          return (await decode(body))[1]
        }
        for (const value of [least, most, null])
          t.ok((await given(value)) instanceof ProviderError === false, `${name} may be ${value}`)
        const beyond = [
          least - 1,
          most + 1,
          1e308,
          -1e308,
          8191.9,
          ...(whole ? [least + 0.5] : []),
          ...(codes ? [4] : []),
        ]
        for (const value of beyond)
          t.match(
            await given(value),
            {
              code: 'provider_garbled',
              refused: 'out_of_range',
              message: `${name} holds ${value}, expected `,
            },
            `${name} is never ${value}`,
          )
      }
  },
)

t.test('the sentence says what is allowed, and cuts what was given', async t => {
  const sentences: [string, string, unknown, RegExp][] = [
    [
      'minutely_15',
      'temperature_2m',
      8191.9,
      /minutely_15\.temperature_2m holds 8191\.9, expected numbers from -100 to 70$/,
    ],
    ['hourly', 'relative_humidity_2m', 7777.7, /holds 7777\.7, expected whole numbers from 0 to 100$/],
    ['daily', 'weather_code', 0.5, /holds 0\.5, expected the WMO codes 0, 1, 2, 3, 45, 48, 51, .*, 96, 99$/],
    ['hourly', 'is_day', -3, /holds -3, expected whole numbers from 0 to 1$/],
    ['hourly', 'precipitation', '1.5', /holds "1\.5", expected numbers and nulls$/],
    ['hourly', 'precipitation', 'x'.repeat(50_000), /holds "x{79}…, expected numbers and nulls$/],
    [
      'hourly',
      'precipitation',
      '\u001b[2J\n\u202e\u009b',
      /holds "[^\p{Cc}\p{Cf}]*", expected numbers and nulls$/u,
    ],
    ['hourly', 'precipitation', [[1]], /holds \[\[1\]\], expected numbers and nulls$/],
    ['hourly', 'precipitation', { toString: 1 }, /holds \{"toString":1\}, expected numbers and nulls$/],
    ['hourly', 'precipitation', true, /holds true, expected numbers and nulls$/],
  ]
  for (const [section, variable, value, message] of sentences) {
    const body = JSON.parse(text)
    body[2][section][variable][0] = value
    t.match((await decode(body))[2], { code: 'provider_garbled', message })
  }
})

t.test('odd but possible weather is accepted', async t => {
  const odd = text
    .replace(/("temperature_2m":\[)[^,]+,[^,]+,[^,]+,/, '$1-0.0,1e-400,100e-1,')
    .replace(/("relative_humidity_2m":\[)[^,]+,/, '$1100.0,')
  const [first] = (await decodeText(odd)) as Timeline[]
  t.strictSame(Array.from(first?.values.subarray(0, 3) ?? []), [0, 0, 10])
  t.equal(first?.values[first.quarterHours.length], 100)
  // Parts may come from different models: showers without rain, gusts below the wind.
  const body = JSON.parse(text)
  body[0].hourly.wind_gusts_10m.fill(0)
  body[0].minutely_15.showers.fill(5)
  body[0].minutely_15.precipitation.fill(0)
  body[0].timezone = 'Asia/Dacca'
  t.ok((await decode(body))[0] instanceof ProviderError === false)
})

const lies: [string, (element: Element) => void, string, RegExp][] = [
  ['no latitude', e => delete e.latitude, 'wrong_shape', /latitude: expected a number, given nothing$/],
  [
    'a latitude as text',
    e => (e.latitude = '23.8'),
    'wrong_shape',
    /latitude: expected a number, given 23\.8$/,
  ],
  [
    'a longitude of nothing',
    e => (e.longitude = null),
    'wrong_shape',
    /longitude: expected a number, given null$/,
  ],
  [
    'a latitude far away',
    e => (e.latitude = 1e308),
    'wrong_place',
    /latitude is 1e\+308, expected 23\.8 or up to 0\.5 degrees/,
  ],
  [
    'another latitude',
    e => (e.latitude = 24.31),
    'wrong_place',
    /latitude is 24\.31, expected 23\.8 or up to 0\.5/,
  ],
  [
    'another longitude',
    e => (e.longitude = 91.2),
    'wrong_place',
    /longitude is 91\.2, expected 90\.5 or up to 0\.55/,
  ],
  ['the other side', e => (e.longitude -= 180), 'wrong_place', /longitude is -89\./],
  [
    'an offset as text',
    e => (e.utc_offset_seconds = '21600'),
    'wrong_shape',
    /utc_offset_seconds: expected a number, given 21600$/,
  ],
  [
    'another offset',
    e => (e.utc_offset_seconds = 0),
    'wrong_time',
    /utc_offset_seconds is 0, expected 21600$/,
  ],
  [
    'a unit that is a list',
    e => (e.hourly_units.temperature_2m = ['°C']),
    'wrong_unit',
    /hourly\.temperature_2m is in "\["°C"\]", expected "°C"$/,
  ],
  [
    'a unit of 50,000 letters',
    e => (e.hourly_units.temperature_2m = 'x'.repeat(50_000)),
    'wrong_unit',
    /is in "x{80}…", expected "°C"$/,
  ],
  [
    'values of a variable that has no unit',
    e => (e.hourly_units.wind_speed_10m = 'undefined'),
    'wrong_unit',
    /hourly\.wind_speed_10m has values in no unit, expected "km\/h"$/,
  ],
  [
    'units that are a list',
    e => (e.daily_units = []),
    'wrong_shape',
    /daily_units: expected an object, given \[\]$/,
  ],
  [
    'times that are an object',
    e => (e.hourly.time = { length: 240 }),
    'wrong_shape',
    /hourly\.time: expected an array, given \{"length":240\}$/,
  ],
  [
    'times that are numbers',
    e => (e.hourly.time = e.hourly.time.map((_: string, i: number) => i)),
    'wrong_time',
    /hourly\.time\[0\] is 0, out of step$/,
  ],
  [
    'a time of 50,000 letters',
    e => (e.minutely_15.time[0] = `2026-11-21T11:00${' '.repeat(50_000)}`),
    'wrong_time',
    /minutely_15\.time\[0\] is 2026-11-21T11:00 {64}…, out of step$/,
  ],
  [
    'quarter-hours of a clock that is seven minutes off',
    e => (e.minutely_15.time = e.minutely_15.time.map(sevenMinutesLater)),
    'wrong_time',
    /minutely_15 begins at 2026-11-21T11:07, expected a whole quarter of an hour$/,
  ],
  [
    'times in another spelling',
    e => (e.hourly.time = e.hourly.time.map((time: string) => time.replace('T', ' '))),
    'wrong_time',
    /hourly\.time\[0\] is 2026-11-20 00:00, out of step$/,
  ],
  [
    'a year of another calendar',
    e => (e.daily.time[0] = '+002026-11-20'),
    'wrong_time',
    /daily\.time\[0\] is \+002026-11-20, out of step$/,
  ],
  [
    'a list in place of an object',
    e => (e.hourly = []),
    'wrong_shape',
    /hourly: expected an object, given \[\]$/,
  ],
]
for (const [what, spoil, why, message] of lies)
  t.test(`${what}: refused in a sentence, and its neighbours are not`, async t => {
    const body = JSON.parse(text)
    spoil(body[1])
    const results = await decode(body)
    t.match(results[1], { code: 'provider_garbled', refused: why, message })
    for (const i of [0, 2]) t.ok(daysFrom(results[i] as Timeline, now, calendar, 7))
  })

t.test('of a repeated member the second counts, and is checked', async t => {
  const twice = (what: string) =>
    text.replace('"daily":{', `"daily":{"time":[]},"daily":{`).replace(/\}\}/, `},${what}}`)
  t.match((await decodeText(twice('"hourly":{}')))[0], { refused: 'wrong_shape', message: /hourly\.time: / })
  t.ok((await decodeText(twice('"x":1')))[0] instanceof ProviderError === false)
})

t.test('names that mean something to JavaScript mean nothing here', async t => {
  for (const name of ['__proto__', 'constructor', 'prototype']) {
    const hidden = text
      .replace('"hourly":{', `"${name}":{`)
      .replace('{"latitude"', `{"${name}":{"hourly":{},"polluted":1},"latitude"`)
    t.match((await decodeText(hidden))[0], {
      refused: 'wrong_shape',
      message: /hourly: expected an object, given nothing$/,
    })
    const column = text.replace('"cloud_cover":[', `"${name}":[`)
    t.match((await decodeText(column))[0], {
      refused: 'wrong_shape',
      message: /minutely_15\.cloud_cover is missing$/,
    })
  }
  t.notOk('polluted' in {})
})

/** A body of these elements, numbered as they were or not at all. */
const inOrder = (indices: readonly number[], numbered = true): unknown[] => {
  const body = JSON.parse(text)
  return indices.map(i => {
    const { location_id, ...element } = body[i]
    return numbered && location_id !== undefined ? { ...element, location_id } : element
  })
}

t.test('elements in another order are nobody’s weather, however close the places are', async t => {
  t.equal(JSON.parse(text)[2].location_id, 2, 'the provider numbers them')
  const orders: [number[], RegExp][] = [
    [[1, 0, 2], /element 0 has the location_id 1, expected 0$/],
    [[0, 2, 1], /element 1 has the location_id 2, expected 1$/],
    [[2, 1, 0], /element 0 has the location_id 2, expected 0$/],
    [[1, 2, 0], /element 0 has the location_id 1, expected 0$/],
    [[2, 0, 1], /element 0 has the location_id 2, expected 0$/],
    [[0, 0, 2], /element 2 has the location_id 2, expected none$/],
    [[0, 1, 0], /element 2 has no location_id, expected 2$/],
    [[0, 1, 1], /element 2 has the location_id 1, expected 2$/],
  ]
  for (const [order, message] of orders)
    await t.rejects(
      decode(inOrder(order)),
      { code: 'provider_garbled', refused: 'wrong_place', message },
      order.join(),
    )
  const strange = inOrder([0, 1, 2]) as Element[]
  strange[1].location_id = { id: 1 }
  await t.rejects(decode(strange), {
    refused: 'wrong_place',
    message: /element 1 has the location_id \{"id":1\}, expected 1$/,
  })
})

t.test(
  'a provider that numbers nothing is believed for places as far apart as its cells may lie',
  async t => {
    t.notOk((await decode(inOrder([0, 1, 2], false))).some(result => result instanceof ProviderError))
    const far = [grid.cellOf(23.8, 90.4), grid.cellOf(24.9, 90.4), grid.cellOf(23.8, 92)]
    const body = JSON.parse(await fetchBody(far))
    for (const element of body) delete element.location_id
    t.notOk((await decode(body, far)).some(result => result instanceof ProviderError))
    const [first, second, third] = body
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
  },
)

t.test('places by the date line and the poles have neighbours on the other side', async t => {
  const element = JSON.parse(text)[0]
  const at = async (latitude: number, longitude: number, cell: Cell) =>
    (await decode([{ ...element, latitude, longitude }], [cell]))[0] instanceof ProviderError
  const dateLine = grid.cellOf(0, 180)
  t.equal(await at(0, -179.95, dateLine), false)
  t.equal(await at(0.1, 179.9, dateLine), false)
  t.equal(await at(0, -179.4, dateLine), true)
  t.equal(await at(0, 0, dateLine), true)
  const north = grid.cellOf(89, 10)
  t.equal(await at(89.05, 30, north), false)
  t.equal(await at(89.05, 50, north), true)
  t.equal(await at(90, -170, grid.cellOf(90, 10)), false)
})

t.test('a body is read no further than its bound', async t => {
  let read = 0
  const endless = function* () {
    yield Buffer.from('[{}')
    for (;;) {
      read += 1
      yield Buffer.from(',{}')
    }
  }
  await t.rejects(decodeTimelines(endless(), { cells, horizon, calendar, clock, requestedAt: now }), {
    code: 'provider_garbled',
    refused: 'too_many_elements',
    message: /^the provider's body has more than 3 elements$/,
  })
  t.equal(read, 3)
})

t.test('the weather of a whole year is weather', async t => {
  const country = Array.from({ length: 20 }, (_, i) =>
    grid.cellOf(20.5 + ((i * 0.618_034) % 1) * 6, 88 + (i / 20) * 4.6),
  )
  for (let month = 1; month <= 12; month++) {
    const instant = `2026-${String(month).padStart(2, '0')}-${month % 2 ? '05' : '20'}T09:00:00Z`
    clock.set(instant)
    await provider.steer({ now: instant })
    const results = await decodeTimelines([Buffer.from(await fetchBody(country))], {
      cells: country,
      horizon,
      calendar,
      clock,
      requestedAt: clock.now(),
    })
    const refused = results.filter(result => result instanceof ProviderError)
    t.strictSame(refused, [], instant)
  }
})
