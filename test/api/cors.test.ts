// Without it a web page could be kept from its weather, or a stranger's page could read responses.

import t from 'tap'
import { restrictedBy } from '../../src/keys/restrictions.ts'
import { goodClient, goodKey, startApp } from './api-app.ts'

const weather = '/api/v1/weather/district/3026'
const page = 'https://app.example.org'
const withOrigins = (...origins: string[]) => ({ cors: { origins } })
const asked = (origin: string, more = {}) => ({ 'x-api-key': goodKey, origin, ...more })
const corsOf = (headers: Record<string, string>): string[] =>
  Object.keys(headers).filter(name => name.startsWith('access-control'))

t.test('without an origin no byte changes, and OPTIONS needs a key as before', async t => {
  const app = await startApp(t)
  const [plain, fromPage] = [await app.inject(weather), await app.inject(weather, asked(page))]
  t.strictSame(Object.keys(fromPage.headers), Object.keys(plain.headers))
  t.equal(fromPage.headers.vary, 'accept-encoding, x-api-key')
  t.equal((await app.inject(weather, { origin: page }, 'OPTIONS')).status, 401)
  t.equal((await app.inject(weather, asked(page), 'OPTIONS')).status, 405)
})

t.test('a page of a listed origin may read every response, and another page none', async t => {
  const app = await startApp(t, {}, withOrigins('http://localhost:5173', page))
  const { headers } = await app.inject(weather, asked(page))
  const readable = {
    'access-control-allow-origin': page,
    // Those that a page could not read without it: the API's own, less those that every page may read.
    'access-control-expose-headers':
      'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-ratelimit-cost, ratelimit-policy, ratelimit, ' +
      'retry-after, etag, x-request-id, cache-status, link, x-key-expires, x-test-data, content-location, date',
  }
  t.match(headers, { ...readable, vary: /^accept-encoding, x-api-key, ?origin$/ })
  const outcomes: [number, string, Record<string, string>, string?][] = [
    [304, weather, asked(page, { 'if-none-match': headers.etag })],
    [401, weather, { origin: page }],
    [404, '/nowhere', asked(page)],
    [405, weather, asked(page), 'POST'],
    [200, '/api/v1/locations?type=division', asked(page), 'HEAD'],
  ]
  for (const [status, path, given, method] of outcomes) {
    const answer = await app.inject(path, given, method)
    t.hasStrict(answer, { status, headers: readable })
    t.match(answer.headers.vary, /\borigin$/)
  }
  for (const origin of ['https://evil.example.org', 'https://app.example.org.evil', 'null', '', '*']) {
    const answer = await app.inject(weather, asked(origin))
    t.strictSame(corsOf(answer.headers), [], origin)
    t.match(answer.headers.vary, /origin$/, 'a cache keeps it apart')
  }
  app.apply({ ...app.options, cors: { origins: ['https://other.example'] } })
  t.strictSame(corsOf((await app.inject(weather, asked(page))).headers), [])
})

t.test('any origin is a star, the same for all', async t => {
  const app = await startApp(t, {}, withOrigins('*'))
  for (const given of [asked(page), { 'x-api-key': goodKey }]) {
    const { headers } = await app.inject(weather, given)
    t.equal(headers['access-control-allow-origin'], '*')
    t.equal(headers.vary, 'accept-encoding, x-api-key')
  }
})

t.test('where any origin may read, a cache keeps apart what a key of some origins was answered', async t => {
  for (const origins of [[page], null]) {
    const client = {
      ...goodClient,
      restrictedBy: restrictedBy({ origins, addresses: null, endpoints: null }),
    }
    const app = await startApp(t, { authenticate: () => ({ client }) }, withOrigins('*'))
    const { headers, status } = await app.inject(weather, asked(page))
    t.equal(status, 200)
    t.equal(headers['access-control-allow-origin'], '*')
    const vary = 'accept-encoding, x-api-key'
    t.strictSame(headers.vary?.split(/, ?/), [...vary.split(', '), ...(origins ? ['origin'] : [])])
    if (origins) t.hasStrict(await app.inject(weather), { status: 403, headers: { vary: 'origin' } })
  }
})

t.test('a preflight is 204 without a key, counts nothing and holds for a day', async t => {
  const app = await startApp(t, {}, withOrigins(page))
  for (const path of [weather, '/api/v1/nothing', '/', '*']) {
    const { status, headers, bytes } = await app.inject(
      path,
      { origin: page, 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-api-key' },
      'OPTIONS',
    )
    t.equal(status, 204, path)
    t.equal(bytes.length, 0)
    t.match(headers, {
      'access-control-allow-origin': page,
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-headers': /\bx-api-key\b.*\bif-none-match\b/,
      'access-control-max-age': '86400',
      vary: 'origin',
      'x-request-id': /./,
      'x-ratelimit-limit': '0',
    })
  }
  const { headers } = await app.inject(weather, { origin: page }, 'OPTIONS')
  const allowed = headers['access-control-allow-headers']?.split(', ')
  const sent = [
    'content-type',
    'cache-control',
    'traceparent',
    'baggage',
    'sentry-trace',
    'user-agent',
    'x-requested-with',
  ]
  for (const name of sent) t.ok(allowed?.includes(name), `${name}, which clients send by themselves`)
  t.strictSame(app.decisions, [], 'no key is looked up')
  t.equal((await app.inject(weather, asked(page), 'OPTIONS')).status, 204, 'with a key too')
  t.equal((await app.inject(weather)).headers['x-ratelimit-remaining'], '9')
  t.equal((await app.inject(weather, {}, 'OPTIONS')).status, 204, 'of no page')
})

t.test('a preflight of an origin that is not listed is 403, names it and counts nothing', async t => {
  const origin = 'https://evil.example.org'
  const preflight = { origin, 'access-control-request-method': 'GET' }
  for (const app of [await startApp(t), await startApp(t, {}, withOrigins(page))]) {
    for (const more of [{}, { 'x-api-key': goodKey }]) {
      const { status, headers, body } = await app.inject(weather, { ...preflight, ...more }, 'OPTIONS')
      t.equal(status, 403)
      t.strictSame(body, {
        error: `the origin "${origin}" is not allowed; ask the operator of this gateway to add it`,
        code: 'origin_not_allowed',
        doc_url: '/docs#error-origin_not_allowed',
      })
      t.strictSame(corsOf(headers), [])
    }
    t.strictSame(app.decisions, [], 'no key is looked up')
    t.equal((await app.inject(weather, asked(origin))).status, 200, 'the request itself is answered')
  }
})

const apps = [
  ...['capacitor://localhost', 'ionic://localhost', 'tauri://localhost'],
  ...['chrome-extension://abcdefghijklmnop', 'moz-extension://2c127fa4-62c7-7e4f-90e5-472b45eecfdc'],
]

t.test('origins of apps may read, and a star stands for exactly one label', async t => {
  const app = await startApp(t, {}, withOrigins(...apps, 'https://*.example.org', 'http://*.test:8080'))
  const matching = ['https://app.example.org', 'https://pr-7_a.example.org', 'http://a.test:8080']
  for (const origin of [...apps, ...matching]) {
    for (const _ of ['first', 'kept']) {
      const { headers } = await app.inject(weather, asked(origin))
      t.equal(headers['access-control-allow-origin'], origin)
      t.match(headers.vary, /\borigin$/)
    }
    const preflight = await app.inject(weather, { origin }, 'OPTIONS')
    t.hasStrict(preflight, { status: 204, headers: { 'access-control-allow-origin': origin } })
  }
  for (const origin of [
    ...['https://example.org', 'https://.example.org', 'https://a.b.example.org', 'http://app.example.org'],
    ...['https://app.example.org:8443', 'https://app.example.org.evil', 'https://evil/.example.org'],
    ...['https://appexample.org', 'https://evil#.example.org', 'http://a.test', 'https://A.example.org'],
  ]) {
    t.strictSame(corsOf((await app.inject(weather, asked(origin))).headers), [], origin)
    t.equal((await app.inject(weather, { origin }, 'OPTIONS')).status, 403, origin)
  }
})

t.test('one origin with a star is enough', async t => {
  const app = await startApp(t, {}, withOrigins('https://*.example.org'))
  const { headers } = await app.inject(weather, asked('https://app.example.org'))
  t.equal(headers['access-control-allow-origin'], 'https://app.example.org')
})

t.test('HTTPS comes before a preflight', async t => {
  const app = await startApp(t, {}, { ...withOrigins(page), trustedProxies: ['127.0.0.1'] })
  t.equal((await app.inject(weather, { origin: page }, 'OPTIONS')).status, 400)
  t.equal((await app.inject(weather, { origin: page, 'x-forwarded-proto': 'https' }, 'OPTIONS')).status, 204)
})
