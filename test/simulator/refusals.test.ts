// Invalid calls are refused as the provider does: as a whole and with a reason.

import t from 'tap'
import { dhaka, simulate, three } from './simulated.ts'

const { send } = await simulate(t)
const point = '/v1/forecast?latitude=23.8&longitude=90.4'

const wrong: [path: string, reason: RegExp][] = [
  [dhaka('hourly=rain,teperature'), /^Data corrupted at path 'hourly'.*'teperature'/],
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
  ['/v1/forecast?latitude=23,22,21&longitude=90,91,92&timezone=GMT,GMT', /'timezone' must have the same/],
  [three('elevation=1,2'), /'elevation' must have the same number/],
  [three('elevation=1,2,high'), /'elevation'/],
  [three('location_id=1,2'), /'location_id' must have the same number/],
  [three('location_id=1,2,2.5'), /'location_id'/],
  [dhaka('temperature_unit=kelvin'), /'temperature_unit'.*celsius, fahrenheit.*'kelvin'/],
  [dhaka('wind_speed_unit=beaufort'), /'wind_speed_unit'/],
  [dhaka('precipitation_unit=cm'), /'precipitation_unit'/],
  [dhaka('timeformat=iso'), /'timeformat'/],
  [dhaka('start_date=2026-11-01'), /Both 'start_date' and 'end_date' must be set/],
  [dhaka('start_date=2026-11-03&end_date=2026-11-01'), /larger or equals/],
  [dhaka('start_date=2026-11-31&end_date=2026-12-01'), /'start_date'.*YYYY-MM-DD.*'2026-11-31'/],
  [
    dhaka('start_date=2026-11-20&end_date=2026-12-09'),
    /'end_date' is out of allowed range from .* to 2026-12-06/,
  ],
  [
    dhaka('start_date=2026-08-01&end_date=2026-12-01'),
    /'start_date' is out of allowed range from 2026-08-21 to/,
  ],
  [
    dhaka('start_date=2026-11-20&end_date=2026-11-21&forecast_days=3'),
    /'forecast_days' is mutually exclusive/,
  ],
  [dhaka('start_hour=2026-11-20T00:00'), /'start_hour'.*not simulated/],
  [dhaka('models=gfs_seamless'), /'models'.*not simulated/],
  [dhaka('models=icon_global'), /'models'.*'icon_global' is not simulated. Allowed: best_match\./],
  [dhaka('format=xlsx'), /'format'.*'xlsx' is not simulated. Allowed: json, csv, flatbuffers\./],
  [dhaka('format=pdf'), /'format'.*'pdf' is not simulated. Allowed: json, csv, flatbuffers\./],
  [dhaka('cell_selection=sea'), /'cell_selection'.*'sea' is not simulated. Allowed: land, nearest\./],
  [dhaka('temporal_resolution=hourly_3'), /'temporal_resolution'.*not simulated. Allowed: native\./],
  [dhaka('current_weather=true'), /'current_weather'.*not simulated/],
  [dhaka('hourly=global_tilted_irradiance&tilt=30'), /'tilt'.*not simulated. Allowed: 0\./],
  [dhaka('length_unit=imperial'), /'length_unit'.*not simulated/],
  [dhaka('hourly=rain,temperature_850hPa'), /'hourly'.*'temperature_850hPa' is not simulated\./],
  [dhaka('hourly=soil_temperature_0_to_7cm'), /'soil_temperature_0_to_7cm' is not simulated\./],
  [dhaka('hourly=nonsense_850hPa'), /^Data corrupted at path 'hourly'.*'nonsense_850hPa'/],
  [dhaka('daily=moonrise'), /'daily'.*'moonrise' is not simulated\./],
]

for (const [path, reason] of wrong) {
  const shown = path.replace('/v1/forecast?', '').slice(0, 90)
  t.test(`400: ${shown}`, async t => {
    const { status, headers, body } = await send(path)
    t.equal(status, 400)
    t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    t.strictSame(Object.keys(body).sort(), ['error', 'reason'])
    t.equal(body.error, true)
    t.match(body.reason, reason)
  })
}

t.test('bodies that cannot be read are refused', async t => {
  const post = (type: string, body: string) =>
    send('/v1/forecast', { method: 'POST', headers: { 'content-type': type }, body })
  for (const body of ['', '{', '[]', '"a"', 'null', '{"latitude":{"a":1},"longitude":1}'])
    t.match(await post('application/json', body), { status: 400, body: { error: true } }, body)
  t.match(await post('text/plain', 'latitude=1'), { status: 415, body: { error: true } })
  const long = `latitude=23.8&longitude=90.4&x=${'x'.repeat(128 * 1024)}`
  t.match(await post('application/x-www-form-urlencoded', long), { status: 413, body: { error: true } })
})

t.test('other paths and methods are 404 as JSON', async t => {
  for (const [path, method] of [
    ['/', 'GET'],
    ['/v1/forecast/', 'GET'],
    ['/v1/archive', 'GET'],
    ['/v1/forecast', 'DELETE'],
    ['/control', 'PUT'],
    ['/data/ecmwf_ifs/static/meta.json', 'POST'],
    ['/data/icon_d2/static/meta.json', 'GET'],
  ] as const)
    t.match(
      await send(path, { method }),
      { status: 404, body: { error: true, reason: 'Not Found' } },
      `${method} ${path}`,
    )
})

t.test('a customer host wants its key, in the query, in a header or in a body', async t => {
  const { send, state } = await simulate(t, { apiKey: 'the-key' })
  t.match(await send(dhaka('hourly=rain')), { status: 401, body: { error: true, reason: /API key/ } })
  t.match(await send(dhaka('hourly=rain&apikey=other')), {
    status: 400,
    body: { reason: /API key is invalid/ },
  })
  t.match(await send(dhaka('hourly=rain'), { headers: { 'x-api-key': 'other' } }), { status: 400 })
  t.match(await send(dhaka('hourly=rain&apikey=the-key')), { status: 200, body: { hourly: {} } })
  t.match(await send(dhaka('hourly=rain'), { headers: { 'x-api-key': 'the-key' } }), { status: 200 })
  const body = JSON.stringify({ latitude: 23.8, longitude: 90.4, hourly: 'rain', apikey: 'the-key' })
  const headers = { 'content-type': 'application/json' }
  t.match(await send('/v1/forecast', { method: 'POST', body, headers }), { status: 200 })
  t.notMatch(JSON.stringify(await state()), /the-key/, 'the list of calls does not show it')
})
