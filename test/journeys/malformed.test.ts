// Malformed requests of every known kind: each gets JSON with one sentence, and nothing crashes; with a good key it has the
// figures of the key. All that a parameter allows is in test/api/parameters.test.ts, all that is no endpoint in routing.test.ts.

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { startProviderHere } from '../support/provider-here.ts'
import { openRaw } from '../support/raw-connection.ts'
import { openSocket } from '../support/raw-http.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t)
const env = { ABOHAWA_QUOTA__TIERS__TINY: '3', ABOHAWA_QUOTA__TIERS__SMALL: '3' }
const gateway = await startGateway(t, { providerUrl: provider.url, env })
const key = `x-api-key: ${gateway.keys.enterprise}`

/** The response to a request line, its headers and an empty line. */
const send = async (head: string, url = gateway.apiUrl) => {
  const raw = await openRaw(t, url)
  raw.send(`${head}\r\n\r\n`)
  const { status, headers, body } = await raw.answer()
  raw.socket.destroy()
  return { status, headers, body: JSON.parse(body) }
}

const nines = '9'.repeat(500)
// path below /api/v1, status, sentence
const table: [string, number, string | RegExp][] = [
  ['/locations', 400, 'type is missing; allowed: division, district, upazila, union'],
  ['/locations?type=division&type=division', 400, 'type is given more than once; allowed: at most once'],
  ['/locations?type=division&limit=0', 400, 'limit is "0"; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&limit=101', 400, 'limit is "101"; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&offset=-1', 400, 'offset is "-1"; allowed: a whole number from 0 to 1000000000'],
  [`/locations?type=division&offset=${nines}`, 400, /^offset is "9{60}…"; allowed: a whole number/],
  ['/locations?type=division&q=%FF', 400, 'q is "%FF"; allowed: percent-encoded UTF-8'],
  [`/locations?type=division&q=${'x'.repeat(101)}`, 400, /^q is "x+…", 101 characters; allowed: at most 100/],
  ['/locations/planet/1', 400, 'type is "planet"; allowed: division, district, upazila, union'],
  [`/locations/district/${nines}`, 404, /^the district "9{60}…" was not found or is not published$/],
  ['/weather/coords/23.8', 400, 'lng is missing; a point is asked for as /api/v1/weather/coords/{lat}/{lng}'],
  ['/weather/district/3026?lang=fr', 400, 'lang is "fr"; allowed: bn, en'],
  ['/weather/coords/2e1/90', 400, 'lat is "2e1"; allowed: decimal degrees such as 23.81, from 20 to 27'],
  ['/weather/coords/23/0x5A', 400, 'lng is "0x5A"; allowed: decimal degrees such as 23.81, from 87.5 to 93'],
  ['/weather/coords/23/93.1', 400, 'lng is "93.1", outside the bounds of Bangladesh; allowed: 87.5 to 93'],
  ['/forecast/district/3026?days=8', 400, 'days is "8"; allowed: a whole number from 1 to 7'],
  [`/weather/%2${'x'.repeat(5_000)}`, 400, /^the path is "\/api\/v1\/weather\/%2x+…"; allowed: percent-enc/],
  ['/../../etc/passwd', 404, /^there is nothing at .*; the endpoints are \/api\/v1\/weather\/\{type\}/],
]

t.test('each has one sentence, and the figures of its key', async t => {
  for (const [path, status, sentence] of table) {
    const answer = await send(`GET /api/v1${path} HTTP/1.1\r\nhost: x\r\n${key}`)
    t.match(answer, { status, body: { error: sentence } }, path.slice(0, 70))
    const { error: _error, code, parameter, ...others } = answer.body
    t.strictSame(others, { doc_url: `/docs#error-${code}` })
    // A sentence that begins with a parameter is about it.
    const named = /^(type|limit|offset|q|lng|lat|lang|days) /.exec(answer.body.error)?.[1]
    t.equal(parameter, code === 'place_not_found' ? 'id' : named)
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    t.equal(answer.headers.get('x-ratelimit-limit'), '100000')
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }
  for (const url of ['http://x', 'http://x?x=/api/v1/locations?type=division']) {
    const { status, body, headers } = await send(`GET ${url} HTTP/1.1\r\nhost: x\r\n${key}`)
    t.strictSame([status, body.error], [400, `the URL is "${url}", without a path; allowed: one with a path`])
    t.equal(headers.get('x-ratelimit-limit'), '100000')
  }
})

t.test('a reset in the middle of anything leaves the gateway standing', async t => {
  for (const bytes of ['CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', 'garbage\r\n\r\n', 'GET / HTTP/1.1\r\n'])
    for (let i = 0; i < 5; i++) {
      const socket = openSocket(gateway.apiUrl)
      await once(socket, 'connect')
      socket.write(bytes)
      socket.resetAndDestroy()
    }
  t.equal((await gateway.get('/locations?type=division')).status, 200)
})

t.test('a request that does not arrive in time gets an error that says so', async t => {
  const env = { ABOHAWA_SERVER__REQUEST_TIMEOUT: '200ms' }
  const impatient = await startGateway(t, { providerUrl: provider.url, env })
  const raw = await openRaw(t, impatient.apiUrl)
  raw.send('GET /api/v1/locations HTTP/1.1\r\nhost: x\r\n')
  const body = {
    error: 'the request did not arrive completely in time',
    code: 'request_timeout',
    doc_url: '/docs#error-request_timeout',
  }
  t.match(await raw.answer(), { status: 400, body: JSON.stringify(body) })
})

t.test('every other method is 405 and names the allowed ones, behind the key', async t => {
  for (const method of 'POST PUT PATCH DELETE OPTIONS PROPFIND PURGE SEARCH LINK TRACE'.split(' '))
    for (const path of ['/locations?type=division', '/nothing']) {
      const head = `${method} /api/v1${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0`
      const answer = await send(`${head}\r\n${key}`)
      t.equal(answer.status, 405, `${method} ${path}`)
      t.equal(answer.headers.get('allow'), 'GET, HEAD')
      t.equal(answer.body.error, `the method is ${method}; allowed: GET, HEAD`)
      t.equal((await send(head)).status, 401)
    }
})

const invalid = /^the request is not valid HTTP$/
const tooLarge = /^the URL and headers are too large/
const hosted = 'GET / HTTP/1.1\r\nhost: x'
// What precedes the empty line, the status, the sentence. A request without a key that parses gets 401 first.
const garbage: [string, number, RegExp][] = [
  ['hello there', 400, invalid],
  ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc', 400, invalid],
  ['BREW /pot HTTP/1.1\r\nhost: x', 400, invalid],
  ['GET /x?q=ঢাকা HTTP/1.1\r\nhost: x', 400, /must be percent-encoded, such as %E0%A6%A2 for ঢ$/],
  ['GET / HTTP/1.1\r\nhost', 400, invalid],
  [`${hosted}\r\ncontent-length: 1\r\ncontent-length: 2`, 400, invalid],
  [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: x`, 400, tooLarge],
  [`${hosted}\r\nx: ${'y'.repeat(20_000)}`, 400, tooLarge],
  ['GET /api/v1/locations HTTP/1.1', 400, /^the host header is missing/],
  ['CONNECT example.org:443 HTTP/1.1\r\nhost: x', 405, /^the method is CONNECT/],
  ['GET /nowhere HTTP/1.1\r\nhost: x\r\nexpect: miracles', 401, /key is missing/],
  ['GET /nowhere HTTP/1.0', 401, /key is missing/],
  ['GET / HTTP/2.0\r\nhost: x', 400, /^the HTTP version is 2\.0; allowed: 1\.1, 1\.0$/],
  ['GET / HTTP/0.9\r\nhost: x', 400, /^the HTTP version is 0\.9; allowed: 1\.1, 1\.0$/],
  [`${hosted}\r\nhost: x`, 400, /^the host header is "x, x"; allowed: one host/],
  ['GET / HTTP/1.0\r\nhost: x\r\nHost: y', 400, /^the host header is "x, y"/],
  [`${hosted}/y`, 400, /^the host header is "x\/y"; allowed: one host/],
  ['GET / HTTP/1.1\r\nhost: a@x', 400, /^the host header is "a@x"/],
  ['GET / HTTP/1.1\r\nhost: ', 400, /^the host header is missing/],
  [`${hosted}\r\ntransfer-encoding: identity`, 400, /^transfer-encoding is "identity"; allowed: chunked$/],
  [
    'POST / HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0',
    400,
    /HTTP\/1\.0; allowed: HTTP\/1\.1$/,
  ],
  [`${hosted}\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0`, 400, invalid],
]

t.test('whatever comes on the socket is answered in JSON, and the gateway lives on', async t => {
  for (const [head, status, sentence] of garbage) {
    const { body, headers, ...answer } = await send(head)
    t.match({ ...answer, ...body }, { status, error: sentence }, head.slice(0, 70))
    t.equal(body.doc_url, `/docs#error-${body.code}`)
    t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining']) t.equal(headers.get(name), '0')
    t.match(headers.get('x-ratelimit-reset'), /^\d{10}$/)
    t.match(headers.get('x-request-id'), /./)
    t.equal((await gateway.get('/locations?type=division')).status, 200)
  }
  for (const host of ['x', 'x:8080', 'api.example.org', '127.0.0.1:1', '[::1]', '[::1]:443', 'a_b.example:'])
    t.equal((await send(`GET /nowhere HTTP/1.1\r\nhost: ${host}`)).status, 401, `the host ${host} is taken`)
})

// A client that throttles itself would stop for the day at zeros.
const list = 'GET /api/v1/locations?type=division HTTP/1.1'
const bengali = 'GET /api/v1/locations?type=district&q=ঢাকা HTTP/1.1'
const tooLong = `GET /api/v1/locations?type=district&q=${'x'.repeat(40_000)} HTTP/1.1`
const figures = (headers: ReadonlyMap<string, string>) =>
  ['limit', 'remaining'].map(name => Number(headers.get(`x-ratelimit-${name}`)))

/** The only response to the last of some requests, which is sent in pieces. */
const sendLast = async (t: Test, bytes: string, { pieces = 1, before = '', url = gateway.apiUrl } = {}) => {
  const raw = await openRaw(t, url)
  if (before) {
    raw.send(`${before}\r\n\r\n`)
    t.equal((await raw.answer()).status, 200)
  }
  const all = Buffer.from(`${bytes}\r\n\r\n`)
  const size = Math.ceil(all.length / pieces)
  for (let at = 0; at < all.length; at += size) {
    raw.send(all.subarray(at, at + size))
    await new Promise(setImmediate)
  }
  const [answer, ...others] = await raw.answersToTheEnd()
  if (!answer || others.length > 0) throw new Error('not one answer')
  return answer
}

for (const [name, line, sentence] of [
  ['raw UTF-8', bengali, /must be percent-encoded/],
  ['an over-long URL', tooLong, /too large; allowed: 16 KiB together/],
] as const)
  t.test(`${name} with a good key is counted, and has the figures of the key`, async t => {
    const left = async () =>
      Number((await gateway.get('/locations?type=division')).headers['x-ratelimit-remaining'])
    let units = await left()
    gateway.logged.length = 0
    for (const [spelling, pieces, before] of [
      ['x-api-key', 1, ''],
      ['X-API-Key', 7, ''],
      ['x-api-key', 1, `${list}\r\nhost: x\r\n${key}`],
      ['x-api-key', 7, `${list}\r\nhost: x\r\n${key}`],
    ] as const) {
      const head = `${line}\r\nhost: x\r\naccept: */*\r\n${spelling}: ${gateway.keys.enterprise}`
      const answer = await sendLast(t, head, { pieces, before })
      t.match([answer.status, JSON.parse(answer.body)], [400, { error: sentence }])
      units -= before ? 2 : 1
      t.strictSame(figures(answer.headers), [100_000, units])
      units -= 1
      t.equal(await left(), units, 'it is counted')
    }
    // If the request line came in a packet of its own, its method is no longer known.
    const logged = gateway.logged.find(each => each.status === 400 && each.method)
    t.match(logged, { msg: 'answered', method: 'GET', keyId: gateway.keyIds.enterprise, endpoint: 'other' })
    const wrong = await sendLast(t, `${line}\r\nhost: x\r\nx-api-key: svc_live_wrong`)
    t.strictSame([wrong.status, ...figures(wrong.headers)], [400, 0, 0], 'with a wrong key it has zeros')
    for (const remaining of [2, 1, 0, 0]) {
      const small = gateway.keys[name === 'raw UTF-8' ? 'tiny' : 'small']
      const { headers, ...answer } = await sendLast(t, `${line}\r\nhost: x\r\nx-api-key: ${small}`)
      t.strictSame(figures(headers), [3, remaining])
      if (answer.status === 400) continue
      t.match([answer.status, JSON.parse(answer.body)], [429, { limit: 3, reset_at: /Z$/ }])
      t.match(headers.get('retry-after'), /^\d+$/)
    }
  })

t.test('where HTTPS is required, such a URL over plain HTTP is not counted and has no figures', async t => {
  const env = { ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.1' }
  const behind = await startGateway(t, { providerUrl: provider.url, env })
  const sendThroughProxy = async (more: string) => {
    const head = `${bengali}\r\nhost: x\r\nx-api-key: ${behind.keys.enterprise}${more}`
    const { status, body, headers } = await sendLast(t, head, { url: behind.apiUrl })
    return { status, error: JSON.parse(body).error, figures: figures(headers), headers }
  }
  for (const more of ['', '\r\nx-forwarded-proto: http']) {
    const plain = await sendThroughProxy(more)
    t.match(plain, { status: 400, error: /HTTPS is required/, figures: [0, 0] })
    t.equal(plain.headers.get('ratelimit'), undefined)
  }
  const secure = await sendThroughProxy('\r\nx-forwarded-proto: https\r\nx-request-id: mine')
  t.match(secure, { status: 400, error: /must be percent-encoded/, figures: [100_000, 99_999] })
  t.match(secure.headers.get('ratelimit'), /^"daily";r=99999;t=\d+$/)
  t.equal(secure.headers.get('x-request-id'), 'mine')
})
