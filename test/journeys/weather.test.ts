// Without it fields, units and numbers of the weather could differ from the contract or from the provider.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { currentUnits, dailyVariables, hourlyVariables } from '../support/weather-contract.ts'

const noon = '2026-11-21T06:05:10Z'
const clock = manualClock(noon)
const provider = await startProviderHere(t, undefined, noon)
const gateway = await startGateway(t, { providerUrl: provider.url, clock })

const currentFields = { time: 'iso8601', interval: 'seconds', ...currentUnits }
const integers = 'interval relative_humidity_2m is_day weather_code cloud_cover wind_direction_10m'.split(' ')
const hourlyFields = ['time', ...hourlyVariables]
const dailyFields = ['time', ...dailyVariables]

t.test('weather of a place has every block and every field of the contract', async t => {
  const { status, body, headers } = await gateway.get('/weather/upazila/302672?lang=en')
  t.equal(status, 200)
  t.equal(headers['content-type'], 'application/json; charset=utf-8')
  const blocks = ['current', 'hourly', 'daily'].flatMap(name => [name, `${name}_units`])
  t.strictSame(Object.keys(body), ['location', ...blocks, 'timezone', 'utc_offset_seconds'])
  t.hasStrict(body, { timezone: 'Asia/Dhaka', utc_offset_seconds: 21_600 })
  const point = { latitude: Number, longitude: Number }
  t.match(body.location, { type: 'upazila', id: '302672', ...point, parent_en: 'Dhaka' })

  t.strictSame(body.current_units, currentFields)
  t.strictSame(Object.keys(body.current), Object.keys(currentFields))
  t.hasStrict(body.current, { time: '2026-11-21T12:00', interval: 900, is_day: 1 })
  for (const [name, value] of Object.entries(body.current)) {
    if (name === 'time') continue
    t.type(value, 'number', name)
    if (integers.includes(name)) t.ok(Number.isInteger(value), `${name} is an integer`)
  }

  for (const [block, fields, first, last, length] of [
    ['hourly', hourlyFields, '2026-11-21T12:00', '2026-11-23T11:00', 48],
    ['daily', dailyFields, '2026-11-21', '2026-11-27', 7],
  ] as const) {
    t.strictSame(Object.keys(body[block]), fields)
    t.strictSame(Object.keys(body[`${block}_units`]), fields)
    for (const name of fields) t.equal(body[block][name].length, length, name)
    t.strictSame([body[block].time[0], body[block].time.at(-1)], [first, last])
  }
})

t.test('lang adds names and changes nothing else', async t => {
  const bengali = await gateway.get('/weather/upazila/302672')
  const english = await gateway.get('/weather/upazila/302672?lang=en')
  t.equal(bengali.headers['content-language'], 'bn')
  t.equal(english.headers['content-language'], 'en')
  t.hasStrict(bengali.body.location, { name: bengali.body.location.name_bn, parent: 'ঢাকা' })
  t.hasStrict(english.body.location, { name: english.body.location.name_en, parent: 'Dhaka' })
  const { name: _b, parent: _p, ...placeInBengali } = bengali.body.location
  const { name: _e, parent: _q, ...placeInEnglish } = english.body.location
  t.strictSame(placeInBengali, placeInEnglish)
  t.strictSame(bengali.body.current, english.body.current)
  t.match((await gateway.get('/weather/upazila/302672?lang=bn')).text, bengali.text)
  const division = (await gateway.get('/weather/division/30?lang=en')).body.location
  t.hasStrict(division, { parent_en: null, parent_bn: null, name: 'Dhaka' })
  t.notOk('parent' in division)
})

t.test('weather at a point has a location of its own kind and the same blocks', async t => {
  const { status, body, headers } = await gateway.get('/weather/coords/23.81/+90.41256?lang=en')
  t.equal(status, 200)
  t.strictSame(body.location, {
    type: 'coords',
    latitude: 23.81,
    longitude: 90.41256,
    name_en: '23.810, 90.413',
    name_bn: null,
    name: '23.810, 90.413',
  })
  t.strictSame(Object.keys(body.current_units), Object.keys(currentFields))
  t.equal(body.daily.time.length, 7)
  t.match(headers['cache-status'], /key="23\.8,90\.4"/)
})

t.test('the forecast has the daily block alone, with the requested number of days', async t => {
  const { status, body, headers } = await gateway.get('/forecast/upazila/302672?days=3&lang=xx')
  t.equal(status, 200, 'lang has no meaning here')
  t.equal(headers['content-language'], undefined)
  t.strictSame(Object.keys(body), ['location', 'daily', 'daily_units', 'timezone', 'utc_offset_seconds'])
  t.equal(body.utc_offset_seconds, 21_600)
  t.notOk('name' in body.location)
  for (const name of dailyFields) t.equal(body.daily[name].length, 3, name)
  const whole = (await gateway.get('/forecast/upazila/302672')).body
  for (const name of dailyFields) {
    t.equal(whole.daily[name].length, 7)
    t.strictSame(body.daily[name], whole.daily[name].slice(0, 3))
  }
})

t.test('weather and forecast of a place agree, and so does a point in the same cell', async t => {
  const place = (await gateway.get('/weather/district/3026')).body
  const { latitude, longitude } = place.location
  t.strictSame((await gateway.get('/forecast/district/3026')).body.daily, place.daily)
  const point = (await gateway.get(`/weather/coords/${latitude}/${longitude}`)).body
  t.strictSame(point.current, place.current)
  t.strictSame(point.hourly, place.hourly)
})

t.test('at every instant the response equals the provider’s own, across midnight too', async t => {
  t.teardown(() => clock.set(noon))
  const env = { ABOHAWA_CACHE__FRESH_FOR: '20h' }
  const patient = await startGateway(t, { providerUrl: provider.url, clock, env })
  const variables = Object.keys(currentFields).slice(2).join(',')
  const { calls } = await provider.state()
  // All from the timeline of the first request: quarter-hours, an hour, midnight at 18:00 UTC.
  const instants = '06:05:10 06:14:59 06:15:00 06:59:59 07:00:00 17:59:59 18:00:00 23:47:00'.split(' ')
  for (const time of instants) {
    const now = `2026-11-21T${time}Z`
    clock.set(now)
    await provider.steer({ now })
    const { body, headers } = await patient.get('/weather/coords/22.3/91.8')
    t.match(headers['cache-status'], time === instants[0] ? /fwd=miss/ : /^abohawa; hit/)
    const direct = await sendRequest(
      `${provider.url}/v1/forecast?latitude=22.3&longitude=91.8&timezone=Asia%2FDhaka&current=${variables}` +
        `&hourly=${hourlyFields.slice(1).join(',')}&daily=${dailyFields.slice(1).join(',')}&forecast_days=9`,
    )
    t.strictSame(body.current, direct.body.current, `current at ${time}`)
    const from = direct.body.hourly.time.indexOf(body.hourly.time[0])
    for (const name of hourlyFields)
      t.strictSame(body.hourly[name], direct.body.hourly[name].slice(from, from + 48), `${name} at ${time}`)
    for (const name of dailyFields)
      t.strictSame(body.daily[name], direct.body.daily[name].slice(0, 7), `daily ${name} at ${time}`)
  }
  // One call by the gateway, the rest by this test.
  t.equal((await provider.state()).calls, calls + 1 + instants.length)
  await provider.steer({ now: noon })
})

t.test('a missing value of the provider is null, not 0 and not left out', async t => {
  await provider.steer({ fault: 'gaps', times: 1 })
  const { status, body } = await gateway.get('/weather/coords/25.1/88.2')
  t.equal(status, 200)
  t.strictSame(Object.keys(body.current), Object.keys(currentFields))
  // The provider left out every fifth step of every section, the first of each included.
  // Its first day is yesterday, so the next gap is the fifth day of the response.
  t.strictSame(
    body.daily.temperature_2m_max.map((value: unknown) => value === null),
    [false, false, false, false, true, false, false],
  )
  for (const name of hourlyFields.slice(1)) t.ok(body.hourly[name].includes(null), `hourly ${name}`)
})
