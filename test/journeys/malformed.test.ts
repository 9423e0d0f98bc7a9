// Without it malformed requests could crash the gateway, or get an answer that is no JSON or names no reason.

import { once } from 'node:events'
import t from 'tap'
import { startProviderHere } from '../support/provider.ts'
import { openRaw, openSocket } from '../support/raw-connection.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t)
const gateway = await startGateway(t, { providerUrl: provider.url })
const key = `x-api-key: ${gateway.keys.enterprise}`

/** The response to a request line, its headers and an empty line. */
const send = async (head: string, url = gateway.apiUrl) => {
  const raw = await openRaw(t, url)
  raw.send(`${head}\r\n\r\n`)
  const { status, headers, body } = await raw.answer()
  raw.socket.destroy()
  return { status, headers, body: JSON.parse(body) }
}

t.test('a URL without a path is refused as such, and counted', async t => {
  for (const url of ['http://x', 'http://x?x=/api/v1/locations?type=division']) {
    const { status, body, headers } = await send(`GET ${url} HTTP/1.1\r\nhost: x\r\n${key}`)
    t.strictSame([status, body.code, headers.get('x-ratelimit-limit')], [400, 'path_missing', '100000'])
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
  const env = { ABOHAWA_TEST_SERVER__REQUEST_TIMEOUT: '200ms' }
  const impatient = await startGateway(t, { providerUrl: provider.url, env })
  const raw = await openRaw(t, impatient.apiUrl)
  raw.send('GET /api/v1/locations HTTP/1.1\r\nhost: x\r\n')
  const body = {
    error: 'the request did not arrive completely in time',
    code: 'request_timeout',
    doc_url: '/docs#error-request_timeout',
  }
  t.hasStrict(await raw.answer(), { status: 400, body: JSON.stringify(body) })
})

t.test('every other method is 405 and names the allowed ones, behind the key', async t => {
  for (const method of 'POST PUT PATCH DELETE OPTIONS PROPFIND PURGE SEARCH LINK TRACE'.split(' '))
    for (const path of ['/locations?type=division', '/nothing']) {
      const head = `${method} /api/v1${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0`
      const answer = await send(`${head}\r\n${key}`)
      t.equal(answer.status, 405, `${method} ${path}`)
      t.equal(answer.headers.get('allow'), 'GET, HEAD')
      t.equal(answer.body.error, `the method must be GET or HEAD, got ${method}`)
      t.equal((await send(head)).status, 401)
    }
})

const invalid = /^the request is not valid HTTP$/
const tooLarge = /^the URL and headers must have at most/
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
  ['GET /api/v1/locations HTTP/1.1', 400, /^the host header is required/],
  ['CONNECT example.org:443 HTTP/1.1\r\nhost: x', 405, /^the method must be GET or HEAD, got CONNECT/],
  ['GET /nowhere HTTP/1.1\r\nhost: x\r\nexpect: miracles', 401, /key is missing/],
  ['GET /nowhere HTTP/1.0', 401, /key is missing/],
  ['GET / HTTP/2.0\r\nhost: x', 400, /^the HTTP version must be 1\.1 or 1\.0, got 2\.0$/],
  ['GET / HTTP/0.9\r\nhost: x', 400, /^the HTTP version must be 1\.1 or 1\.0, got 0\.9$/],
  [`${hosted}\r\nhost: x`, 400, /^the host header must name one host.*, got "x, x"$/],
  ['GET / HTTP/1.0\r\nhost: x\r\nHost: y', 400, /^the host header .*, got "x, y"$/],
  [`${hosted}/y`, 400, /^the host header .*, got "x\/y"$/],
  ['GET / HTTP/1.1\r\nhost: a@x', 400, /^the host header .*, got "a@x"$/],
  ['GET / HTTP/1.1\r\nhost: ', 400, /^the host header is required/],
  [`${hosted}\r\ntransfer-encoding: identity`, 400, /^transfer-encoding must be chunked, got "identity"$/],
  [
    'POST / HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0',
    400,
    /^transfer-encoding requires HTTP\/1\.1$/,
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

t.test('no key is read out of a head that the parser refuses, and nothing is counted', async t => {
  const left = async () =>
    Number((await gateway.get('/locations?type=division')).headers['x-ratelimit-remaining'])
  const before = await left()
  const parsed = `GET /api/v1/locations?type=division HTTP/1.1\r\nhost: x\r\n${key}\r\n\r\n`
  const lines = ['GET /api/v1/locations?q=ঢাকা HTTP/1.1', `GET /${'x'.repeat(40_000)} HTTP/1.1`]
  for (const line of lines)
    for (const pieces of [1, 7])
      for (const first of ['', parsed]) {
        const raw = await openRaw(t, gateway.apiUrl)
        raw.send(first)
        if (first) t.equal((await raw.answer()).status, 200)
        const bytes = Buffer.from(`${line}\r\nhost: x\r\n${key}\r\n\r\n`)
        const size = Math.ceil(bytes.length / pieces)
        for (let at = 0; at < bytes.length; at += size) {
          raw.send(bytes.subarray(at, at + size))
          await new Promise(setImmediate)
        }
        const [answer, ...others] = await raw.answersToTheEnd()
        t.strictSame([answer?.status, others], [400, []], 'one answer, however it came')
        for (const name of ['limit', 'remaining']) t.equal(answer?.headers.get(`x-ratelimit-${name}`), '0')
        t.equal(answer?.headers.get('ratelimit'), undefined)
      }
  t.equal(before - (await left()), 5, 'four that were parsed, and this one')
})
