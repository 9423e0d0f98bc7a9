// Without it a test key could reach the provider, change from day to day, or give errors unlike the real ones.

import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { createKey, testKeyPrefix } from '../../src/keys/key-form.ts'
import { manualClock, noon } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { type Answer, startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t)
const redis = await testRedis(t)
const onRedis = redis.env
const place = '/weather/district/3026'
const list = '/locations?type=division'

const setUp = async (t: Test, env: Record<string, string> = {}) => {
  await provider.steer({ reset: true })
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const { id, key } = await gateway.administration.createKey('Tests', 'test_key')
  return {
    ...{ ...gateway, clock, id, key },
    get: (path: string, headers: Record<string, string> = {}, method = 'GET') =>
      gateway.get(path, { key, headers, method }),
    live: gateway.get,
  }
}
/** What differs between two requests in any case, or by the key. */
const own = /^(?:date|x-request-id|x-test-data|vary|content-length)$/
const headersOf = ({ headers }: Answer) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !own.test(name)))

for (const [store, env] of [
  ['embedded', {}],
  ['redis', onRedis],
] as const)
  t.test(
    `${store}: weather of a test key is the same on every day, and costs the provider nothing`,
    async t => {
      const { get, live, clock, metric, settled, logged, id, administration } = await setUp(t, env)
      const first = await get(place)
      t.match(first, {
        status: 200,
        headers: {
          'x-test-data': 'fixed',
          'x-ratelimit-limit': '1000',
          'x-ratelimit-remaining': '999',
          'cache-control': 'private, max-age=900',
          'last-modified': 'Tue, 14 Apr 2026 06:00:00 GMT',
          'cache-status': /^abohawa; hit; ttl=3600; detail=test; key="/,
        },
        body: {
          location: { id: '3026' },
          current: { time: '2026-04-14T12:00', is_day: 1 },
          timezone: 'Asia/Dhaka',
        },
      })
      const forecast = await get('/forecast/district/3026?days=3')
      t.strictSame(forecast.body.daily.time, ['2026-04-14', '2026-04-15', '2026-04-16'])
      t.strictSame(forecast.body.daily.temperature_2m_max, first.body.daily.temperature_2m_max.slice(0, 3))
      const point = await get('/weather/coords/23.71/90.41')
      t.strictSame(point.body.current, first.body.current, 'a point of the same cell')
      t.notSame((await get('/weather/coords/22.3/91.8')).body.current, first.body.current)
      clock.advance(40 * 86_400_000 + 5 * 3_600_000)
      const later = await get(place)
      t.equal(later.text, first.text)
      t.equal(later.headers.etag, first.headers.etag)
      const unchanged = await get(place, { 'if-none-match': first.headers.etag ?? '' })
      t.equal(unchanged.status, 304)
      // A browser that has kept the weather asks again for an error.
      for (const { headers } of [first, unchanged])
        t.match(headers.vary, /^accept-encoding, x-api-key, ?x-test-error$/)
      t.hasStrict(await get(place, { 'accept-encoding': 'gzip' }), {
        status: 200,
        headers: { 'content-encoding': 'gzip' },
      })
      const several = await get('/weather?places=district/3026,coords/22.3/91.8')
      t.strictSame(several.body[0].current, first.body.current, 'one of several places')
      t.hasStrict(several.headers, { 'x-test-data': 'fixed', 'x-ratelimit-cost': '2' })
      t.has(await get(place, {}, 'HEAD'), { status: 200, text: '', headers: { 'x-test-data': 'fixed' } })
      await settled()
      t.equal((await provider.state()).calls, 0)
      for (const name of [
        'abohawa_cache_memory_entries',
        'abohawa_cache_reads_total{outcome="hit",source="memory"}',
        'http_server_request_duration_seconds_count{endpoint="weather",status="200"}',
      ])
        t.equal(await metric(name), 0, name)
      t.equal(await metric('abohawa_test_key_requests_total{status="200"}'), 8)
      t.equal(await metric('abohawa_test_key_requests_total{status="304"}'), 1)
      t.hasStrict(logged.filter(({ endpoint }) => endpoint === 'weather')[0], { tier: 'test_key', keyId: id })
      t.hasStrict(await administration.showKey(id), { test: true, tier: 'test_key' })

      clock.set(noon)
      const real = await live(place)
      t.hasStrict(real.headers, { 'x-test-data': undefined, vary: 'accept-encoding, x-api-key' })
      t.not(real.body.current.time, first.body.current.time)
      t.equal((await provider.state()).calls, 1, 'a live key has real weather')
      t.equal((await get(place)).text, first.text)
    },
  )

t.test('places are the real ones', async t => {
  const { get, live } = await setUp(t)
  for (const path of [
    `${list}&q=dhaka`,
    '/locations/district/3026',
    '/locations/district/9999',
    '/nothing',
  ]) {
    const [ofTest, ofLive] = [await get(path), await live(path)]
    t.equal(ofTest.text, ofLive.text)
    t.equal(ofTest.status, ofLive.status)
    t.equal(ofTest.headers['x-test-data'], 'fixed')
  }
})

t.test(
  'an error on demand is the real one, with its status, body, headers and figures of the quota',
  async t => {
    const { get, live, administration } = await setUp(t, { ABOHAWA_QUOTA__TIERS__SAME: '1000' })
    // As much of its quota is used.
    const { key } = await administration.createKey('Live', 'same')
    const { key: used } = await administration.createKey('Live', 'same', { limit: 1 })
    const revoked = await administration.createKey('Live', 'same')
    await administration.revokeKey(revoked.id)
    await live(list, { key: used })
    const reals: [string, () => Promise<Answer>][] = [
      ['place_not_found', () => live('/weather/district/9999', { key })],
      ['type_invalid', () => live('/weather/country/50', { key })],
      ['method_not_allowed', () => live(list, { key, method: 'POST' })],
      ['lang_invalid', () => live(`${place}?lang=fr`, { key })],
      ['key_missing', () => live(list, { key: null })],
      ['key_wrong_prefix', () => live(list, { key: 'sk_live_abc' })],
      ['key_revoked', () => live(list, { key: revoked.key })],
      ['provider_failing', () => live('/weather/coords/21/90', { key })],
      ['path_not_found', () => live('/alerts', { key })],
    ]
    await provider.steer({ fault: 'internal-error' })
    for (const [code, ask] of reals) {
      const [demanded, real] = [await get(place, { 'x-test-error': code }), await ask()]
      t.equal(real.body.code, code)
      t.equal(demanded.status, real.status, code)
      t.equal(demanded.text, real.text)
      const counts = demanded.headers['x-ratelimit-remaining'] !== '0'
      // The test key has paid for those that take no unit too.
      const hidden = {
        ...(counts && { 'x-ratelimit-remaining': '', ratelimit: '' }),
        // A failure may know when the next attempt is worth while.
        ...(real.status === 500 && { 'retry-after': '' }),
      }
      t.strictSame({ ...headersOf(demanded), ...hidden }, { ...headersOf(real), ...hidden }, code)
      t.hasStrict(demanded.headers, { 'x-test-data': 'fixed', vary: 'x-test-error' })
    }
    await provider.steer({ fault: 'none' })
    const [exhausted, real] = [
      await get(list, { 'x-test-error': 'quota_exhausted' }),
      await live(list, { key: used }),
    ]
    const fields = { error: 'the daily quota of 1000 requests of this key is exhausted', limit: 1_000 }
    t.strictSame(exhausted.body, { ...real.body, ...fields })
    t.equal(exhausted.status, 429)
    t.hasStrict(headersOf(exhausted), {
      'x-ratelimit-remaining': '0',
      ratelimit: real.headers.ratelimit,
      'retry-after': real.headers['retry-after'],
    })
    t.equal(
      (await get(list)).headers['x-ratelimit-remaining'],
      String(1_000 - reals.length - 2),
      'each took a unit',
    )
  },
)

t.test('limits on demand agree in body and headers, as the real ones do', async t => {
  const { get, live, administration, clock } = await setUp(t)
  const ask = (path: string, code: string) => get(path, { 'x-test-error': code })
  const { id, key } = await administration.createKey('Live', 'free')
  await administration.setKey(id, { rates: { perSecond: 1 } })
  await live(list, { key })
  const [demanded, real] = [await ask(list, 'rate_limited'), await live(list, { key })]
  t.strictSame(demanded.body, real.body)
  t.equal(Date.parse(demanded.body.reset_at), clock.now() + 1_000)
  const behindDay = ({ headers }: Answer) =>
    [headers['ratelimit-policy'], headers.ratelimit].map(line => line?.replace(/^[^,]+/, ''))
  t.strictSame(behindDay(demanded), behindDay(real))
  t.strictSame(behindDay(demanded), [', "second";q=1;w=1', ', "second";r=0;t=1'])

  const { id: idOfMinute, key: ofMinute } = await administration.createKey('Tests', 'test_key')
  await administration.setKey(idOfMinute, { rates: { perMinute: 30 } })
  t.match(await live(list, { key: ofMinute, headers: { 'x-test-error': 'rate_limited' } }), {
    body: { policy: 'minute', limit: 30 },
    headers: { 'retry-after': '2', ratelimit: /, "minute";r=0;t=2$/ },
  })

  const three = '/weather?places=district/3026,district/2015,district/1004'
  for (const [path, cost] of [
    [three, 3],
    ['/weather?places=district/3026', 2],
    [place, 2],
  ] as const) {
    const { body, headers } = await ask(path, 'quota_insufficient')
    t.match(body, {
      cost,
      remaining: 1,
      error: new RegExp(`^the request counts as ${cost}, .* 1 of 1000 requests left$`),
    })
    t.hasStrict(headers, { 'x-ratelimit-cost': String(cost), 'x-ratelimit-remaining': '1' })
  }
  t.hasStrict(await ask(three, 'quota_exhausted'), {
    body: { cost: 3, remaining: 0 },
    headers: { 'x-ratelimit-cost': '3' },
  })
})

t.test(
  'every code of the description can be had, on any path, and none is a failure of the gateway',
  async t => {
    const { get, live, metric, logged, administration } = await setUp(t)
    const description = JSON.parse(readFileSync('docs/openapi.json', 'utf8'))
    const responses = Object.values<{
      content: { 'application/json': { examples: Record<string, object> } }
    }>(description.components.responses)
    const codes = responses.flatMap(({ content }) => Object.keys(content['application/json'].examples))
    t.ok(codes.length > 50)
    for (const code of codes) {
      const { body, status, headers } = await get(place, { 'x-test-error': code })
      t.equal(body.code, code)
      t.equal(headers['retry-after'] !== undefined, status === 429 || status === 500, code)
    }
    t.match(await get('/nowhere', { 'x-test-error': 'provider_timeout' }), { status: 500 })
    const { key, id } = await administration.createKey('Tests', 'test_key')
    await administration.setKey(id, { restrictions: { endpoints: ['weather'] } })
    const refused = await live(list, { key, headers: { 'x-test-error': 'provider_timeout' } })
    t.equal(refused.status, 403, 'what the key may not do is said first')
    for (const [given, shown] of [
      ['quota_used_up', '"quota_used_up"'],
      ['reference_busy', '"reference_busy"'],
      [createKey(), '"svc_live_…"'],
      ['__proto__', '"__proto__"'],
    ])
      t.hasStrict(await get(list, { 'x-test-error': given ?? '' }), {
        status: 400,
        body: {
          error: `x-test-error must be an error code that /docs lists, such as quota_exhausted, got ${shown}`,
          code: 'test_error_unknown',
        },
      })
    t.equal((await get(list, { 'x-test-error': '' })).status, 200)
    t.strictSame(
      logged.filter(({ level }) => Number(level) > 30),
      [],
    )
    t.equal(await metric('http_server_request_duration_seconds_count{endpoint="weather",status="500"}'), 0)
    t.ok(((await metric('abohawa_test_key_requests_total{status="500"}')) ?? 0) > 15)
  },
)

t.test('other keys ignore the header', async t => {
  const { live } = await setUp(t)
  const headers = { 'x-test-error': 'quota_exhausted' }
  t.match(await live(list, { headers }), { status: 200, headers: { 'x-test-data': undefined } })
  t.hasStrict(await live(list, { headers, key: null }), { status: 401, body: { code: 'key_missing' } })
})

t.test('a test key that is unknown, mistyped, revoked or used up is refused as any other', async t => {
  const { get, live, id, administration } = await setUp(t)
  t.has(await live(list, { key: createKey(testKeyPrefix) }), { status: 401, body: { code: 'key_unknown' } })
  t.hasStrict(await live(list, { key: 'svc_test_abc' }), { status: 401, body: { code: 'key_malformed' } })
  const url = await live(`${list}&key=${createKey(testKeyPrefix)}`, { key: null })
  t.match(url.body.error, /, not in the URL$/)
  const small = await administration.createKey('Tests', 'test_key', { limit: 2 })
  const statuses = []
  for (let i = 0; i < 4; i++) statuses.push((await live(place, { key: small.key })).status)
  t.strictSame(statuses, [200, 200, 429, 429])
  const { key: next } = await administration.rotateKey(id, 0)
  t.match(next, /^svc_test_/)
  t.hasStrict(await live(place, { key: next }), { status: 200, headers: { 'x-test-data': 'fixed' } })
  await administration.revokeKey(small.id)
  await t.rejects(administration.setKey(id, { tier: 'free' }), {
    message: /is a test key; create another key/,
  })
  t.equal((await get('/nothing')).status, 401, 'the key before the rotation')
})

t.test('two gateways on one Redis count a test key together, and answer it alike', async t => {
  const prefix = { ABOHAWA_REDIS__PREFIX: `${redis.prefix}two:` }
  const one = await setUp(t, { ...onRedis, ...prefix })
  const other = await setUp(t, { ...onRedis, ...prefix })
  const here = await one.get(place)
  const there = await other.live(place, { key: one.key })
  t.equal(there.text, here.text)
  t.equal(there.headers.etag, here.headers.etag)
  t.strictSame(
    [here, there].map(({ headers }) => headers['x-ratelimit-remaining']),
    ['999', '998'],
  )
})

t.test('requests of test keys are in no metric of admission', async t => {
  const { get, live, metric, administration } = await setUp(t)
  const terms = { rates: { perSecond: null, burst: null, perMinute: 1 } }
  const { key, id } = await administration.createKey('Tests', 'test_key')
  await administration.setKey(id, { ...terms, restrictions: { endpoints: ['locations'] } })
  const small = await administration.createKey('Tests', 'test_key', { limit: 1 })
  const statuses = [(await get(list)).status]
  for (const given of [key, key, small.key, small.key])
    statuses.push((await live(place, { key: given })).status)
  t.strictSame(statuses, [200, 403, 429, 200, 429])
  for (const decision of ['allowed', 'rate_limited', 'exhausted', 'endpoint-not-allowed'])
    t.notOk(await metric(`abohawa_admissions_total{decision="${decision}"}`), decision)
  t.notOk(await metric('abohawa_rate_limited_total{policy="minute"}'))
  for (const percent of [80, 100])
    t.notOk(await metric(`abohawa_keys_near_limit_total{percent="${percent}"}`))
})
