// Without it wrong requests of the gateway would get weather instead of a refusal.

import t from 'tap'
import { dhaka, simulate, three } from './simulated.ts'

const { send } = await simulate(t)
const point = '/v1/forecast?latitude=23.8&longitude=90.4'

const wrong: [path: string, reason: RegExp][] = [
  [dhaka('hourly=rain,teperature'), /path 'hourly'. Can't read a simulated variable from 'teperature'\.$/],
  [dhaka('current=precipitation_sum'), /^Data corrupted at path 'current'/],
  [dhaka('daily=temperature_2m'), /^Data corrupted at path 'daily'/],
  [dhaka('daily=constructor'), /'constructor'/],
  ['/v1/forecast?latitude=23.8,22&longitude=90.4', /same number of elements. Given 2 and 1/],
  ['/v1/forecast?latitude=23.8', /same number of elements/],
  ['/v1/forecast?latitude=23,81&longitude=90.4', /same number of elements/],
  ['/v1/forecast?latitude=90.1&longitude=90.4', /'latitude' must be in range of -90 to 90/],
  ['/v1/forecast?latitude=20&longitude=-180.5', /'longitude' must be in range of -180 to 180/],
  ['/v1/forecast?latitude=north&longitude=90.4', /'latitude'.*'north'/],
  ['/v1/forecast?latitude=23.8,&longitude=90.4,91', /'latitude'/],
  [`/v1/forecast?latitude=${Array(1001).fill(23.8)}&longitude=${Array(1001).fill(90.4)}`, /1000 locations/],
  [dhaka('forecast_days=17'), /^Forecast days is invalid. Allowed range 0 to 16. Given 17.$/],
  [dhaka('past_days=100'), /^Past days is invalid. Allowed range 0 to 92. Given 100.$/],
  [dhaka('forecast_hours=385'), /^Forecast hours is invalid. Allowed range 0 to 384. Given 385.$/],
  [dhaka('forecast_days=-1'), /Allowed range 0 to 16/],
  [dhaka('past_days=93'), /Allowed range 0 to 92/],
  [dhaka('forecast_days=two'), /'forecast_days'.*'two'/],
  [dhaka('forecast_minutely_15=1537'), /Allowed range 0 to 1536/],
  [`${point}&timezone=Asia/Atlantis`, /^Invalid timezone/],
  [`${point}&timezone=%2B06:00`, /^Invalid timezone/],
  [`${point}&timezone=auto`, /^Invalid timezone/],
  [`${point}&timezone=GMT,GMT`, /^Invalid timezone/],
  [three('elevation=1,2,3'), /'elevation'.*not simulated/],
  [three('location_id=1,2,3'), /'location_id'.*not simulated/],
  [dhaka('temperature_unit=fahrenheit'), /'temperature_unit'.*'fahrenheit' is not simulated.*: celsius\./],
  [dhaka('wind_speed_unit=ms'), /'wind_speed_unit'.*not simulated. Allowed: kmh\./],
  [dhaka('precipitation_unit=inch'), /'precipitation_unit'.*not simulated. Allowed: mm\./],
  [dhaka('timeformat=unixtime'), /'timeformat'.*not simulated. Allowed: iso8601\./],
  [dhaka('start_date=2026-11-01'), /'start_date'.*not simulated/],
  [dhaka('end_hour=2026-11-20T00:00'), /'end_hour'.*not simulated/],
  [dhaka('models=gfs_seamless'), /'models'.*'gfs_seamless' is not simulated. Allowed: best_match\./],
  [dhaka('format=flatbuffers'), /'format'.*'flatbuffers' is not simulated. Allowed: json\./],
  [dhaka('cell_selection=sea'), /'cell_selection'.*'sea' is not simulated. Allowed: land, nearest\./],
  [dhaka('temporal_resolution=hourly_3'), /'temporal_resolution'.*not simulated. Allowed: native\./],
  [dhaka('current_weather=true'), /'current_weather'.*not simulated/],
  [dhaka('length_unit=imperial'), /'length_unit'.*not simulated/],
]

t.test('a wrong call is 400 with a reason', async t => {
  for (const [path, reason] of wrong) {
    const { status, headers, body } = await send(path)
    t.equal(status, 400, path.slice(0, 90))
    t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    t.strictSame(body, { error: true, reason: body.reason })
    t.match(body.reason, reason)
  }
})

t.test('other paths and methods are 404 as JSON', async t => {
  const notFound = { status: 404, body: { error: true, reason: 'Not Found' } }
  for (const [path, method] of [
    ['/', 'GET'],
    ['/v1/forecast/', 'GET'],
    ['/v1/archive', 'GET'],
    ['/v1/forecast', 'POST'],
    ['/control', 'PUT'],
    ['/data/ecmwf_ifs/static/meta.json', 'POST'],
    ['/data/icon_d2/static/meta.json', 'GET'],
  ] as const)
    t.hasStrict(await send(path, { method }), notFound, `${method} ${path}`)
})

t.test('a customer host wants its key, in the query or in a header', async t => {
  const { send, state } = await simulate(t, { apiKey: 'the-key' })
  t.match(await send(dhaka('hourly=rain')), { status: 401, body: { error: true, reason: /API key/ } })
  const invalid = { status: 400, body: { reason: /API key is invalid/ } }
  t.match(await send(dhaka('hourly=rain&apikey=other')), invalid)
  t.match(await send(dhaka('hourly=rain'), { headers: { 'x-api-key': 'other' } }), { status: 400 })
  t.match(await send(dhaka('hourly=rain&apikey=the-key')), { status: 200, body: { hourly: {} } })
  t.match(await send(dhaka('hourly=rain'), { headers: { 'x-api-key': 'the-key' } }), { status: 200 })
  t.notMatch(JSON.stringify(await state()), /the-key/, 'the list of calls does not show it')
})
