// Without it a restricted key could work from another origin, address or endpoint, or a refusal could cost units.

import t, { type Test } from 'tap'
import type { GivenTerms } from '../../src/keys/key-terms.ts'
import { startProvider } from '../support/provider.ts'
import { type RequestOptions, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
const page = 'https://app.example.org'
const path = '/weather/district/3026'

const start = async (t: Test, env: Record<string, string> = {}) => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.1',
      ABOHAWA_SERVER__CORS__ORIGINS: `${page},https://other.example.org`,
      // What is logged of an address has nothing to do with what a key is bound to.
      ABOHAWA_LOG__CLIENT_ADDRESS: 'none',
      ...env,
    },
  })
  const keyWith = async (terms: GivenTerms) => {
    const { id, key } = await gateway.administration.createKey('Bound', 'free')
    await gateway.administration.setKey(id, terms)
    return { id, key }
  }
  const get = (key: string, headers: Record<string, string>, given = path, more: RequestOptions = {}) =>
    gateway.get(given, { key, headers: { 'x-forwarded-proto': 'https', ...headers }, ...more })
  return { gateway, keyWith, get }
}

t.test('a list that a key may not ask for takes no unit, and one that it may ask for all', async t => {
  const { keyWith, get } = await start(t)
  const { key } = await keyWith({ restrictions: { origins: [page] } })
  const list = '/weather?places=district/3026,division/30,upazila/302672'
  const refused = await get(key, {}, list)
  const said = (name: string) => refused.headers[`x-ratelimit-${name}`]
  t.hasStrict([refused.status, said('remaining'), said('cost')], [403, '100', '0'])
  const good = await get(key, { origin: page }, list)
  t.hasStrict([good.status, good.headers['x-ratelimit-remaining']], [200, '97'])
})

t.test('a key of web pages is refused without their origin, which the page can read', async t => {
  const { gateway, keyWith, get } = await start(t)
  const { id, key } = await keyWith({ restrictions: { origins: [page, 'https://*.shop.example'] } })
  const good = await get(key, { origin: page })
  t.hasStrict(good, { status: 200, headers: { 'access-control-allow-origin': page } })
  t.match(await get(key, { origin: 'https://dhaka.shop.example' }), { status: 200 })
  const origin = 'https://other.example.org'
  const other = await get(key, { origin })
  t.match(other, {
    status: 403,
    headers: {
      'access-control-allow-origin': origin,
      'access-control-expose-headers': /x-ratelimit-remaining/,
      'x-ratelimit-remaining': '98',
      ratelimit: '"daily";r=98;t=43200',
      'cache-control': 'no-store',
    },
    body: {
      error: `with this key the header origin must be ${page}, https://*.shop.example, got "${origin}"`,
      code: 'key_origin_not_allowed',
    },
  })
  const missing = await get(key, {})
  t.match(missing, {
    status: 403,
    body: { error: /^with this key the header origin must be h.*, got none$/ },
  })
  t.hasStrict(await get(key, {}, path, { method: 'HEAD' }), { status: 403, text: '' })
  t.match(await get(key, {}, path, { method: 'POST' }), { status: 403 }, 'before the method is looked at')
  t.match(await get(key, {}, '/nowhere'), { status: 403 }, 'and before the path')
  t.match(await get(key, { origin: page }, '/nowhere'), { status: 404 })
  const preflight = { origin: page, 'access-control-request-method': 'GET' }
  t.match(
    await gateway.get(path, {
      key: null,
      method: 'OPTIONS',
      headers: { 'x-forwarded-proto': 'https', ...preflight },
    }),
    { status: 204 },
  )
  const { usedToday } = await gateway.administration.showKey(id)
  t.equal(usedToday, 3, 'a refusal takes no unit, and a 404 does')
  t.equal(await gateway.metric('abohawa_admissions_total{decision="origin-not-allowed"}'), 5)
  t.equal(
    await gateway.metric('http_server_request_duration_seconds_count{endpoint="weather",status="403"}'),
    3,
  )
  const lines = gateway.logged.filter(({ reason }) => reason === 'origin-not-allowed')
  t.hasStrict(lines[0], { status: 403, keyId: id, endpoint: 'weather' })
  t.equal(lines.length, 5)
})

t.test('a key of addresses is held against the client that the trusted proxy names', async t => {
  const { gateway, keyWith, get } = await start(t)
  const { key } = await keyWith({ restrictions: { addresses: ['203.0.113.0/24', '2001:db8::/32'] } })
  const from = (...hops: string[]) => get(key, { 'x-forwarded-for': hops.join(', ') })
  for (const hops of [
    ['203.0.113.7'],
    ['::ffff:203.0.113.7'],
    ['2001:db8:5::1'],
    ['203.0.113.7:51234'],
    ['8.8.8.8', '203.0.113.7'],
    ['203.0.113.7', '127.0.0.1'],
  ])
    t.equal((await from(...hops)).status, 200, hops.join(', '))
  const sentence = (address: string) =>
    `this key can't be used from the address "${address}"; ask the operator which addresses it is for`
  for (const [hops, address] of [
    [['203.0.114.1'], '203.0.114.1'],
    [['203.0.113.7', '8.8.8.8'], '8.8.8.8'],
    [['2001:db9::1'], '2001:db9::1'],
    [['unknown'], '127.0.0.1'],
  ] as const) {
    const body = { error: sentence(address), code: 'key_address_not_allowed' }
    t.hasStrict(await from(...hops), { status: 403, body }, address)
  }
  t.hasStrict(await get(key, {}), { status: 403, body: { error: sentence('127.0.0.1') } }, 'the proxy itself')
  t.equal(await gateway.metric('abohawa_admissions_total{decision="address-not-allowed"}'), 5)
})

t.test('a client that no proxy names can claim no address', async t => {
  const { keyWith, get } = await start(t, {
    ABOHAWA_SERVER__TRUSTED_PROXIES: '10.9.9.9',
    ABOHAWA_SERVER__CORS__ORIGINS: '',
  })
  const { key } = await keyWith({ restrictions: { addresses: ['203.0.113.7'] } })
  t.match(await get(key, { 'x-forwarded-for': '203.0.113.7' }), { status: 400 }, 'nor HTTPS')
})

t.test('a key of endpoints reaches these, and a change takes effect at once on what runs', async t => {
  const { gateway, keyWith, get } = await start(t)
  const { id, key } = await keyWith({ restrictions: { endpoints: ['weather', 'locations'] } })
  // More than the waits below ask for.
  await gateway.administration.setKey(id, { limit: 100_000 })
  const statusOf = async (given: string) => (await get(key, {}, given)).status
  for (const given of [path, '/locations?type=division']) t.equal(await statusOf(given), 200, given)
  for (const given of ['/forecast/district/3026', '/weather/coords/23.8/90.4', '/locations/division/30'])
    t.equal(await statusOf(given), 403, given)
  t.hasStrict((await get(key, {}, '/forecast/district/3026')).body, {
    error: 'with this key the endpoint must be weather, locations, got forecast',
    code: 'key_endpoint_not_allowed',
  })
  t.equal(await statusOf('/nowhere'), 404)
  t.equal((await get(key, {}, '/weather/country/50')).status, 400)

  await gateway.administration.setKey(id, { restrictions: { endpoints: ['forecast'] } })
  await until('the change is in force', async () => (await statusOf('/forecast/district/3026')) === 200)
  t.equal(await statusOf(path), 403)
  await gateway.administration.setKey(id, { restrictions: { endpoints: null } })
  await until('the key is bound to nothing', async () => (await statusOf(path)) === 200)
  await gateway.administration.revokeKey(id)
  await until('the key is revoked', async () => (await statusOf('/forecast/district/3026')) === 401)
})

t.test('a used-up quota is 429 where the key may be used, and elsewhere the reason is said', async t => {
  const { gateway, keyWith, get } = await start(t)
  const { id, key } = await keyWith({ restrictions: { endpoints: ['forecast'] } })
  await gateway.administration.setKey(id, { limit: 1 })
  const statuses = []
  for (const given of ['/forecast/district/3026', '/forecast/district/3026', path])
    statuses.push((await get(key, {}, given)).status)
  t.strictSame(statuses, [200, 429, 403])
})

t.test('who holds a leaked key empties its day from nowhere, and takes of its rate', async t => {
  const { gateway, keyWith, get } = await start(t)
  const from = '203.0.113.7'
  const { id, key } = await keyWith({
    restrictions: { origins: [page], addresses: [from] },
    rates: { perSecond: null, burst: null, perMinute: 3 },
  })
  t.hasStrict(await get(key, { origin: page }), { status: 403, body: { code: 'key_address_not_allowed' } })
  for (let i = 0; i < 2; i++)
    t.hasStrict(await get(key, { 'x-forwarded-for': from }), {
      status: 403,
      body: { code: 'key_origin_not_allowed' },
    })
  t.hasStrict(await get(key, { origin: page, 'x-forwarded-for': from }), {
    status: 429,
    headers: { 'x-ratelimit-remaining': '100' },
    body: { code: 'rate_limited' },
  })
  t.equal((await gateway.administration.showKey(id)).usedToday, 0)
  t.equal(await gateway.metric('abohawa_admissions_total{decision="address-not-allowed"}'), 1)
  t.equal(await gateway.metric('abohawa_admissions_total{decision="origin-not-allowed"}'), 2)
})
