// Without it a request could ask for the wrong weather, weigh more than counted, or refuse a good response.

import t from 'tap'
import { hourMs } from '../../../src/common/calendar.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { elementsOf } from '../../../src/provider/open-meteo/decode.ts'
import { maxPointsPerRequest, weightOf } from '../../../src/provider/open-meteo/limits.ts'
import { boundsFor, pathFor, weightOfPoint } from '../../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../../src/weather/cell.ts'
import { horizonFor } from '../../../src/weather/horizon.ts'
import { freeLimits } from '../../../tools/provider/limits.ts'
import { startProvider } from '../../support/provider.ts'
import { openMeteo } from '../provider-set-up.ts'

const grid = createGrid(0.1)

t.test('one question for all cells, in their order, with the variables of every section', async t => {
  const cells = [grid.cellOf(23.81, 90.41), grid.cellOf(20, 93)]
  const path = pathFor(cells, { quarterHours: 54, days: 9 }, 'Asia/Dhaka')
  const { pathname, searchParams } = new URL(path, 'http://provider')
  t.equal(pathname, '/v1/forecast')
  t.hasStrict(Object.fromEntries(searchParams), {
    latitude: '23.8,20',
    longitude: '90.4,93',
    timezone: 'Asia/Dhaka',
    past_days: '1',
    forecast_days: '9',
    forecast_minutely_15: '54',
  })
  const counts = ['minutely_15', 'hourly', 'daily'].map(name => searchParams.get(name)?.split(',').length)
  t.strictSame(counts, [15, 11, 4], 'thirty variables, which weigh 3.0')
})

t.test('a point weighs by its variables and its days, and never less than 1', async t => {
  for (const [variables, days, weight] of [
    [1, 1, 1],
    [10, 14, 1],
    [15 + 4, 7, 1.9],
    [15 + 15 + 4, 7, 3.4],
    [15 + 15 + 4, 14, 3.4],
    [15 + 15 + 4, 16, 3.89],
    [10, 28, 2],
    [1, 92 + 16, 1],
  ] as const)
    t.equal(Number(weightOf({ variables, days }).toFixed(2)), weight, `${variables} variables, ${days} days`)
  t.equal(weightOf({ variables: 10, days: 7, models: 3 }), 3, 'every model counts them again')
  t.equal(weightOfPoint(horizonFor(13 * hourMs, 48)), 3, 'the gateway’s own')
  t.equal(weightOfPoint({ quarterHours: 400, days: 13 }), 3)
  t.equal(
    weightOfPoint({ quarterHours: 54, days: 14 }).toFixed(3),
    '3.214',
    'the day that is past counts too',
  )
})

t.test('an operator may pass each parameter of the provider’s APIs, at its weight', async t => {
  const { passthrough } = openMeteo
  t.hasStrict(passthrough, {
    ...{ paths: ['/v1/<API>', '/data/<file>'], examplePath: '/v1/forecast', keyParameter: 'apikey' },
  })
  const { lists = [], counts = [], dates = [], choices = [] } = passthrough.parametersOf('/v1/x') ?? {}
  t.strictSame(
    [lists, counts, dates, choices].map(names => names.toSorted().join(' ')),
    [
      'current daily domains elevation hourly latitude location_id longitude minutely_15 models monthly six_hourly timezone weekly',
      'forecast_days forecast_hours forecast_minutely_15 past_days past_hours past_minutely_15',
      'end_date end_hour end_minutely_15 start_date start_hour start_minutely_15',
      'azimuth cell_selection disable_bias_correction ensemble format length_unit precipitation_unit temperature_unit temporal_resolution tilt timeformat wind_speed_unit',
    ],
  )
  const hourly = Array.from({ length: 14 }, (_, i) => `v${i}`).join(',')
  for (const [name, given, weight] of [
    ['past_days', '21', 2.8],
    ['forecast_minutely_15', '2688', 2.8],
    ['forecast_minutely_15', '2689', 2.9],
  ] as const) {
    const parameters = new Map([
      ['hourly', hourly],
      [name, given],
    ])
    t.equal(passthrough.weightOf('/v1/forecast', parameters).toFixed(6), weight.toFixed(6), name)
  }
})

t.test('without configuration a gateway spends what the free service allows', async t => {
  const configOf = (env: Record<string, string>) => loadConfig({ files: [], env }).provider
  const { perMinute, perHour, perDay } = configOf({}).budget
  t.strictSame({ minute: perMinute, hour: perHour, day: perDay }, freeLimits)
  t.strictSame(freeLimits, { minute: 600, hour: 5_000, day: 10_000 })
  const most = (points: number) => configOf({ ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: String(points) })
  t.strictSame(openMeteo.keyHeaders('secret'), { 'x-api-key': 'secret' })
  t.equal(openMeteo.maxCellsPerRequest, maxPointsPerRequest)
  t.equal(openMeteo.weightOfFailure, 1)
  t.equal(most(maxPointsPerRequest).maxPointsPerRequest, 1_000)
  t.throws(() => most(maxPointsPerRequest + 1), { code: 'bad_input' })
})

t.test('a response has room to spare, also with white space in between, and at most 64 MiB', async t => {
  const provider = await startProvider(t)
  for (const horizon of [horizonFor(1, 1), horizonFor(13 * hourMs, 48), horizonFor(48 * hourMs, 168)]) {
    for (const points of [1, 10]) {
      const cells = Array.from({ length: points }, (_, i) => grid.cellOf(22 + i / 10, 90))
      const text = await (await fetch(provider.url + pathFor(cells, horizon, 'Asia/Dhaka'))).text()
      const bounds = boundsFor(points, horizon)
      t.ok(text.length * 4 < bounds.bytes, `${text.length} of ${bounds.bytes} bytes`)
      const spaced = JSON.stringify(JSON.parse(text), null, 2)
      t.ok(spaced.length < bounds.bytes, `${spaced.length} of ${bounds.bytes} bytes with white space`)
      t.equal((await Array.fromAsync(elementsOf([Buffer.from(spaced)], bounds))).length, points)
    }
    t.equal(boundsFor(1_000, horizon).bytes, 64 << 20)
  }
})
