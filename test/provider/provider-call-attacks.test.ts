// Attacks by a server, apart from the content of its body: unrequested encodings, endless heads and chunks, bodies that
// trickle or are read too slowly, redirects, and error responses with anything as their body.

import { inspect } from 'node:util'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { type Attack, forever, inSingleBytes, startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { callOptions, openMeteo } from '../support/open-meteo.ts'
import { foundWithin } from '../support/until.ts'
import { workedMs } from '../support/work-time.ts'

const text = JSON.stringify(Array.from({ length: 2_000 }, (_, i) => ({ i })))
const maxBytes = 100_000
const totalTimeoutMs = 1_000
const inGzip = { 'content-encoding': 'gzip' }
const many = (of: string): Buffer => Buffer.alloc(1 << 16, of)

const withEncoding =
  (encoding: string | string[], body: Buffer): Attack =>
  ({ response }) =>
    response.setHeader('content-encoding', encoding).end(body)
const withHead =
  (head: string, then: (to: Parameters<Attack>[0]) => unknown = () => {}): Attack =>
  exchanged => {
    exchanged.socket.write(head)
    return then(exchanged)
  }
const error =
  (status: number, body: Buffer | string, headers: Record<string, string> = {}): Attack =>
  ({ response }) =>
    response.writeHead(status, headers).end(body)

let redirected = 0
const attacks: Record<string, Attack> = {
  good: ({ response }) => response.writeHead(200, inGzip).end(gzipSync(text)),
  'spelt-otherwise': withEncoding('X-GZip', gzipSync(text)),
  br: withEncoding('br', brotliCompressSync(text)),
  deflate: withEncoding('deflate', deflateSync(text)),
  twice: withEncoding('gzip, gzip', gzipSync(gzipSync(text))),
  listed: withEncoding(['gzip', 'gzip'], gzipSync(text)),
  strange: withEncoding(`\u009b31m${'x'.repeat(5_000)}`, Buffer.from(text)),
  identity: withEncoding('identity', Buffer.from(text)),
  'not-gzip': withEncoding('gzip', Buffer.from(text)),
  'two-members': withEncoding('gzip', Buffer.concat([gzipSync(text.slice(0, 99)), gzipSync(text.slice(99))])),
  'junk-behind': withEncoding('gzip', Buffer.concat([gzipSync(text), Buffer.from('junk'.repeat(50))])),
  'zeros-behind': ({ response }) => {
    response.writeHead(200, inGzip).write(Buffer.concat([gzipSync(text), Buffer.alloc(99)]))
    forever(response, Buffer.alloc(1 << 16))
  },
  'too-long': ({ response }) => response.end('a'.repeat(maxBytes + 1)),
  'too-long-zipped': withEncoding('gzip', gzipSync(Buffer.alloc(maxBytes + 1))),
  'just-so-long': withEncoding('gzip', gzipSync(Buffer.alloc(maxBytes))),
  'single-bytes': ({ response, socket }) => {
    response.writeHead(200, { 'transfer-encoding': 'chunked', connection: 'close' }).flushHeaders()
    socket.write(inSingleBytes(Buffer.from(text)), () => socket.end())
  },
  interim: ({ socket }) => forever(socket, Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000))),
  'some-interim': ({ socket }) =>
    socket.write(
      `${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(8)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]`,
    ),
  header: withHead('HTTP/1.1 200 OK\r\nx: ', ({ socket }) => forever(socket, many('a'))),
  headers: withHead('HTTP/1.1 200 OK\r\n', ({ socket }) => forever(socket, many('a:b\r\n'))),
  'status-line': withHead('HTTP/1.1 200 ', ({ socket }) => forever(socket, many('a'))),
  'chunk-extension': withHead('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;', ({ socket }) =>
    forever(socket, many('a')),
  ),
  trailers: withHead('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n', ({ socket }) =>
    forever(socket, many('a:b\r\n')),
  ),
  trickle: ({ response }) => {
    response.writeHead(200)
    const drop = setInterval(() => response.write('[1]'), 20)
    response.once('close', () => clearInterval(drop))
  },
  'two-answers': withHead(
    `HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n[1]`,
  ),
  'no-http': ({ socket }) => socket.end(`HTTP/1.1 200 OK\r\n\u0001: ${'junk '.repeat(9_000)}`),
  redirect: ({ response }) => response.writeHead(302, { location: '/redirected' }).end(),
  redirected: ({ response }) => {
    redirected += 1
    response.end('[]')
  },
  'error-in-br': error(503, brotliCompressSync('{"reason":"x"}'), { 'content-encoding': 'br' }),
  'error-not-gzip': error(429, '{"reason":"Hourly"}', inGzip),
  'error-too-long': error(429, JSON.stringify({ reason: `Daily API request limit${' '.repeat(20_000)}` })),
  'error-nested': error(400, '['.repeat(15_000)),
  'error-null': error(400, 'null'),
  'error-stands-still': ({ response }) => response.writeHead(502).write('<html>'),
  'error-steers': error(
    400,
    JSON.stringify({ reason: `\u001b[2J\u202eabc\r\nINFO all is well${'x'.repeat(500)}` }),
  ),
}
const provider = await startHostileProvider(t, '', attacks)

const setUp = (t: { teardown(fn: () => unknown): void }, attack: string) => {
  const call = createProviderCall(
    { ...callOptions(provider.url(attack)), apiKey: 'provider-secret-1', bodyTimeoutMs: 500, totalTimeoutMs },
    { protocol: openMeteo, clock: manualClock() },
  )
  t.teardown(() => call.close())
  return call
}

const endless = new Set([
  'interim',
  'header',
  'headers',
  'trailers',
  'status-line',
  'chunk-extension',
  'trickle',
  'error-stands-still',
])

/** Waits until the server sees that the client has disconnected. */
const letGo = async (attack: string): Promise<boolean> =>
  (await foundWithin(20_000, () => provider.open(attack) === 0)) ?? false

for (const attack of ['good', 'spelt-otherwise', 'identity', 'two-members'])
  t.test(`${attack}: is complete, and the connection is reused`, async t => {
    const call = setUp(t, attack)
    for (let i = 0; i < 3; i++) t.equal(await call.text({ path: '/', maxBytes }), text)
    t.equal(provider.open(attack), 1)
  })

t.test('a body of exactly the maximum size is complete', async t => {
  t.equal((await setUp(t, 'just-so-long').text({ path: '/', maxBytes })).length, maxBytes)
})

const tooLong = /^the provider's body is longer than 100000 bytes$/
const headersTooLong = /^the provider's headers are longer than 16384 bytes$/
const refused: [string, string, string | undefined, RegExp][] = [
  [
    'br',
    'provider_garbled',
    'wrong_encoding',
    /^the provider's body has the content-encoding br, expected gzip or none$/,
  ],
  ['deflate', 'provider_garbled', 'wrong_encoding', /content-encoding deflate, /],
  ['twice', 'provider_garbled', 'wrong_encoding', /content-encoding gzip, gzip, expected/],
  ['listed', 'provider_garbled', 'wrong_encoding', /content-encoding gzip,gzip, expected/],
  [
    'strange',
    'provider_garbled',
    'wrong_encoding',
    /content-encoding \\u009b31mx{60,80}…, expected gzip or none$/,
  ],
  ['not-gzip', 'provider_cut_off', 'damaged', /^the provider's zipped body can't be unzipped$/],
  ['junk-behind', 'provider_cut_off', 'damaged', /can't be unzipped$/],
  ['too-long', 'provider_garbled', 'too_large', tooLong],
  ['too-long-zipped', 'provider_garbled', 'too_large', tooLong],
  [
    'single-bytes',
    'provider_garbled',
    'too_many_chunks',
    /^the provider's body comes in 4097 chunks for 4097 bytes, /,
  ],
  [
    'interim',
    'provider_garbled',
    'too_many_interim_responses',
    /^the provider sent more than 8 interim responses \(1xx\)/,
  ],
  ['header', 'provider_garbled', 'too_large', headersTooLong],
  ['headers', 'provider_garbled', 'too_large', headersTooLong],
  ['trailers', 'provider_garbled', 'too_large', headersTooLong],
  ['status-line', 'provider_timeout', 'too_slow', /^the provider's answer was not whole within 1000 ms$/],
  [
    'chunk-extension',
    'provider_timeout',
    undefined,
    /^the provider's body stood still for 500 ms$|within 1000 ms$/,
  ],
  ['trickle', 'provider_timeout', 'too_slow', /within 1000 ms$/],
  [
    'no-http',
    'provider_broke_off',
    undefined,
    /^the connection to the provider broke: Response does not match the HTTP/,
  ],
  ['redirect', 'provider_denied', undefined, /^the provider answered 302$/],
  ['error-in-br', 'provider_overloaded', undefined, /^the provider answered 503$/],
  ['error-not-gzip', 'provider_limited', undefined, /^the provider answered 429$/],
  ['error-too-long', 'provider_limited', undefined, /^the provider answered 429$/],
  ['error-nested', 'provider_denied', undefined, /^the provider answered 400$/],
  ['error-null', 'provider_denied', undefined, /^the provider answered 400$/],
  ['error-stands-still', 'provider_failing', undefined, /^the provider answered 502$/],
  [
    'error-steers',
    'provider_refused',
    undefined,
    /^the provider answered 400: \\u001b\[2J\\u202eabc\\u000d\\u000aINFO all is wellx{100,200}…$/,
  ],
]
for (const [attack, code, why, message] of refused)
  t.test(`${attack} is ${code} in a sentence, in time, and keeps nothing of what came`, async t => {
    const started = workedMs()
    const given = await setUp(t, attack)
      .text({ path: '/', maxBytes })
      .then(
        () => undefined,
        error => error,
      )
    t.match(given, { code, message })
    if (why) t.equal(given.refused, why)
    t.ok(workedMs() - started < totalTimeoutMs + 1_000, 'in time')
    t.ok(inspect(given, { depth: 9, showHidden: true }).length < 8_000, 'the error is small')
    t.notMatch(given.message, /provider-secret/)
    if (endless.has(attack)) t.ok(await letGo(attack), 'no connection is left')
  })

t.test('a redirect is not followed', t => {
  t.equal(redirected, 0)
  t.end()
})

t.test('usual interim responses do no harm', async t => {
  t.equal(await setUp(t, 'some-interim').text({ path: '/', maxBytes }), '[]')
})

t.test('zeros after a gzip body are not read, and hold no connection', async t => {
  const call = setUp(t, 'zeros-behind')
  t.equal(await call.text({ path: '/', maxBytes }), text)
  t.ok(await letGo('zeros-behind'))
})

t.test('an unsolicited response is not taken for the response to the next request', async t => {
  const call = setUp(t, 'two-answers')
  for (let i = 0; i < 3; i++) t.equal(await call.text({ path: '/', maxBytes }), '[]')
})

t.test('the timeout of a call includes the time that the reader takes', async t => {
  const call = setUp(t, 'good')
  const read: number[] = []
  await t.rejects(
    async () => {
      for await (const piece of call.bytes({ path: '/', maxBytes })) {
        read.push(piece.length)
        // A reader that blocks the event loop, so that no timer fires.
        for (const until = performance.now() + totalTimeoutMs; performance.now() < until; );
      }
    },
    { code: 'provider_timeout', refused: 'too_slow' },
  )
  t.strictSame(read, [16_384], 'the piece after the end of its time is not given')
})

t.test('a reader that stops early closes the connection, however much is left', async t => {
  const call = setUp(t, 'zeros-behind')
  for await (const piece of call.bytes({ path: '/', maxBytes })) {
    t.ok(piece.length > 0)
    break
  }
  t.ok(await letGo('zeros-behind'))
})
