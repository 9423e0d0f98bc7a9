// The format of forecasts: fields and their order, units, decimals, sections, lists, and the ways to send parameters.

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
  t.strictSame(Object.keys(body), [
    'latitude',
    'longitude',
    'generationtime_ms',
    'utc_offset_seconds',
    'timezone',
    'timezone_abbreviation',
    'elevation',
    'current_units',
    'current',
    'minutely_15_units',
    'minutely_15',
    'hourly_units',
    'hourly',
    'daily_units',
    'daily',
  ])
  t.match(body, { utc_offset_seconds: 21_600, timezone: 'Asia/Dhaka', timezone_abbreviation: 'GMT+6' })
  t.match(text, /^\{"latitude":23\.796133,"longitude":90\.38055,/, '32-bit noise of the cell')
  t.match(text, /"elevation":\d+\.0,/)
})

t.test('a list is an array in request order, and the first element has no location_id', async t => {
  const { body } = await send(three('hourly=temperature_2m'))
  t.equal(body.length, 3)
  t.strictSame(
    body.map((element: { location_id?: number }) => element.location_id),
    [undefined, 1, 2],
  )
  t.ok(body[0].latitude > body[1].latitude && body[2].latitude > body[0].latitude)
  const ids = (await send(three('location_id=7,0,9&daily=sunrise'))).body
  t.strictSame(
    ids.map((element: { location_id?: number }) => element.location_id),
    [7, undefined, 9],
    '0 is never printed',
  )
})

t.test('each element of a list equals the response for its point alone', async t => {
  const query = `&timezone=Asia%2FDhaka&forecast_days=3&current=${allInstant}&hourly=${allHourly}&daily=${allDaily}`
  const list = await send(
    three(`forecast_days=3&current=${allInstant}&hourly=${allHourly}&daily=${allDaily}`),
  )
  const points = ['23.8103 90.4125', '22.3569 91.7832', '24.8949 91.8687'].map(point => point.split(' '))
  const alone = await Promise.all(
    points.map(([lat, lng], i) =>
      send(`/v1/forecast?latitude=${lat}&longitude=${lng}${query}&location_id=${i}`),
    ),
  )
  t.equal(withoutTimings(list.text), `[${alone.map(({ text }) => withoutTimings(text)).join(',')}]`)
})

t.test(
  'the ways to send are equal: commas, %2C, repetition, a form, JSON with lists and with texts',
  async t => {
    const { text } = await send(three('hourly=temperature_2m,rain&daily=weather_code&forecast_days=2'))
    const expected = withoutTimings(text)
    const post = (type: string, body: string) =>
      send('/v1/forecast', { method: 'POST', headers: { 'content-type': type }, body })
    const query =
      'latitude=23.8103%2C22.3569%2C24.8949&longitude=90.4125&longitude=91.7832&longitude=91.8687' +
      '&timezone=Asia/Dhaka&hourly=temperature_2m&hourly=rain&daily=weather_code&forecast_days=2'
    const lists = {
      latitude: [23.8103, 22.3569, 24.8949],
      longitude: [90.4125, 91.7832, 91.8687],
      timezone: 'Asia/Dhaka',
      hourly: ['temperature_2m', 'rain'],
      daily: 'weather_code',
      forecast_days: 2,
    }
    const texts = { ...lists, latitude: '23.8103,22.3569,24.8949', hourly: 'temperature_2m,rain' }
    const ways = {
      query: await send(`/v1/forecast?${query}&unknown=ignored`),
      form: await post('application/x-www-form-urlencoded', query),
      lists: await post('application/json', JSON.stringify(lists)),
      texts: await post('application/json; charset=utf-8', JSON.stringify(texts)),
    }
    for (const [way, answer] of Object.entries(ways)) t.equal(withoutTimings(answer.text), expected, way)
  },
)

const decimals: Record<string, [unit: string, pattern: RegExp]> = {
  temperature_2m: ['°C', /^-?\d+\.\d$/],
  relative_humidity_2m: ['%', /^\d+$/],
  apparent_temperature: ['°C', /^-?\d+\.\d$/],
  is_day: ['', /^[01]$/],
  precipitation: ['mm', /^\d+\.\d\d$/],
  rain: ['mm', /^\d+\.\d\d$/],
  showers: ['mm', /^\d+\.\d\d$/],
  snowfall: ['cm', /^0\.00$/],
  weather_code: ['wmo code', /^\d+$/],
  cloud_cover: ['%', /^\d+$/],
  pressure_msl: ['hPa', /^\d+\.\d$/],
  surface_pressure: ['hPa', /^\d+\.\d$/],
  wind_speed_10m: ['km/h', /^\d+\.\d$/],
  wind_direction_10m: ['°', /^\d+$/],
  wind_gusts_10m: ['km/h', /^\d+\.\d$/],
  precipitation_probability: ['%', /^\d+$/],
  temperature_2m_max: ['°C', /^-?\d+\.\d$/],
  temperature_2m_min: ['°C', /^-?\d+\.\d$/],
  precipitation_probability_max: ['%', /^\d+$/],
  precipitation_sum: ['mm', /^\d+\.\d\d$/],
  sunrise: ['iso8601', /^"\d{4}-\d\d-\d\dT\d\d:\d\d"$/],
  sunset: ['iso8601', /^"\d{4}-\d\d-\d\dT\d\d:\d\d"$/],
}

// The printed values of a variable in a section, as in the text.
const printed = (text: string, section: string, name: string): string[] => {
  const data = text.slice(text.indexOf(`"${section}":{`))
  return (new RegExp(`"${name}":\\[([^\\]]*)\\]`).exec(data)?.[1] ?? '').split(',')
}

t.test('every variable has its unit and its decimals in every section', async t => {
  const { text, body } = await send(
    dhaka(
      `current=${allHourly}&minutely_15=${allHourly}&hourly=${allHourly}&daily=${allDaily}&forecast_days=9`,
    ),
  )
  for (const [section, names] of [
    ['minutely_15', allHourly],
    ['hourly', allHourly],
    ['daily', allDaily],
  ] as const)
    for (const name of names.split(',')) {
      const [unit, pattern] = decimals[name] ?? ['?', /^$/]
      t.equal(body[`${section}_units`][name], unit, `${section} ${name}`)
      const values = printed(text, section, name)
      t.equal(values.length, body[section].time.length)
      t.strictSame(
        values.filter(value => !pattern.test(value)),
        [],
        `decimals of ${section} ${name}`,
      )
    }
  const current = text.slice(text.indexOf('"current":{'), text.indexOf('"minutely_15_units"'))
  t.match(current, /^"current":\{"time":"2026-11-21T12:00","interval":900,/)
  t.match(body.current_units, { time: 'iso8601', interval: 'seconds', temperature_2m: '°C' })
  for (const name of allHourly.split(','))
    t.match(new RegExp(`"${name}":([^,}]+)`).exec(current)?.[1], decimals[name]?.[1], `current ${name}`)
})

t.test('the requested units are used, with their names and decimals', async t => {
  const query = 'hourly=temperature_2m,wind_speed_10m,wind_gusts_10m,precipitation,snowfall&forecast_days=3'
  const metric = (await send(dhaka(query))).body.hourly
  const imperial = await send(
    dhaka(`${query}&temperature_unit=fahrenheit&wind_speed_unit=mph&precipitation_unit=inch`),
  )
  t.strictSame(imperial.body.hourly_units, {
    time: 'iso8601',
    temperature_2m: '°F',
    wind_speed_10m: 'mp/h',
    wind_gusts_10m: 'mp/h',
    precipitation: 'inch',
    snowfall: 'inch',
  })
  t.match(printed(imperial.text, 'hourly', 'precipitation')[0], /^\d+\.\d{3}$/)
  imperial.body.hourly.temperature_2m.forEach((fahrenheit: number, i: number) => {
    if (Math.abs(fahrenheit - (metric.temperature_2m[i] * 1.8 + 32)) > 0.15) t.fail(`hour ${i}`)
  })
  const ms = await send(dhaka(`${query}&wind_speed_unit=kn&windspeed_unit=ms`))
  t.equal(ms.body.hourly_units.wind_speed_10m, 'm/s', 'the old spelling wins')
  t.match(printed(ms.text, 'hourly', 'wind_speed_10m')[0], /^\d+\.\d\d$/)
  t.equal((await send(dhaka(`${query}&wind_speed_unit=kn`))).body.hourly_units.wind_gusts_10m, 'kn')
})

t.test('sections begin and end where they should', async t => {
  await provider.steer({ now: '2026-11-21T18:52:00Z' })
  t.teardown(() => provider.steer({ now: '2026-11-21T06:00:00Z' }))
  const times = async (rest: string, section: string) => (await send(dhaka(rest))).body[section].time

  const hours = await times('hourly=rain', 'hourly')
  t.strictSame(
    [hours.length, hours[0], hours.at(-1)],
    [168, '2026-11-22T00:00', '2026-11-28T23:00'],
    '7 days',
  )
  t.strictSame(await times('daily=weather_code&forecast_days=2&past_days=1', 'daily'), [
    '2026-11-21',
    '2026-11-22',
    '2026-11-23',
  ])
  t.strictSame(await times('daily=weather_code&forecast_days=0', 'daily'), [])
  t.strictSame(await times('hourly=rain&forecast_hours=2', 'hourly'), [
    '2026-11-22T00:00',
    '2026-11-22T01:00',
  ])
  t.strictSame(await times('minutely_15=rain&forecast_minutely_15=2&past_minutely_15=1', 'minutely_15'), [
    '2026-11-22T00:30',
    '2026-11-22T00:45',
    '2026-11-22T01:00',
  ])
  const quarters = await times('minutely_15=rain&forecast_days=1', 'minutely_15')
  t.strictSame(
    [quarters.length, quarters[0], quarters.at(-1)],
    [96, '2026-11-22T00:00', '2026-11-22T23:45'],
    'from local midnight',
  )
  t.equal(
    (await send(dhaka('current=rain'))).body.current.time,
    '2026-11-22T00:45',
    'the running quarter-hour',
  )
})

t.test('unixtime is true UTC, and a day is its local midnight', async t => {
  const { body } = await send(
    dhaka('current=rain&hourly=rain&daily=weather_code,sunrise&timeformat=unixtime&forecast_days=1'),
  )
  t.equal(body.current_units.time, 'unixtime')
  t.equal(body.daily_units.sunrise, 'unixtime')
  t.equal(body.current.time, Date.parse('2026-11-21T06:00Z') / 1000)
  t.equal(body.hourly.time[0], Date.parse('2026-11-21T00:00+06:00') / 1000)
  t.equal(body.daily.time[0], body.hourly.time[0])
  const sunrise = body.daily.sunrise[0] - body.daily.time[0]
  t.ok(sunrise > 6 * 3600 && sunrise < 7 * 3600, 'in November the sun rises after six')
})

t.test('time zones: GMT by default, by name, by point, and one for each point', async t => {
  const zones = async (path: string) => {
    const { body } = await send(path)
    return [body].flat().map(element => [element.timezone, element.utc_offset_seconds])
  }
  const query = '/v1/forecast?latitude=23.8,22.57&longitude=90.4,88.36&hourly=rain'
  t.strictSame(await zones(query), [
    ['GMT', 0],
    ['GMT', 0],
  ])
  t.strictSame(await zones(`${query}&timezone=auto`), [
    ['Asia/Dhaka', 21_600],
    ['Asia/Dhaka', 21_600],
  ])
  t.strictSame(await zones(`${query}&timezone=Asia/Tokyo,europe/berlin`), [
    ['Asia/Tokyo', 32_400],
    ['Europe/Berlin', 3_600],
  ])
  t.strictSame(await zones('/v1/forecast?latitude=52.5&longitude=13.4&hourly=rain&timezone=auto'), [
    ['Etc/GMT-1', 3_600],
  ])
})

t.test('a time zone comes back under its requested name', async t => {
  const zone = async (name: string) =>
    (await send(`/v1/forecast?latitude=23.8&longitude=90.4&timezone=${name}`)).body.timezone
  for (const name of ['Asia/Kolkata', 'Asia/Calcutta', 'Asia/Kathmandu', 'Asia/Yangon', 'Asia/Dhaka'])
    t.equal(await zone(name), name)
  t.equal(await zone('UTC'), 'GMT')
  const { body } = await send('/v1/forecast?latitude=22.57&longitude=80&timezone=auto')
  t.equal(body.timezone, 'Asia/Kolkata')
  t.equal(body.utc_offset_seconds, 19_800)
})

t.test('whole coordinates and heights have a decimal, others have all of theirs', async t => {
  const head = async (rest: string) => {
    const { text } = await send(`/v1/forecast?${rest}`)
    return /^\{"latitude":([^,]+),"longitude":([^,]+),.*"elevation":([^,}]+)/.exec(text)?.slice(1)
  }
  const [, longitude] = (await head('latitude=23.8&longitude=90')) ?? []
  t.match(longitude, /^\d+\.\d+$/)
  t.equal((await head('latitude=23.8&longitude=0'))?.[1], '0.0')
  t.equal((await head('latitude=23.8&longitude=180'))?.[1], '180.0')
  t.equal((await head('latitude=23.8&longitude=90.4&elevation=8'))?.[2], '8.0')
  t.equal((await head('latitude=23.8&longitude=90.4&elevation=8.25'))?.[2], '8.25')
})

t.test('a range of dates takes the place of counted days', async t => {
  const { body } = await send(
    dhaka('start_date=2026-11-19&end_date=2026-11-22&hourly=temperature_2m&daily=temperature_2m_max'),
  )
  t.strictSame(body.daily.time, ['2026-11-19', '2026-11-20', '2026-11-21', '2026-11-22'])
  t.strictSame(
    [body.hourly.time.length, body.hourly.time[0], body.hourly.time.at(-1)],
    [96, '2026-11-19T00:00', '2026-11-22T23:00'],
  )
  const counted = await send(dhaka('past_days=2&forecast_days=2&hourly=temperature_2m'))
  t.strictSame(body.hourly.temperature_2m, counted.body.hourly.temperature_2m)
})

t.test('CSV has a head for the place, a table for each section, and ids for several places', async t => {
  const query = 'current=rain&hourly=temperature_2m,is_day&daily=sunrise,updraft_max&forecast_days=1'
  const one = await send(dhaka(`${query}&format=csv`))
  t.equal(one.headers.get('content-type'), 'text/csv; charset=utf-8')
  const { body } = await send(dhaka(query))
  const [head, place, gap, currentHead, current, , hourlyHead, midnight, ...rest] = one.text.split('\n')
  t.equal(head, 'latitude,longitude,elevation,utc_offset_seconds,timezone,timezone_abbreviation')
  t.match(place, /^23\.796133,90\.38055,\d+\.0,21600,Asia\/Dhaka,GMT\+6$/)
  t.equal(gap, '')
  t.equal(currentHead, 'time,rain (mm)')
  t.match(current, /^2026-11-21T12:00,\d+\.\d\d$/)
  t.equal(hourlyHead, 'time,temperature_2m (°C),is_day ()')
  t.match(midnight, /^2026-11-21T00:00,\d+\.\d,0$/)
  t.equal(Number(midnight?.split(',')[1]), body.hourly.temperature_2m[0])
  t.strictSame(rest.slice(-4), [
    '',
    'time,sunrise (iso8601),updraft_max (undefined)',
    `2026-11-21,${body.daily.sunrise[0]},NaN`,
    '',
  ])
  const unix = await send(dhaka(`daily=sunrise&forecast_days=1&format=csv&timeformat=unixtime`))
  t.match(unix.text, /\n\d{10},\d{10}\n$/)

  const several = await send(three('hourly=rain&forecast_hours=1&format=csv&elevation=nan,8,9'))
  const lines = several.text.split('\n')
  t.match(lines[0], /^location_id,latitude,/)
  t.match(lines[1], /^0,23\.79\d+,90\.38\d+,NaN,21600,/)
  t.equal(lines[5], 'location_id,time,rain (mm)')
  t.strictSame(
    lines.slice(6, 9).map(line => line.split(',').slice(0, 2)),
    [0, 1, 2].map(id => [String(id), '2026-11-21T12:00']),
  )
})

t.test('a known variable without data is null throughout, with the unit "undefined"', async t => {
  const { body } = await send(
    dhaka('current=lightning_potential&hourly=lightning_potential,rain&daily=updraft_max&forecast_days=1'),
  )
  t.equal(body.current.lightning_potential, null)
  t.equal(body.hourly_units.lightning_potential, 'undefined')
  t.strictSame(body.hourly.lightning_potential, Array(24).fill(null))
  t.notOk(body.hourly.rain.includes(null))
  t.strictSame(body.daily.updraft_max, [null])
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

t.test('elevation is that of the point, may be given, and may be turned off', async t => {
  const pressure = async (rest: string) => {
    const { body } = await send(dhaka(`current=surface_pressure,pressure_msl&${rest}`))
    return [body.elevation, body.current.pressure_msl - body.current.surface_pressure]
  }
  const [elevation, below] = await pressure('elevation=900')
  t.equal(elevation, 900)
  t.ok(below > 90 && below < 115, `900 m are ${below} hPa`)
  t.equal((await pressure('elevation=nan'))[0], undefined)
})

t.test('no variables give header fields only, no coordinates an empty 200', async t => {
  const bare = await send(dhaka(''))
  t.equal(Object.keys(bare.body).at(-1), 'elevation')
  const empty = await send('/v1/forecast?hourly=rain')
  t.strictSame([empty.status, empty.text], [200, ''])
})

t.test('a thousand points are answered to one URL and to one form', async t => {
  const query = `latitude=${Array(1000).fill('23.8103123456')}&longitude=${Array(1000).fill('90.4125123456')}&current=rain`
  const { body } = await send(`/v1/forecast?${query}`)
  t.equal(body.length, 1000)
  const form = await send('/v1/forecast', {
    method: 'POST',
    body: query,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  t.equal(form.body.length, 1000)
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
