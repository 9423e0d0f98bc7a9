// Without it the simulated provider could answer in a form that the real one does not have.

import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { request } from 'undici'
import { allDaily, allHourly, allInstant, dhaka, simulate, three, withoutTimings } from './simulated.ts'

const provider = await simulate(t)
const { send } = provider

t.test('one coordinate is an object with the fields of the model cell, in order', async t => {
  const { status, headers, body, text } = await send(
    dhaka(`current=${allInstant}&minutely_15=rain&hourly=rain&daily=weather_code`),
  )
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(headers.get('access-control-allow-origin'), '*')
  for (const name of ['retry-after', 'cache-control', 'etag', 'last-modified', 'expires'])
    t.equal(headers.get(name), null, `no ${name}`)
  const head = ['latitude', 'longitude', 'generationtime_ms', 'utc_offset_seconds', 'timezone']
  const sections = ['current', 'minutely_15', 'hourly', 'daily'].flatMap(name => [`${name}_units`, name])
  t.strictSame(Object.keys(body), [...head, 'timezone_abbreviation', 'elevation', ...sections])
  t.hasStrict(body, { utc_offset_seconds: 21_600, timezone: 'Asia/Dhaka', timezone_abbreviation: 'GMT+6' })
  t.match(text, /^\{"latitude":23\.796133,"longitude":90\.38055,/, '32-bit noise of the cell')
  t.match(text, /"elevation":\d+\.0,/)
})

t.test('each element of a list equals the response for its point alone', async t => {
  const query = `forecast_days=3&current=${allInstant}&hourly=${allHourly}&daily=${allDaily}`
  const list = await send(three(query))
  const numbers = list.body.map((element: { location_id?: number }) => element.location_id)
  t.strictSame(numbers, [undefined, 1, 2], 'in the order of the request; the first has no location_id')
  const points = ['23.8103&longitude=90.4125', '22.3569&longitude=91.7832', '24.8949&longitude=91.8687']
  const forecast = (point: string) => send(`/v1/forecast?latitude=${point}&timezone=Asia%2FDhaka&${query}`)
  const alone = await Promise.all(points.map(forecast))
  t.equal(
    withoutTimings(list.text).replaceAll(/"location_id":\d,/g, ''),
    `[${alone.map(({ text }) => withoutTimings(text)).join(',')}]`,
  )
})

t.test('commas, %2C and repetition mean the same, and other parameters are ignored', async t => {
  const { text } = await send(three('hourly=temperature_2m,rain&daily=weather_code&forecast_days=2'))
  const query =
    'latitude=23.8103%2C22.3569%2C24.8949&longitude=90.4125&longitude=91.7832&longitude=91.8687' +
    '&timezone=Asia/Dhaka&hourly=temperature_2m&hourly=rain&daily=weather_code&forecast_days=2'
  const repeated = await send(`/v1/forecast?${query}&unknown=ignored`)
  t.equal(withoutTimings(repeated.text), withoutTimings(text))
})

/** The unit of a variable, its decimals, and what is possible in July. */
const variables: Record<string, [unit: string, decimals: number, low: number, high: number]> = {
  temperature_2m: ['°C', 1, 5, 45],
  relative_humidity_2m: ['%', 0, 5, 100],
  apparent_temperature: ['°C', 1, 0, 55],
  is_day: ['', 0, 0, 1],
  precipitation: ['mm', 2, 0, 120],
  rain: ['mm', 2, 0, 120],
  showers: ['mm', 2, 0, 120],
  snowfall: ['cm', 2, 0, 0],
  weather_code: ['wmo code', 0, 0, 99],
  cloud_cover: ['%', 0, 0, 100],
  pressure_msl: ['hPa', 1, 980, 1030],
  surface_pressure: ['hPa', 1, 980, 1030],
  wind_speed_10m: ['km/h', 1, 0, 90],
  wind_direction_10m: ['°', 0, 0, 359],
  wind_gusts_10m: ['km/h', 1, 0, 150],
  precipitation_probability: ['%', 0, 0, 100],
  temperature_2m_max: ['°C', 1, 5, 45],
  temperature_2m_min: ['°C', 1, 5, 45],
  precipitation_probability_max: ['%', 0, 0, 100],
  precipitation_sum: ['mm', 2, 0, 400],
}

/** Whether a value is printed as that of a variable; times of the sun are text. */
const isRight = (name: string, printed: string): boolean => {
  const [, decimals, low, high] = variables[name] ?? []
  if (decimals === undefined) return /^"\d{4}-\d\d-\d\dT\d\d:\d\d"$/.test(printed)
  const pattern = new RegExp(decimals === 0 ? '^\\d+$' : `^-?\\d+\\.\\d{${decimals}}$`)
  return pattern.test(printed) && Number(printed) >= (low ?? 0) && Number(printed) <= (high ?? 0)
}

// The printed values of a variable in a section, as in the text.
const printed = (text: string, section: string, name: string): string[] => {
  const data = text.slice(text.indexOf(`"${section}":{`))
  return (new RegExp(`"${name}":\\[([^\\]]*)\\]`).exec(data)?.[1] ?? '').split(',')
}

t.test('every variable has its unit, its decimals and possible values in every section', async t => {
  await provider.steer({ now: '2026-07-14T06:00:00Z' })
  t.teardown(() => provider.steer({ now: '2026-11-21T06:00:00Z' }))
  const wanted = `current=${allHourly}&minutely_15=${allHourly}&hourly=${allHourly}&daily=${allDaily}`
  const { text, body } = await send(dhaka(`${wanted}&forecast_days=9`))
  const daily = allDaily.split(',')
  t.strictSame([...new Set([...allHourly.split(','), ...daily])].length, Object.keys(variables).length + 2)
  for (const [section, names] of [
    ['minutely_15', allHourly.split(',')],
    ['hourly', allHourly.split(',')],
    ['daily', daily],
  ] as const)
    for (const name of names) {
      t.equal(body[`${section}_units`][name], variables[name]?.[0] ?? 'iso8601', `${section} ${name}`)
      const values = printed(text, section, name)
      t.equal(values.length, body[section].time.length)
      const wrong = values.filter(value => !isRight(name, value))
      t.strictSame(wrong, [], `${section} ${name}`)
    }
  const current = text.slice(text.indexOf('"current":{'), text.indexOf('"minutely_15_units"'))
  t.match(current, /^"current":\{"time":"2026-07-14T12:00","interval":900,/)
  t.hasStrict(body.current_units, { time: 'iso8601', interval: 'seconds', temperature_2m: '°C' })
  for (const name of allHourly.split(','))
    t.ok(isRight(name, new RegExp(`"${name}":([^,}]+)`).exec(current)?.[1] ?? ''), `current ${name}`)
})

t.test('sections begin and end where they should', async t => {
  await provider.steer({ now: '2026-11-21T18:52:00Z' })
  t.teardown(() => provider.steer({ now: '2026-11-21T06:00:00Z' }))
  const times = async (rest: string, section: string) => (await send(dhaka(rest))).body[section].time
  const quarter = 'minutely_15=rain'
  const at = (time: string) => `2026-11-22T${time}`
  for (const [section, query, count, first, last] of [
    ['hourly', 'hourly=rain', 168, at('00:00'), '2026-11-28T23:00'],
    ['hourly', 'hourly=rain&forecast_hours=2', 2, at('00:00'), at('01:00')],
    ['daily', 'daily=weather_code&forecast_days=2&past_days=1', 3, '2026-11-21', '2026-11-23'],
    ['daily', 'daily=weather_code&forecast_days=0', 0, undefined, undefined],
    ['minutely_15', `${quarter}&forecast_minutely_15=2&past_minutely_15=1`, 3, at('00:30'), at('01:00')],
    ['minutely_15', `${quarter}&forecast_days=1`, 96, at('00:00'), at('23:45')],
  ] as const) {
    const found = await times(query, section)
    t.strictSame([found.length, found[0], found.at(-1)], [count, first, last], query)
  }
  const { current } = (await send(dhaka('current=rain'))).body
  t.equal(current.time, '2026-11-22T00:45', 'the running quarter-hour')
})

t.test('a time zone comes back under its requested name', async t => {
  const zone = async (name: string) =>
    (await send(`/v1/forecast?latitude=23.8&longitude=90.4&timezone=${name}`)).body.timezone
  for (const name of ['Asia/Kolkata', 'Asia/Calcutta', 'Asia/Kathmandu', 'Asia/Yangon', 'Asia/Dhaka'])
    t.equal(await zone(name), name)
  t.equal(await zone('UTC'), 'GMT')
  t.equal(await zone('europe/berlin'), 'Europe/Berlin')
  const { body } = await send('/v1/forecast?latitude=23.8&longitude=90.4&hourly=rain')
  t.hasStrict(body, { timezone: 'GMT', utc_offset_seconds: 0 })
})

t.test('the end of 16 days is null until a later run reaches it', async t => {
  await provider.steer({ now: '2026-11-21T20:00:00Z' })
  t.teardown(() => provider.steer({ now: '2026-11-21T06:00:00Z' }))
  const query =
    'hourly=temperature_2m,is_day&daily=temperature_2m_max,precipitation_sum,sunrise&forecast_days=16'
  const { hourly, daily } = (await send(dhaka(query))).body
  t.equal(hourly.temperature_2m.at(-1), null)
  t.type(hourly.temperature_2m.at(-24), 'number')
  t.notOk(hourly.is_day.includes(null), 'the sun is computed')
  t.equal(daily.temperature_2m_max.at(-1), null)
  t.equal(daily.precipitation_sum.at(-1), null)
  t.type(daily.sunrise.at(-1), 'string')
  await provider.steer({ now: '2026-11-22T01:00:00Z' })
  t.notOk((await send(dhaka(query))).body.hourly.temperature_2m.includes(null))
})

t.test('no variables give header fields only, no coordinates an empty 200', async t => {
  const bare = await send(dhaka(''))
  t.equal(Object.keys(bare.body).at(-1), 'elevation')
  const empty = await send('/v1/forecast?hourly=rain')
  t.strictSame([empty.status, empty.text], [200, ''])
})

t.test('responses are compressed when the client accepts it, and only then', async t => {
  const get = async (accept?: string) => {
    const { headers, body } = await request(provider.url + dhaka('hourly=rain'), {
      headers: accept === undefined ? {} : { 'accept-encoding': accept },
    })
    return { encoding: headers['content-encoding'], bytes: Buffer.from(await body.arrayBuffer()) }
  }
  const plain = await get()
  t.equal(plain.encoding, undefined)
  for (const accept of ['gzip', 'gzip, deflate', 'br;q=1, gzip;q=0.5']) {
    const packed = await get(accept)
    t.equal(packed.encoding, 'gzip', accept)
    t.equal(withoutTimings(gunzipSync(packed.bytes).toString()), withoutTimings(plain.bytes.toString()))
  }
  for (const accept of ['br', 'gzip;q=0', 'identity'])
    t.equal((await get(accept)).encoding, undefined, accept)
})
