// Web pages that may read the responses: the headers on every outcome, preflight requests, and that nothing changes where
// no origin is configured. A real browser is in test/journeys/web-pages.test.ts.

import t from 'tap'
import { goodKey, startApp } from '../support/api-app.ts'

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
    'access-control-expose-headers': /^x-ratelimit-limit, .*ratelimit, retry-after, etag, x-request-id/,
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
    t.match(answer, { status, headers: readable })
    t.match(answer.headers.vary, /\borigin$/)
  }
  for (const origin of ['https://evil.example.org', 'https://app.example.org.evil', 'null', '', '*']) {
    const answer = await app.inject(weather, asked(origin))
    t.strictSame(corsOf(answer.headers), [], origin)
    t.match(answer.headers.vary, /origin$/, 'a cache keeps it apart')
  }
})

t.test('any origin is a star, the same for all', async t => {
  const app = await startApp(t, {}, withOrigins('*'))
  for (const given of [asked(page), { 'x-api-key': goodKey }]) {
    const { headers } = await app.inject(weather, given)
    t.equal(headers['access-control-allow-origin'], '*')
    t.equal(headers.vary, 'accept-encoding, x-api-key')
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
  for (const name of ['content-type', 'cache-control', 'traceparent', 'baggage', 'sentry-trace'])
    t.ok(allowed?.includes(name), `${name}, which clients send by themselves`)
  t.strictSame(app.decisions, [], 'no key is looked up')
  t.equal((await app.inject(weather, asked(page), 'OPTIONS')).status, 204, 'with a key too')
  t.equal((await app.inject(weather)).headers['x-ratelimit-remaining'], '9')
  const other = await app.inject(weather, { origin: 'https://evil.example.org' }, 'OPTIONS')
  t.equal(other.status, 204)
  t.strictSame(corsOf(other.headers), [])
})

t.test('HTTPS comes before a preflight', async t => {
  const app = await startApp(t, {}, { ...withOrigins(page), trustedProxies: ['127.0.0.1'] })
  t.equal((await app.inject(weather, { origin: page }, 'OPTIONS')).status, 400)
  t.equal((await app.inject(weather, { origin: page, 'x-forwarded-proto': 'https' }, 'OPTIONS')).status, 204)
})
