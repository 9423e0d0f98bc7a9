// Without it lists of places could differ from the single answers, hide errors, or charge wrong units.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { quarterHourMs } from '../../src/common/calendar.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { type RequestOptions, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const start = '2026-11-21T06:05:00Z'
const [two, three] = ['district/3026,upazila/302672', 'district/3026,coords/23.81/90.41,upazila/302672']
const tiers = { ABOHAWA_QUOTA__TIERS__TEN: '10', ABOHAWA_TEST_PROVIDER__RETRIES: '0' }

const setUp = async (t: Test, env: Record<string, string> = {}) => {
  const clock = manualClock(start)
  const provider = await startProviderHere(t, undefined, start)
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env: { ...tiers, ...env } })
  return { clock, provider, gateway, get: gateway.get }
}

const bytesOf = async (gateway: TestGateway, path: string, headers: Record<string, string> = {}) => {
  const {
    statusCode,
    headers: given,
    body,
  } = await request(`${gateway.apiUrl}/api/v1${path}`, {
    headers: { 'x-api-key': gateway.keys.enterprise ?? '', ...headers },
  })
  return { status: statusCode, headers: given, bytes: Buffer.from(await body.arrayBuffer()) }
}

t.test('the bodies are those of the endpoints of one place, in the requested order', async t => {
  const { get } = await setUp(t)
  const list = await get(`/weather?places=${three}&lang=en`)
  const paths = three.split(',').map(place => `/weather/${place}?lang=en`)
  const each = await Promise.all(paths.map(path => get(path)))
  t.equal(list.status, 200)
  t.equal(list.text, `[${each.map(({ text }) => text).join()}]`)
  t.equal(list.headers['content-language'], 'en')
  const inBengali = await get(`/weather?places=${two}`)
  t.equal(inBengali.body[0].location.name, 'ঢাকা')

  const forecast = await get(`/forecast?places=${two}&days=3`)
  const days = await Promise.all(two.split(',').map(place => get(`/forecast/${place}?days=3`)))
  t.equal(forecast.text, `[${days.map(({ text }) => text).join()}]`)
  const [{ location, daily }] = (await get('/forecast?places=coords/23.81/90.41&days=2')).body
  t.hasStrict([location.type, location.latitude, daily.time.length], ['coords', 23.81, 2])
})

t.test('a place that is named twice counts and is answered once, and blanks are none of a place', async t => {
  const { get } = await setUp(t)
  const { body, headers } = await get('/weather?places=district/3026,+division/30,%20district/3026+')
  t.strictSame(
    body.map(({ location }: { location: { id: string } }) => location.id),
    ['3026', '30'],
  )
  t.equal(headers['x-ratelimit-cost'], '2')
})

t.test('every coding has the same bytes, and gzip none that is compressed for the request', async t => {
  const { gateway } = await setUp(t)
  const path = `/weather?places=${three},district/9999`
  const plain = await bytesOf(gateway, path)
  // The first gzip of a place is stored, and later ones are compressed.
  for (let turn = 0; turn < 3; turn++) {
    const gzip = await bytesOf(gateway, path, { 'accept-encoding': 'gzip, br' })
    t.equal(gzip.headers['content-encoding'], 'gzip')
    t.ok(gunzipSync(gzip.bytes).equals(plain.bytes))
    t.equal(gzip.headers.etag, plain.headers.etag)
    t.ok(gzip.bytes.length < plain.bytes.length / 2)
  }
  const br = await bytesOf(gateway, path, { 'accept-encoding': 'br' })
  t.equal(br.headers['content-encoding'], 'br')
  t.ok(brotliDecompressSync(br.bytes).equals(plain.bytes))
})

t.test('a list has one tag, which another body has not, and HEAD answers as GET', async t => {
  const { get, clock } = await setUp(t)
  const { headers } = await get(`/weather?places=${two}`)
  const { etag = '' } = headers
  const known = await get(`/weather?places=${two}`, { headers: { 'if-none-match': etag } })
  t.strictSame([known.status, known.text, known.headers['x-ratelimit-cost']], [304, '', '2'])
  for (const other of [`${two}&lang=en`, 'upazila/302672,district/3026', `${two},division/30`])
    t.not((await get(`/weather?places=${other}`)).headers.etag, etag, other)
  const head = await get(`/weather?places=${two}`, { method: 'HEAD' })
  t.hasStrict(head.headers, { etag, 'x-ratelimit-cost': '2', 'content-length': headers['content-length'] })
  clock.advance(quarterHourMs)
  const later = await get(`/weather?places=${two}`, { headers: { 'if-none-match': etag } })
  t.equal(later.status, 200, 'the next quarter-hour is another body')
})

t.test('it is right for as long as the first of its places, and as old as the oldest', async t => {
  const { get, clock } = await setUp(t)
  const first = await get('/weather/division/10')
  clock.advance(120_000)
  const fetched = await get(`/forecast?places=division/10,${two}`)
  t.equal(fetched.headers['last-modified'], first.headers['last-modified'])
  t.match(fetched.headers['cache-status'], /^abohawa; fwd=miss; ttl=\d+; detail="1 hit, 2 miss"$/)
  const again = await get(`/weather?places=division/10,${two}`)
  t.match(again.headers['cache-status'], /^abohawa; hit; ttl=\d+; detail="3 hit"$/)
  t.equal(again.headers['cache-control'], 'private, max-age=480', 'until the quarter-hour ends')
  const places = ['division/10', ...two.split(',')]
  const each = await Promise.all(places.map(place => get(`/forecast/${place}`)))
  const ages = each.map(({ headers }) => Number(headers['cache-control']?.split('=')[1]))
  t.equal(fetched.headers['cache-control'], `private, max-age=${Math.min(...ages)}`)
})

t.test('places that are not cached share one request to the provider', async t => {
  const { get, provider } = await setUp(t)
  const points = Array.from(
    { length: 100 },
    (_, i) => `coords/${(21 + Math.floor(i / 10) / 5).toFixed(1)}/${(89 + (i % 10) / 5).toFixed(1)}`,
  )
  const { status, body, headers } = await get(`/weather?places=${points}`)
  t.strictSame([status, body.length, headers['x-ratelimit-cost']], [200, 100, '100'])
  const { requests } = await provider.steer({})
  const loads = requests.filter(({ query }) => query.latitude !== undefined)
  t.strictSame(
    loads.map(({ latitudes }) => latitudes),
    [100],
  )
})

t.test('a place that can not be answered has its error in its position, and counts', async t => {
  const { get } = await setUp(t)
  const wrong = [
    'district/9999',
    'city/1',
    'district',
    'coords/23.81',
    'coords/1/90',
    'coords/x/90',
    'district/3026/2',
    '',
  ]
  const { status, body, headers } = await get(`/weather?places=district/3026,${wrong.join()}`)
  t.equal(status, 200)
  t.equal(body[0].location.id, '3026')
  t.strictSame(
    body.slice(1).map(({ code }: { code: string }) => code),
    [
      'place_not_found',
      'type_invalid',
      'place_invalid',
      'longitude_missing',
      'point_out_of_bounds',
      'degrees_invalid',
      'place_invalid',
      'place_invalid',
    ],
  )
  const alone = await get('/weather/district/9999')
  t.strictSame(body[1], alone.body, 'the body of the endpoint of one place')
  t.equal(headers['x-ratelimit-cost'], '9')
  t.match(headers['cache-control'], /max-age=\d\d?$/, 'a minute at most: the place may exist by then')
  const none = await get('/weather?places=district/9999')
  t.strictSame(
    [none.status, none.body[0].code, none.headers['last-modified']],
    [200, 'place_not_found', undefined],
  )
  t.equal(none.headers['cache-status'], 'abohawa; detail="1 place_not_found"')
})

t.test(
  'where the provider fails, what is cached is served, and with nothing at all the answer is 500',
  async t => {
    const { get, provider } = await setUp(t)
    await get('/weather/district/3026')
    await provider.steer({ fault: 'internal-error' })
    const some = await get('/weather?places=district/3026,coords/21.0/90.0')
    t.equal(some.status, 200)
    t.hasStrict(some.body, [{ location: { id: '3026' } }, { code: 'provider_failing' }])
    t.equal(some.headers['cache-control'], 'private, max-age=0')
    const nothing = await get('/weather?places=coords/22.0/90.0,coords/22.5/90.0')
    t.strictSame(
      [nothing.status, nothing.body.code, nothing.headers['x-ratelimit-cost']],
      [500, 'provider_failing', '2'],
    )
    t.ok(Number(nothing.headers['retry-after']) > 0)
  },
)

t.test('log, metrics and usage have the name of the list, and the log what it cost', async t => {
  const { gateway, get } = await setUp(t)
  await get(`/weather?places=${three}`)
  await get(`/forecast?places=${two}`)
  await get('/forecast?places=district/3026')
  await until('all are logged', () => gateway.logged.filter(({ msg }) => msg === 'answered').length === 3)
  t.match(
    gateway.logged.filter(({ msg }) => msg === 'answered'),
    [
      { endpoint: 'weather_places', status: 200, cost: 3, cache: /^fwd=miss; .*detail="3 miss"$/ },
      { endpoint: 'forecast_places', cost: 2 },
      { endpoint: 'forecast_places', cost: undefined },
    ],
  )
  t.equal(
    await gateway.metric(
      'http_server_request_duration_seconds_count{endpoint="forecast_places",status="200"}',
    ),
    2,
  )
})

t.test('a list that can not be read is refused as a whole, and takes one unit', async t => {
  const { gateway, get } = await setUp(t)
  const key = gateway.keys.ten ?? ''
  const many = Array.from({ length: 101 }, (_, i) => `district/${i}`).join()
  let left = 10
  for (const [path, code, error] of [
    ['/weather?places=', 'places_empty', /^places must name 1 to 100/],
    [`/weather?places=${many}`, 'places_too_many', /^places must name at most 100 .*, got 101$/],
    [
      `/forecast?places=${'district/3026,'.repeat(400)}`,
      'places_too_long',
      /^places must have at most 5000 characters, got 5600$/,
    ],
    [
      '/weather?places=district/3026&places=district/1',
      'parameter_repeated',
      /^places must be given only once, with commas between its values, as in places=district\/3026,/,
    ],
    [
      '/weather?places%5B0%5D=district/3026',
      'parameter_brackets',
      /^places must be sent without brackets, .*, got "places\[0\]"$/,
    ],
    [`/weather?places=${two}&lang=fr`, 'lang_invalid', /^lang must be bn or en, got "fr"$/],
    [`/forecast?places=${two}&days=9`, 'number_invalid', /^days must be an integer from 1 to 7, got "9"$/],
  ] as const) {
    const { status, body, headers } = await get(path, { key })
    left -= 1
    t.strictSame([status, body.code], [400, code])
    t.match(body.error, error)
    t.hasStrict(headers, { 'x-ratelimit-cost': '1', 'x-ratelimit-remaining': String(left) })
  }
})

t.test('without a list there is nothing at these paths', async t => {
  const { get } = await setUp(t)
  for (const path of [
    '/weather',
    '/forecast?days=3',
    '/weather?lang=fr&lang=bn',
    '/weather?place=district/3026',
  ]) {
    const { status, body, headers } = await get(path)
    t.hasStrict([status, body.code], [404, 'path_not_found'])
    t.match(
      body.error,
      /^there is nothing at "\/api\/v1\/(weather|forecast)"; .*\/weather\?places=, \/forecast\?places=/,
    )
    t.equal(headers['x-ratelimit-cost'], undefined)
  }
})

t.test('units are taken for all places or for none, and the 429 says how many are left', async t => {
  const { gateway, get, provider } = await setUp(t)
  const options: RequestOptions = { key: gateway.keys.ten ?? '' }
  const seven = [1, 2, 3, 4, 5, 6, 7].map(i => `coords/2${i % 7}/90`).join()
  const places = seven.replace('coords/20/90', 'coords/22.5/90')
  const first = await get(`/weather?places=${places}`, options)
  t.match(first.headers, { 'x-ratelimit-cost': '7', 'x-ratelimit-remaining': '3', ratelimit: /r=3;/ })
  const before = (await provider.steer({})).requests.length
  const refused = await get(
    '/weather?places=coords/24.5/90,coords/24.6/90,coords/24.7/90,coords/24.8/90',
    options,
  )
  t.match(refused, {
    status: 429,
    headers: { 'x-ratelimit-cost': '4', 'x-ratelimit-remaining': '3', 'retry-after': /^\d+$/ },
    body: {
      error: 'the request counts as 4, but the daily quota of this key has 3 of 10 requests left',
      ...{ code: 'quota_insufficient', limit: 10, remaining: 3, cost: 4, reset_at: /Z$/ },
    },
  })
  t.equal((await provider.steer({})).requests.length, before, 'nothing was loaded for it')
  t.hasStrict(
    gateway.logged.findLast(({ status }) => status === 429),
    { reason: 'quota_insufficient' },
    'the log does not call the day used up',
  )
  t.hasStrict((await get(`/weather?places=${three}`, options)).headers, { 'x-ratelimit-remaining': '0' })
  const exhausted = await get(`/weather?places=${two}`, options)
  t.hasStrict([exhausted.status, exhausted.body], [429, { code: 'quota_exhausted', remaining: 0, cost: 2 }])
  t.equal((await get('/weather/district/3026', options)).status, 429)
})

t.test('with quota.notModifiedCost a 304 gives back its part, of a list that of each place', async t => {
  const { gateway, get } = await setUp(t, { ABOHAWA_QUOTA__NOT_MODIFIED_COST: '0.5' })
  const key = gateway.keys.ten ?? ''
  const { etag = '' } = (await get(`/weather?places=${two}`)).headers
  const known = { key, headers: { 'if-none-match': etag } }
  const first = await get(`/weather?places=${two}`, known)
  t.strictSame(
    [first.status, first.headers['x-ratelimit-remaining'], first.headers['x-ratelimit-cost']],
    [304, '9', '1'],
  )
  t.match(first.headers.ratelimit, /r=9;/)
  const { headers } = await get('/weather/district/3026')
  const one = { key, headers: { 'if-none-match': headers.etag ?? '' } }
  const left = []
  for (let i = 0; i < 4; i++)
    left.push((await get('/weather/district/3026', one)).headers['x-ratelimit-remaining'])
  t.strictSame(left, ['8', '8', '7', '7'])
})

t.test('what costs nothing takes no unit meanwhile, and is not refused for want of units', async t => {
  const { gateway, get, provider } = await setUp(t, { ABOHAWA_QUOTA__NOT_MODIFIED_COST: '0' })
  const key = gateway.keys.ten ?? ''
  const list = `/weather?places=${two}`
  const tagOf = async (path: string) => (await get(path)).headers.etag ?? ''
  const [ofPlace, ofList] = [await tagOf('/weather/district/3026'), await tagOf(list)]
  const ask = async (path: string, etag: string, more = {}) => {
    const { status, headers } = await get(path, { key, headers: { 'if-none-match': etag, ...more } })
    return [status, headers['x-ratelimit-remaining'], headers['x-ratelimit-cost']]
  }
  for (let i = 0; i < 9; i++) await get('/locations/division/30', { key })
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      i === 10 ? ask('/weather/district/3026', '"old"') : ask('/weather/district/3026', ofPlace),
    ),
  )
  const statuses = all.map(([status]) => status)
  t.strictSame([statuses[10], statuses.filter(status => status === 304).length], [200, 19])
  t.strictSame(await ask(list, ofList), [304, '0', '0'])
  t.strictSame(await ask(list, '"old"'), [429, '0', '2'])
  const before = (await provider.steer({})).requests.length
  t.strictSame(
    await ask('/weather/coords/22.05/92.05', '*'),
    [429, '0', undefined],
    'memory has no weather there',
  )
  t.equal((await provider.steer({})).requests.length, before, 'and none is loaded for it')
  t.strictSame(await ask('/weather/district/999999', '*'), [429, '0', undefined])
})

t.test('what a gateway gives back another one has at once, and a stop loses none of it', async t => {
  const redis = await testRedis(t)
  const env = {
    ...redis.env,
    ABOHAWA_QUOTA__NOT_MODIFIED_COST: '0',
  }
  const [one, other] = [await setUp(t, env), await setUp(t, env)]
  const key = one.gateway.keys.ten ?? ''
  const { etag = '' } = (await one.get('/locations/division/30')).headers
  const answers = []
  for (let i = 0; i < 12; i++)
    answers.push(
      await (i % 2 ? one : other).get('/locations/division/30', { key, headers: { 'if-none-match': etag } }),
    )
  // The report of the one may be under way when the other takes its unit.
  const isRight = (left: string | undefined) => left === '10' || left === '9'
  t.ok(answers.every(({ status, headers }) => status === 304 && isRight(headers['x-ratelimit-remaining'])))
  await one.gateway.close()
  t.equal((await other.get('/locations/division/30', { key })).headers['x-ratelimit-remaining'], '9')
})

t.test('two gateways take the units of lists from one quota, exactly and never in part', async t => {
  const redis = await testRedis(t)
  const env = {
    ...redis.env,
    ABOHAWA_QUOTA__TIERS__TEN: '100',
  }
  const [one, other] = [await setUp(t, env), await setUp(t, env)]
  const key = one.gateway.keys.ten ?? ''
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => (i % 2 ? one : other).get(`/weather?places=${three}`, { key })),
  )
  const granted = answers
    .filter(({ status }) => status === 200)
    .map(({ headers }) => Number(headers['x-ratelimit-remaining']))
  t.strictSame(
    granted.sort((a, b) => b - a),
    Array.from({ length: 33 }, (_, i) => 97 - 3 * i),
  )
  const refused = answers.filter(({ status }) => status === 429)
  t.ok(refused.every(({ body }) => body.remaining === 1 && body.cost === 3))
  const last = await other.get('/weather?places=district/3026', { key })
  t.strictSame([last.status, last.headers['x-ratelimit-remaining']], [200, '0'])
})
