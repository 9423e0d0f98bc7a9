// Without it, a request through the pass-through could reach the provider unchecked, or weigh less than it costs.

import fc from 'fast-check'
import t from 'tap'
import { forwardedRequest } from '../../../src/operate/listener/passthrough.ts'
import { Refusal } from '../../../src/operate/listener/refusal.ts'
import { passthrough } from '../../../src/provider/open-meteo/passthrough.ts'
import { readForecastRequest } from '../../../tools/provider/forecast-request.ts'
import { parametersIn } from '../../../tools/provider/parameters.ts'
import { anyText } from '../../support/any-text.ts'

const forwarded = (target: string) => forwardedRequest(target, passthrough)

const names = (count: number) => Array.from({ length: count }, (_, i) => `v${i}`).join(',')
const weightOf = (query: string) => Number(forwarded(`/v1/forecast?${query}`).weight.toFixed(3))

t.test('the weight counts points, variables of all sections, models and days', async t => {
  const weights: [query: string, weight: number][] = [
    ['', 1],
    ['latitude=1&longitude=2', 1],
    ['latitude=1&longitude=2&apikey=x', 1],
    ['latitude=1&latitude=2,3&longitude=1,2,3', 3],
    ['latitude=1&longitude=1,2,3', 3],
    ['latitude=1&longitude=1&elevation=1,2,3,4', 4],
    ['latitude=1,,&longitude=1', 3],
    ['latitude=1&longitude=1&timezone=a,b,c', 1],
    [`latitude=1&hourly=${names(10)}&models=a,b,c`, 3],
    [`latitude=1,2&hourly=${names(10)}&models=a&models=b`, 4],
    [`latitude=1&hourly=${names(34)}&forecast_days=16`, 3.886],
    [`latitude=1&hourly=${names(20)}&forecast_days=0`, 2],
    [`latitude=1&hourly=${names(10)}&forecast_days=1&forecast_hours=672`, 2],
    [`latitude=1&hourly=${names(10)}&forecast_days=1&past_hours=648`, 2],
    [`latitude=1&minutely_15=${names(10)}&forecast_days=1&forecast_minutely_15=2688`, 2],
    [`latitude=1&minutely_15=${names(10)}&forecast_days=1&past_minutely_15=2592`, 2],
    [`latitude=1&hourly=${names(10)}&start_date=2026-01-01&end_date=2026-01-28`, 2],
    [`latitude=1&hourly=${names(10)}&start_date=2026-01-08,2026-01-01&end_date=2026-01-14,2026-01-28`, 4],
    [`latitude=1&hourly=${names(10)}&start_hour=2026-01-01T23:00&end_hour=2026-01-28T01:00`, 2],
    [`latitude=1&hourly=${names(20)}&start_date=2026-01-01`, 2],
    [`latitude=1&hourly=${names(10)}&domains=a,b`, 2],
    [`latitude=1&six_hourly=${names(20)}`, 2],
  ]
  for (const [query, weight] of weights) t.equal(weightOf(query), weight, query)
  t.equal(forwarded('/data/ecmwf_ifs/static/meta.json').weight, 0)
  t.equal(forwarded(`/v1/ensemble?latitude=1&hourly=${names(10)}&models=a,b`).weight, 102)
  t.equal(forwarded(`/v1/flood?latitude=1&daily=${names(10)}&ensemble=true`).weight, 51)
})

t.test('whatever is asked for, it weighs here what it weighs at the simulated provider', async t => {
  const some = (...from: string[]) => fc.option(fc.subarray(from, { minLength: 1 }), { nil: undefined })
  const names = ['temperature_2m', 'weather_code', 'rain', 'cloud_cover', 'is_day', 'snowfall', 'showers']
  const queries = fc.record({
    latitude: fc.array(fc.integer({ min: 21, max: 26 }), { minLength: 1, maxLength: 12 }),
    current: some(...names),
    hourly: some(...names),
    minutely_15: some(...names),
    daily: some('weather_code', 'temperature_2m_max', 'temperature_2m_min'),
    forecast_days: fc.option(fc.integer({ min: 0, max: 16 }), { nil: undefined }),
    past_days: fc.option(fc.integer({ min: 0, max: 92 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(queries, fc.boolean(), (given, isRepeated) => {
      const longitude = given.latitude.map(() => 90)
      const query = Object.entries({ ...given, longitude }).flatMap(([name, value]) => {
        if (value === undefined) return []
        if (!Array.isArray(value)) return `${name}=${value}`
        return isRepeated ? value.map(each => `${name}=${each}`) : `${name}=${value.join('%2C')}`
      })
      const atProvider = readForecastRequest(parametersIn(query.join('&')))?.weight ?? 0
      // A request counts as one at least.
      t.equal(weightOf(query.join('&')), Number(Math.max(1, atProvider).toFixed(3)), query.join('&'))
    }),
  )
})

t.test('all APIs and files are let through, and the page of a model run alone weighs nothing', async t => {
  for (const api of ['forecast', 'archive', 'air-quality', 'marine', 'dwd-icon', 'added-later'])
    t.equal(forwarded(`/v1/${api}?latitude=1&longitude=2&hourly=${names(20)}`).weight, 2, api)
  for (const file of ['ecmwf_ifs/static/other.json', 'ecmwf_ifs/2026/01/31/0000Z.om'])
    t.equal(forwarded(`/data/${file}`).weight, 1, file)
  for (const path of ['/v2/forecast', '/v1/a/b', '/v1/', '/data/', '/data/.git/x', '/data/a/../b'])
    t.throws(() => forwarded(`${path}?latitude=1&longitude=2`), /^the (path|parameters) must be /, path)
})

t.test(
  'whatever comes in, what goes out is a plain path, in a form that gets the same verdict again',
  async t => {
    let passed = 0
    const parts = ['v1', 'forecast', 'data', 'ecmwf_ifs', 'static', 'meta.json', '..', '.', '', 'v1/forecast']
    const part = fc.oneof(fc.constantFrom(...parts), anyText({ maxLength: 6 }))
    const encoded = (text: string, how: number) =>
      how === 0
        ? text
        : how === 1
          ? encodeURIComponent(text.toWellFormed())
          : [...Buffer.from(text)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')
    const segment = fc.tuple(part, fc.nat(2)).map(([text, how]) => encoded(text, how))
    const names = ['latitude', 'longitude', 'hourly', 'models', 'apikey', 'forecast_days', 'start_date']
    const name = fc.constantFrom(...names)
    const pair = fc
      .tuple(name, fc.oneof(fc.string(), fc.nat(20).map(String)))
      .map(([key, value]) => `${key}=${value}`)
    const path = fc.oneof(
      fc.constant('/v1/forecast'),
      fc.array(segment, { maxLength: 5 }).map(segments => `/${segments.join('/')}`),
    )
    const target = fc
      .tuple(path, fc.array(pair, { maxLength: 5 }))
      .map(([path, pairs]) => `${path}?${pairs.join('&')}`)
    // Each of these is let through, whatever the random ones are.
    const examples: [string][] = [
      ['/v1/forecast?latitude=1&longitude=2&hourly=a,b'],
      ['/v1/archive?latitude=1&latitude=2&longitude=%33&start_date=2026-01-01'],
      ['/v1/forecast?hourly=%E0%A6%85+%20&models='],
      ['/data/ecmwf_ifs/static/meta.json?'],
      ['/data/ecmwf_ifs/2026/meta.json?apikey=x'],
    ]
    fc.assert(
      fc.property(target, target => {
        let first: ReturnType<typeof forwarded>
        try {
          first = forwarded(target)
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
          // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
          return error.message.length < 1_000 && !/[\x00-\x1f\x7f]/.test(error.message)
        }
        passed += 1
        const { path, query } = first
        const again = forwarded(`${path}?${query}`)
        return (
          /^\/(v1|data)(\/[\w-][\w.-]*)+$/.test(path) &&
          /^[\w.~*+%&=,-]*$/.test(query) &&
          !/apikey=/.test(query) &&
          again.query === query &&
          again.weight === first.weight &&
          (path.startsWith('/data') || first.weight >= 1)
        )
      }),
      { numRuns: 5_000, examples },
    )
    t.ok(passed >= examples.length, `${passed} were let through`)
  },
)

t.test('what is quoted of a request is short, printable and without the password of a URL', async t => {
  t.throws(() => forwarded('/v1/a\u001b[31m\u2028'), { message: /"\/v1\/a\\u001b\[31m\\u2028"/ })
  t.throws(() => forwarded(`/${'x'.repeat(61)}`), { message: new RegExp(`"/${'x'.repeat(59)}…"`) })
  t.throws(() => forwarded(`/v1/forecast?hourly=a&redis://me:secret@host=1`), { message: /^(?!.*secret)/s })
})
