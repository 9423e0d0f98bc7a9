// Without it an oracle could be wrong, and hide the faults that it is for.

import t from 'tap'
import { decide } from '../../fuzz/oracle/parameters.ts'
import { degreesFrom, hasSameWeather, isAsRight, isInPlace } from '../../fuzz/oracle/provider-body.ts'
import { checkForecast, checkWeather, isPhysical, meantBy } from '../../fuzz/oracle/weather-body.ts'
import { words } from '../../fuzz/target.ts'
import { writeDocument } from '../../tools/provider/document.ts'
import { forecast } from '../../tools/provider/forecast.ts'
import { readForecastRequest } from '../../tools/provider/forecast-request.ts'
import { parametersIn } from '../../tools/provider/parameters.ts'
import { currentVariables, dailyVariables, hourlyVariables } from '../support/weather-contract.ts'

// The paths below /api/v1, by the expected status.
const decisions: Readonly<Record<number, string>> = {
  200: `/weather/district/3026 /weather/d%69strict/302%36?lang=en /weather/district/3026?LANG=fr&x=1&x=2
    /weather/district/3026?%FF=1 /weather/coords/20/93.0 /weather/coords/+20.000/087.5 /forecast/district/3026?days=7
    /forecast/district/3026?days=07 /locations?type=union&limit=100&offset=0 /locations?type=union&q=${'x'.repeat(100)}
    /locations?type=union&q=+${'%E0%A6%A2'.repeat(100)}%20 /locations/district/3026 /weather/district/dhaka /locations/district/DHAKA
    /forecast/district/3026?lang=fr&lang=fr /forecast/district/3026?lang=en&include=text
    /weather/coords/23/90?include=place,text /weather/district/3026?include=`,
  400: `/weather/district/3026?lang=fr /weather/district/3026?lang=en&lang=en /weather/district/3026?lang=%FF
    /weather/planet/3026 /weather/coords/23.8 /weather/coords/19.999/90 /weather/coords/23/93.0001 /weather/coords/2e1/90
    /weather/coords/23./90 /weather/coords/%30/90 /weather/coords/23.8%20/90 /weather/coords/23.8/%ff
    /forecast/district/3026?days=0 /forecast/district/3026?days=8 /forecast/district/3026?days=
    /forecast/district/3026?days=1.0 /locations /locations?type=union&limit=101 /locations?type=union&offset=-1
    /forecast/district/3026?lang=fr&include=text /weather/district/3026?include=place /weather/coords/23/90?include=text,
    /locations?type=union&q=${'x'.repeat(101)} /locations?type=union&q=%C0%AF
    /locations?type=union&division_id=1&division_id=1 /%zz`,
  404: '/weather/division/3026 /weather/planet/3026/ /locations/district/1 /locations/district /nothing /weather/union/durgapur',
}

t.test('a path and query have the status of the contract', async t => {
  for (const [status, paths] of Object.entries(decisions))
    for (const path of words(paths)) t.strictSame(decide(`/api/v1${path}`).statuses, [Number(status)], path)
})

const now = Date.parse('2026-11-21T06:07:00Z')
const answerAt = (temperature: number, dayOffset = 0) => {
  const series = (times: string[], names: readonly string[]) => ({
    time: times,
    ...Object.fromEntries(
      names.map(name => [name, times.map(() => (name.startsWith('temp') ? temperature : 1))]),
    ),
  })
  const steps = (begin: string, count: number, stepMs: number, length: number) =>
    Array.from({ length: count }, (_, i) =>
      new Date(Date.parse(begin) + i * stepMs).toISOString().slice(0, length),
    )
  const pressures = { pressure_msl: 1_010, surface_pressure: 1_009 }
  const current = Object.fromEntries(currentVariables.map(name => [name, 1]))
  return {
    current: { time: '2026-11-21T12:00', interval: 900, ...current, ...pressures },
    hourly: series(steps('2026-11-21T12:00Z', 48, 3_600_000, 16), hourlyVariables),
    daily: series(steps(`2026-11-${21 + dayOffset}`, 7, 86_400_000, 10), dailyVariables),
    utc_offset_seconds: 21_600,
  }
}

t.test('weather is for now, whole and possible', async t => {
  const check = (answer: ReturnType<typeof answerAt>, at = now) => checkWeather(answer, [at, at])
  check(answerAt(20))
  t.throws(() => check(answerAt(8191.9)), { message: /^weather outside of physical ranges/ })
  t.throws(() => check(answerAt(20, 1)), { message: /^weather for another time/ })
  t.throws(() => check(answerAt(20), now + 900_000), { message: /^weather for another time/ })
  t.throws(() => checkForecast(answerAt(20), [now, now], 6), {
    message: /^another number of steps than requested/,
  })
  t.throws(() => check({ ...answerAt(20), utc_offset_seconds: 0 }), {
    message: /^another offset than that of Dhaka/,
  })
  const impossible = { is_day: 0.5, temperature_2m: '20', relative_humidity_2m: 101, pressure_msl: 0 }
  for (const [name, value] of Object.entries(impossible)) t.equal(isPhysical(name, value), false, name)
  t.equal(isPhysical('temperature_2m', null), true)
  const said: [string, unknown, unknown][] = [
    ['relative_humidity_2m', 101, 100],
    ['relative_humidity_2m', 102, null],
    ['rain', -0.1, 0],
    ['rain', -0.2, null],
    ['weather_code', 4, null],
    ['temperature_2m', 20.5, 20.5],
    ['temperature_2m', '20.5', null],
  ]
  for (const [name, given, meant] of said) t.equal(meantBy(name, given), meant, `${name} ${given}`)
})

t.test('what a body of the provider says is read by its times', async t => {
  const query =
    'latitude=23.8&longitude=90.4&timezone=Asia/Dhaka&past_days=1&minutely_15=temperature_2m&hourly=temperature_2m&daily=temperature_2m_max'
  const request = readForecastRequest(parametersIn(query))
  if (!request) throw new Error('no coordinates')
  const document = await forecast(request, { seed: 1, now, run: undefined })
  const right = JSON.parse(writeDocument(document)) as Record<string, Record<string, unknown[]>>
  const at = (section: string, index: number) => ({
    time: right[section]?.time?.[index],
    temperature_2m: right[section]?.temperature_2m?.[index],
  })
  const answer = {
    current: { ...at('minutely_15', 40), interval: 900 } as Record<string, unknown>,
    hourly: { time: [right.hourly?.time?.[30]], temperature_2m: [right.hourly?.temperature_2m?.[30]] },
    daily: { time: [right.daily?.time?.[1]], temperature_2m_max: [right.daily?.temperature_2m_max?.[1]] },
  }
  t.equal(hasSameWeather(answer, right), true)
  t.equal(hasSameWeather({ ...answer, hourly: { ...answer.hourly, temperature_2m: [99] } }, right), false)
  t.equal(
    hasSameWeather({ ...answer, hourly: { ...answer.hourly, time: ['2020-01-01T00:00'] } }, right),
    false,
  )
  t.equal(hasSameWeather(answer, [right]), false)
  t.equal(isAsRight(Object.fromEntries(Object.entries(right).toReversed()), right), true)
  t.equal(isAsRight({ ...right, more: 1 }, right), false)
  const numbered = { ...right, location_id: 2 }
  t.equal(isAsRight(numbered, numbered), true)
  t.equal(isAsRight(right, numbered), false, 'without its number all places are in doubt')
  t.equal(isAsRight({ ...right, hourly: { ...right.hourly, temperature_2m: [] } }, right), false)
  t.equal(isInPlace({ ...right, hourly: {} }, right), true)
  for (const other of [{ latitude: 1 }, { hourly: { time: [[[[]]]] } }, { hourly: 'x'.repeat(1e6) }])
    t.equal(isInPlace({ ...right, ...other }, right), false)
  t.ok((degreesFrom(23.8, 90.4, right) ?? 9) < 0.2)
  t.equal(degreesFrom(23.8, 90.4, { latitude: -90, longitude: 0 }), 113.8)
  t.equal(degreesFrom(23.8, 90.4, { latitude: 'x' }), undefined)
})
