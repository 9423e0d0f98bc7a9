// The provider's own client for Node fetches from the simulator, in the binary format that it always requests.

import { Aggregation } from '@openmeteo/sdk/aggregation.js'
import { Model } from '@openmeteo/sdk/model.js'
import { Unit } from '@openmeteo/sdk/unit.js'
import { Variable } from '@openmeteo/sdk/variable.js'
import type { VariableWithValues } from '@openmeteo/sdk/variable-with-values.js'
import type { VariablesWithTime } from '@openmeteo/sdk/variables-with-time.js'
import { fetchWeatherApi } from 'openmeteo'
import t from 'tap'
import { dhaka, simulate, three } from './simulated.ts'

const { url, send, steer } = await simulate(t)
const endpoint = `${url}/v1/forecast`

const current =
  'temperature_2m,relative_humidity_2m,apparent_temperature,is_day,precipitation,rain,showers,snowfall,weather_code,' +
  'cloud_cover,pressure_msl,surface_pressure,wind_speed_10m,wind_direction_10m,wind_gusts_10m'
const hourly =
  'temperature_2m,dew_point_2m,precipitation_probability,visibility,wind_speed_80m,uv_index,soil_temperature_6cm,' +
  'soil_moisture_3_to_9cm,shortwave_radiation,lightning_potential'
const daily =
  'temperature_2m_max,temperature_2m_mean,temperature_2m_min,sunrise,sunset,daylight_duration,precipitation_sum,' +
  'wind_direction_10m_dominant,shortwave_radiation_sum'

const columns = (section: VariablesWithTime | null): VariableWithValues[] =>
  Array.from(
    { length: section?.variablesLength() ?? 0 },
    (_, i) => section?.variables(i) as VariableWithValues,
  )

t.test('one place: every value is that of the JSON answer', async t => {
  const query = `current=${current}&hourly=${hourly}&daily=${daily}&minutely_15=rain&forecast_days=3&timeformat=unixtime`
  const { body } = await send(dhaka(query))
  const params = { latitude: '23.8103', longitude: '90.4125', timezone: 'Asia/Dhaka', forecast_days: '3' }
  const [response, ...more] = await fetchWeatherApi(endpoint, {
    ...params,
    current,
    hourly,
    daily,
    minutely_15: 'rain',
  })
  if (!response) throw new Error('the client got no place')
  t.equal(more.length, 0)
  t.match(
    {
      latitude: response.latitude(),
      longitude: response.longitude(),
      elevation: response.elevation(),
      zone: response.timezone(),
      abbreviation: response.timezoneAbbreviation(),
      offset: response.utcOffsetSeconds(),
      model: response.model(),
      id: response.locationId(),
    },
    {
      latitude: Math.fround(body.latitude),
      longitude: Math.fround(body.longitude),
      elevation: body.elevation,
      zone: 'Asia/Dhaka',
      abbreviation: 'GMT+6',
      offset: 21_600,
      model: Model.best_match,
      id: 0n,
    },
  )
  t.ok(response.generationTimeMilliseconds() > 0)

  const now = response.current()
  t.strictSame([Number(now?.time()), now?.interval()], [body.current.time, 900])
  t.strictSame(
    columns(now).map(column => column.value()),
    current.split(',').map(name => Math.fround(body.current[name])),
  )
  for (const [section, json, names, interval] of [
    [response.minutely15(), body.minutely_15, 'rain', 900],
    [response.hourly(), body.hourly, hourly, 3600],
    [response.daily(), body.daily, daily, 86_400],
  ] as const) {
    const { time } = json
    t.strictSame(
      [Number(section?.time()), Number(section?.timeEnd()), section?.interval()],
      [time[0], time.at(-1) + interval, interval],
    )
    for (const [i, name] of names.split(',').entries()) {
      const column = columns(section)[i]
      const expected = json[name].map((value: number | null) => (value === null ? Number.NaN : value))
      const values = /^sun/.test(name)
        ? expected.map((_: number, j: number) => Number(column?.valuesInt64(j)))
        : [...(column?.valuesArray() ?? [])]
      t.strictSame(values, /^sun/.test(name) ? expected : expected.map(Math.fround), name)
    }
  }
})

t.test('variables, units, heights, depths and aggregations have the codes of the SDK', async t => {
  const [response] = await fetchWeatherApi(endpoint, {
    latitude: '23.8',
    longitude: '90.4',
    current: 'is_day,wind_gusts_10m',
    hourly,
    daily,
    wind_speed_unit: 'ms',
    temperature_unit: 'fahrenheit',
  })
  const codes = (section: VariablesWithTime | null | undefined) =>
    columns(section ?? null).map(column => [
      Variable[column.variable()],
      Unit[column.unit()],
      column.altitude(),
      column.depth(),
      column.depthTo(),
      Aggregation[column.aggregation()],
    ])
  t.strictSame(codes(response?.current()), [
    ['is_day', 'dimensionless_integer', 0, 0, 0, 'none'],
    ['wind_gusts', 'metre_per_second', 10, 0, 0, 'none'],
  ])
  t.strictSame(codes(response?.hourly()), [
    ['temperature', 'fahrenheit', 2, 0, 0, 'none'],
    ['dew_point', 'fahrenheit', 2, 0, 0, 'none'],
    ['precipitation_probability', 'percentage', 0, 0, 0, 'none'],
    ['visibility', 'metre', 0, 0, 0, 'none'],
    ['wind_speed', 'metre_per_second', 80, 0, 0, 'none'],
    ['uv_index', 'dimensionless', 0, 0, 0, 'none'],
    ['soil_temperature', 'fahrenheit', 0, 6, 0, 'none'],
    ['soil_moisture', 'cubic_metre_per_cubic_metre', 0, 3, 9, 'none'],
    ['shortwave_radiation', 'watt_per_square_metre', 0, 0, 0, 'none'],
    ['lightning_potential', 'undefined', 0, 0, 0, 'none'],
  ])
  t.strictSame(codes(response?.daily()), [
    ['temperature', 'fahrenheit', 2, 0, 0, 'maximum'],
    ['temperature', 'fahrenheit', 2, 0, 0, 'mean'],
    ['temperature', 'fahrenheit', 2, 0, 0, 'minimum'],
    ['sunrise', 'unix_time', 0, 0, 0, 'none'],
    ['sunset', 'unix_time', 0, 0, 0, 'none'],
    ['daylight_duration', 'seconds', 0, 0, 0, 'none'],
    ['precipitation', 'millimetre', 0, 0, 0, 'sum'],
    ['wind_direction', 'degree_direction', 10, 0, 0, 'dominant'],
    ['shortwave_radiation', 'megajoule_per_square_metre', 0, 0, 0, 'sum'],
  ])
})

t.test('three places are three messages in request order', async t => {
  const responses = await fetchWeatherApi(endpoint, {
    latitude: '23.8103,22.3569,24.8949',
    longitude: '90.4125,91.7832,91.8687',
    location_id: '7,8,9',
    hourly: 'temperature_2m',
  })
  const { body } = await send(
    three('hourly=temperature_2m&timezone=GMT').replace('&timezone=Asia%2FDhaka', ''),
  )
  t.strictSame(
    responses.map(response => [Number(response.locationId()), response.hourly()?.variables(0)?.values(40)]),
    body.map((element: { hourly: { temperature_2m: number[] } }, i: number) => [
      7 + i,
      Math.fround(element.hourly.temperature_2m[40] ?? 0),
    ]),
  )
})

t.test('the client passes on the sentence of a refusal', async t => {
  const params = { latitude: '23.8', longitude: '90.4', hourly: 'no_such_variable' }
  await t.rejects(fetchWeatherApi(endpoint, params), { message: /'no_such_variable'/ })
})

t.test('faults spoil the binary form too', async t => {
  const query = 'current=rain&hourly=rain&daily=sunrise,rain_sum&forecast_days=2'
  const path = dhaka(`${query}&format=flatbuffers`)
  const whole = await send(path)
  t.equal(whole.headers.get('content-type'), 'application/octet-stream')
  await steer({ fault: 'cut-off', times: 1 })
  t.ok((await send(path)).text.length < whole.text.length)
  await steer({ fault: 'short-array', times: 1 })
  const [response] = await fetchWeatherApi(endpoint, { latitude: '23.8', longitude: '90.4', hourly: 'rain' })
  t.equal(response?.hourly()?.variables(0)?.valuesLength(), 167)
  for (const fault of [
    'all-null',
    'gaps',
    'irregular-times',
    'missing-section',
    'missing-variable',
    'header-only',
    'wrong-count',
    'streaming-error',
  ])
    for (const format of ['csv', 'flatbuffers']) {
      await steer({ fault, times: 1 })
      const { status, text } = await send(dhaka(`${query}&format=${format}`))
      t.equal(status, 200, `${fault} ${format}`)
      t.not(text.length, 0)
    }
  await steer({ fault: 'all-null', times: 1 })
  const [empty] = await fetchWeatherApi(endpoint, { latitude: '23.8', longitude: '90.4', current: 'rain' })
  t.ok(Number.isNaN(empty?.current()?.variables(0)?.value()))
})
