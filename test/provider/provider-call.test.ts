// Without it a call could hang, fill the memory, leak its connection or hide why it failed.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { brokenOff } from '../../src/provider/broken-call.ts'
import { createProviderCall, unzipped } from '../../src/provider/provider-call.ts'
import { type Attack, forever, inSingleBytes, startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { outputOf, withoutPrlimit } from '../support/process.ts'
import { foundWithin, patienceMs } from '../support/until.ts'
import { callOptions, openMeteo } from './provider-set-up.ts'
import type { Ended } from './without-descriptors.ts'

const text = JSON.stringify(Array.from({ length: 2_000 }, (_, i) => ({ i, unit: '°C' })))
const zipped = gzipSync(text)
const maxBytes = 100_000
const longestMs = 60_000
const inGzip = { 'content-encoding': 'gzip' }
const many = (of: string): Buffer => Buffer.alloc(1 << 16, of)

const withEncoding =
  (encoding: string | string[], body: Buffer): Attack =>
  ({ response }) =>
    response.setHeader('content-encoding', encoding).end(body)
const inGzipWith = (body: Buffer | string) => withEncoding('gzip', gzipSync(body))
/** Begins a response by hand, and goes on without end. */
const endlessly =
  (head: string, more: string): Attack =>
  ({ socket }) => {
    socket.write(head)
    forever(socket, many(more))
  }
const error =
  (status: number, body: Buffer | string, headers: Record<string, string> = {}): Attack =>
  ({ response }) =>
    response.writeHead(status, headers).end(body)
const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'
const inChunks = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

let [arrived, redirected] = [0, 0]
const answers: Record<string, Attack> = {
  plain: ({ response }) => {
    arrived += 1
    response.end(text)
  },
  good: withEncoding('gzip', zipped),
  'spelt-otherwise': withEncoding('X-GZip', zipped),
  identity: withEncoding('identity', Buffer.from(text)),
  'two-members': withEncoding('gzip', Buffer.concat([gzipSync(text.slice(0, 99)), gzipSync(text.slice(99))])),
  'just-so-long': inGzipWith(Buffer.alloc(maxBytes)),
  'some-interim': ({ socket }) =>
    socket.write(`${hint.repeat(8)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]`),
  'nine-interim': ({ socket }) =>
    socket.write(`${hint.repeat(9)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]`),
  headers_sent: ({ request, response }) => response.end(JSON.stringify(request.headers)),
  hangs: () => {},
  stalls: ({ response }) => response.writeHead(200).write(text.slice(0, 1_000)),
  'status-599': ({ socket }) => socket.write('HTTP/1.1 599 Odd\r\ncontent-length: 2\r\n\r\n[]'),
  'status-600': ({ socket }) => socket.write('HTTP/1.1 600 Odd\r\ncontent-length: 99\r\n\r\n'),
  'two-answers': ({ socket }) =>
    socket.write(
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n[1]',
    ),
  'zeros-behind': ({ response }) => {
    response.writeHead(200, inGzip).write(Buffer.concat([zipped, Buffer.alloc(99)]))
    forever(response, Buffer.alloc(1 << 16))
  },
  br: withEncoding('br', brotliCompressSync(text)),
  deflate: withEncoding('deflate', deflateSync(text)),
  twice: withEncoding('gzip, gzip', gzipSync(zipped)),
  listed: withEncoding(['gzip', 'gzip'], zipped),
  strange: withEncoding(`\u009b31m${'x'.repeat(5_000)}`, Buffer.from(text)),
  'not-gzip': withEncoding('gzip', Buffer.from(text)),
  'cut-off': withEncoding('gzip', zipped.subarray(0, -100)),
  damaged: withEncoding('gzip', Buffer.from(zipped).fill(0, 2_000, 2_100)),
  'junk-behind': withEncoding('gzip', Buffer.concat([zipped, Buffer.from('junk'.repeat(50))])),
  'broken-off': ({ response }) => {
    response.writeHead(200, { 'content-length': text.length })
    response.write(text.slice(0, 1_000), () => response.destroy())
  },
  'too-long': ({ response }) => response.end('a'.repeat(maxBytes + 1)),
  'too-long-zipped': inGzipWith(Buffer.alloc(maxBytes + 1)),
  'single-bytes': ({ response, socket }) => {
    response.writeHead(200, { 'transfer-encoding': 'chunked', connection: 'close' }).flushHeaders()
    socket.write(inSingleBytes(Buffer.from(text)), () => socket.end())
  },
  interim: ({ socket }) => forever(socket, Buffer.from(hint.repeat(1_000))),
  header: endlessly('HTTP/1.1 200 OK\r\nx: ', 'a'),
  headers: endlessly('HTTP/1.1 200 OK\r\n', 'a:b\r\n'),
  trailers: endlessly(`${inChunks}0\r\n`, 'a:b\r\n'),
  'status-line': endlessly('HTTP/1.1 200 ', 'a'),
  'chunk-extension': endlessly(`${inChunks}1;`, 'a'),
  trickle: ({ response }) => {
    response.writeHead(200)
    const drop = setInterval(() => response.write('[1]'), 20)
    response.once('close', () => clearInterval(drop))
  },
  'no-http': ({ socket }) => socket.end(`HTTP/1.1 200 OK\r\n\u0001: ${'junk '.repeat(9_000)}`),
  redirect: ({ response }) => response.writeHead(302, { location: '/redirected' }).end(),
  redirected: ({ response }) => {
    redirected += 1
    response.end('[]')
  },
  'error-zipped': error(400, gzipSync('{"error":true,"reason":"Latitude must be a number"}'), inGzip),
  'error-in-br': error(503, brotliCompressSync('{"reason":"x"}'), { 'content-encoding': 'br' }),
  'error-not-gzip': error(429, '{"reason":"Hourly"}', inGzip),
  'error-just-so-long': error(429, `${'{"reason":"Daily API request limit'.padEnd(16_382)}"}`),
  'error-too-long': error(429, `${'{"reason":"Daily API request limit'.padEnd(16_383)}"}`),
  'error-nested': error(400, '['.repeat(15_000)),
  'error-null': error(400, 'null'),
  'error-stands-still': ({ response }) => response.writeHead(502).write('<html>'),
  'error-steers': error(400, `{"reason":"\\u001b[2J\\u202eabc\\r\\nINFO all is well${'x'.repeat(500)}"}`),
}
const provider = await startHostileProvider(t, '', answers)

// Only a timeout ends these.
const neverEnding = new Set(['status-line', 'chunk-extension', 'trickle', 'error-stands-still'])

const setUp = (t: Pick<Test, 'teardown'>, answer: string) => {
  const timeouts = {
    ...(neverEnding.has(answer) && { bodyTimeoutMs: 500 }),
    // Of an error the head is there before the body stands still, on a busy machine too.
    totalTimeoutMs: neverEnding.has(answer) && answer !== 'error-stands-still' ? 1_000 : longestMs,
  }
  const call = createProviderCall(
    { ...callOptions(provider.url(answer)), ...timeouts, apiKey: 'provider-secret-1' },
    { protocol: openMeteo, clock: manualClock() },
  )
  t.teardown(() => call.close())
  return {
    call,
    get: () => call.text({ path: '/', maxBytes }),
    bytes: () => call.bytes({ path: '/', maxBytes }),
  }
}
/** Waits until the server sees that the client has disconnected. */
const letGo = async (answer: string): Promise<boolean> =>
  (await foundWithin(patienceMs, () => provider.open(answer) === 0)) ?? false

t.test('a complete body arrives in small chunks, and the connection is used again', async t => {
  for (const answer of ['plain', 'good', 'spelt-otherwise', 'identity', 'two-members']) {
    const { get, bytes } = setUp(t, answer)
    for (let i = 0; i < 3; i++) t.equal(await get(), text, answer)
    t.ok((await Array.fromAsync(bytes())).every(({ length }) => length <= 1 << 16))
    t.equal(provider.open(answer), 1)
  }
  t.equal((await setUp(t, 'just-so-long').get()).length, maxBytes, 'also of exactly the maximum size')
  t.equal(await setUp(t, 'some-interim').get(), '[]', 'behind usual interim responses')
  t.hasStrict(JSON.parse(await setUp(t, 'headers_sent').get()), {
    ...{ accept: 'application/json', 'accept-encoding': 'gzip' },
    'x-api-key': 'provider-secret-1',
  })
})

t.test('for operators any answer streams as it comes, and breaks off with its reason', async t => {
  const request = { method: 'GET', path: '/', headers: {}, isValid: () => true } as const
  const streamOf = (answer: string, signal = new AbortController().signal) =>
    setUp(t, answer).call.stream(request, signal)
  for (const [answer, status, body] of [
    ['good', 200, zipped],
    ['error-null', 400, Buffer.from('null')],
    ['status-599', 599, Buffer.from('[]')],
  ] as const) {
    const given = await streamOf(answer)
    t.equal(given.status, status)
    t.strictSame(Buffer.concat(await Array.fromAsync(given.body)), body)
  }
  t.hasStrict((await streamOf('good')).headers, inGzip)
  const { body: broken } = await streamOf('broken-off')
  await t.rejects(Array.fromAsync(broken), { code: 'provider_broke_off' })
  const odd = { code: 'provider_garbled', refused: 'wrong_shape', message: /answered with the status 600$/ }
  await t.rejects(streamOf('status-600'), odd)
  t.ok(await letGo('status-600'))
  await t.rejects(streamOf('header'), { code: 'provider_garbled', refused: 'too_large' })
  for (const answer of ['hangs', 'stalls']) {
    const ending = new AbortController()
    const read = async () => {
      for await (const _ of (await streamOf(answer, ending.signal)).body) ending.abort(new Error('left'))
    }
    const ended = read()
    if (answer === 'hangs') {
      t.ok(await foundWithin(patienceMs, () => provider.open(answer) === 1))
      ending.abort(new Error('left'))
    }
    await t.rejects(ended, { message: 'left' })
  }
})

const endless = /^(?:interim|headers?|trailers|status-line|chunk-extension|trickle|error-stands-still)$/
const tooLong = /^the provider's body is longer than 100000 bytes$/
const headersTooLong = /^the provider's headers are longer than 16384 bytes$/
const notUnzipped = /^the provider's zipped body can't be unzipped$/
// The attack, the code and the reason that is counted, and the sentence.
const refused: [string, string, RegExp][] = [
  [
    'br',
    'garbled: wrong_encoding',
    /^the provider's body has the content-encoding br, expected gzip or none$/,
  ],
  ['deflate', 'garbled: wrong_encoding', /content-encoding deflate, /],
  ['twice', 'garbled: wrong_encoding', /content-encoding gzip, gzip, expected/],
  ['listed', 'garbled: wrong_encoding', /content-encoding gzip,gzip, expected/],
  ['strange', 'garbled: wrong_encoding', /content-encoding \\u009b31mx{60,80}…, expected gzip or none$/],
  ['not-gzip', 'cut_off: damaged', notUnzipped],
  ['cut-off', 'cut_off: damaged', notUnzipped],
  ['damaged', 'cut_off: damaged', notUnzipped],
  ['junk-behind', 'cut_off: damaged', notUnzipped],
  ['broken-off', 'broke_off', /./],
  ['too-long', 'garbled: too_large', tooLong],
  ['too-long-zipped', 'garbled: too_large', tooLong],
  [
    'single-bytes',
    'garbled: too_many_chunks',
    /^the provider's body comes in 4097 chunks for 4097 bytes, expected 16 bytes in each on average$/,
  ],
  [
    'interim',
    'garbled: too_many_interim_responses',
    /^the provider sent more than 8 interim responses \(1xx\)/,
  ],
  ['nine-interim', 'garbled: too_many_interim_responses', /interim responses \(1xx\) before its answer$/],
  ['header', 'garbled: too_large', headersTooLong],
  ['headers', 'garbled: too_large', headersTooLong],
  ['trailers', 'garbled: too_large', headersTooLong],
  ['status-line', 'timeout: too_slow', /^the response was not complete within 1000 ms$/],
  ['chunk-extension', 'timeout', /^the provider sent no data for 500 ms$|within 1000 ms$/],
  ['trickle', 'timeout: too_slow', /within 1000 ms$/],
  ['no-http', 'broke_off', /^the connection to the provider broke: Response does not match the HTTP/],
  ['redirect', 'denied', /^the provider answered 302$/],
  ['error-zipped', 'refused', /^the provider answered 400: Latitude must be a number$/],
  ['error-in-br', 'overloaded', /^the provider answered 503$/],
  ['error-not-gzip', 'limited', /^the provider answered 429$/],
  ['error-just-so-long', 'limited', /^the provider answered 429: Daily API request limit +…$/],
  ['error-too-long', 'limited', /^the provider answered 429$/],
  ['error-nested', 'denied', /^the provider answered 400$/],
  ['error-null', 'denied', /^the provider answered 400$/],
  ['error-stands-still', 'failing', /^the provider answered 502$/],
  ['error-steers', 'refused', /400: \\u001b\[2J\\u202eabc\\u000d\\u000aINFO all is wellx{100,200}…$/],
]
for (const [attack, outcome, message] of refused)
  t.test(`${attack} is ${outcome} in a sentence, and keeps nothing of what came`, async t => {
    const [code, why] = outcome.split(': ')
    const { get } = setUp(t, attack)
    const given = await get().then(
      () => undefined,
      error => error,
    )
    t.match(given, { code: new RegExp(`^provider_${code}$`), message })
    if (why) t.equal(given.refused, why)
    t.ok(inspect(given, { depth: 9, showHidden: true }).length < 8_000, 'the error is small')
    t.notMatch(given.message, /provider-secret/)
    if (endless.test(attack)) t.ok(await letGo(attack), 'no connection is left')
    else await t.rejects(get(), { code: `provider_${code}` }, 'and the next call is as good')
    t.equal(redirected, 0, 'a redirect is not followed')
  })

t.test('a request that is not valid any more once there is a connection is not sent', async t => {
  const { call } = setUp(t, 'plain')
  const before = arrived
  const request = (isValid: () => boolean) => Array.fromAsync(call.bytes({ path: '/', maxBytes }, isValid))
  await t.rejects(
    request(() => false),
    { code: 'provider_not_sent', retryable: true },
  )
  t.ok((await request(() => true)).length > 0)
  t.equal(arrived, before + 1)
})

t.test(
  'a request for which this machine has no descriptor is not sent, whether its host is an address or a name',
  { skip: withoutPrlimit },
  async t => {
    const script = join(import.meta.dirname, 'without-descriptors.ts')
    const url = provider.url('plain')
    const urls = [url, url.replace('127.0.0.1', 'localhost')]
    const ended = { code: 'provider_not_sent', message: /can't open a connection \(EMFILE\)$/ }
    const all: Ended[] = JSON.parse(
      await outputOf(t, ['prlimit', '--nofile=80', process.execPath, script, ...urls]),
    )
    const unloaded = { code: 'provider_not_sent', message: /client can't be loaded: .*too many open files/ }
    t.match(all.slice(0, 2), [unloaded, unloaded])
    t.strictSame(all.slice(2, 4), [{}, {}], 'it is loaded for the next request')
    t.match(all.slice(4), [ended, ended])
  },
)

t.test('an unsolicited response is not taken for the response to the next request', async t => {
  const { get } = setUp(t, 'two-answers')
  for (let i = 0; i < 3; i++) t.equal(await get(), '[]')
})

t.test('the timeout of a call includes the time that the reader takes', async t => {
  const read: number[] = []
  await t.rejects(
    async () => {
      for await (const piece of setUp(t, 'good').bytes()) {
        read.push(piece.length)
        // As after a reader that blocks the event loop, so that no timer fires.
        const { now } = performance
        t.intercept(performance, 'now', { value: () => now.call(performance) + longestMs })
      }
    },
    { code: 'provider_timeout', refused: 'too_slow' },
  )
  t.strictSame(read, [16_384], 'the piece after the end of its time is not given')
})

t.test('zeros after a gzip body are not read, and a reader that stops early holds no connection', async t => {
  const { get, bytes } = setUp(t, 'zeros-behind')
  t.equal(await get(), text)
  t.ok(await letGo('zeros-behind'))
  for await (const piece of bytes()) {
    t.ok(piece.length > 0)
    break
  }
  t.ok(await letGo('zeros-behind'))
  const [body, zeros] = [gzipSync('weather'), Buffer.alloc(512)]
  for (const chunks of [[body, zeros], [Buffer.concat([body, zeros])], [body, zeros, zeros]]) {
    const pieces = await Array.fromAsync(unzipped(Readable.from(chunks), 'gzip', 1e4))
    t.equal(Buffer.concat(pieces).toString(), 'weather', 'in the chunk of its end or behind it')
  }
})

t.test('what bodies were unzipped to is collected with young objects', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (what: { type: 'minor' }) => void
  const numbers = Array.from({ length: 6_000 }, (_, i) => (Math.sin(i) * 100).toFixed(1)).join()
  const body = gzipSync(numbers)
  const bodies = 100
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < bodies; i++) {
    let read = 0
    for await (const chunk of unzipped(Readable.from([body]), 'gzip', 1e6)) read += chunk.length
    if (read !== numbers.length) t.equal(read, numbers.length)
    collect({ type: 'minor' })
  }
  const keptOfEach = (process.memoryUsage().arrayBuffers - before) / bodies
  // 64 KiB of each without it.
  t.ok(keptOfEach < 16_384, `${Math.round(keptOfEach)} bytes of each body are kept`)
})

t.test('a connection is kept for a minute at most, so that a name that moves is looked up again', async t => {
  let connections = 0
  const server = createServer((_, response) => void response.end('[]')).on('connection', () => {
    connections += 1
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const call = createProviderCall(callOptions(baseUrl), { protocol: openMeteo, clock: manualClock() })
  t.teardown(async () => {
    await call.close()
    server.close()
  })
  let movedMs = 0
  const now = Date.now.bind(Date)
  t.intercept(Date, 'now', { value: () => now() + movedMs })
  for (const [ms, opened] of [
    [0, 1],
    [30_000, 1],
    [61_000, 2],
  ] as const) {
    movedMs = ms
    t.equal(await call.text({ path: '/', maxBytes }), '[]')
    t.equal(connections, opened, `after ${ms} ms`)
  }
})

t.test('what the system says of a connection decides whose fault it is', async t => {
  const limits = { connectTimeoutMs: 1, timeoutMs: 2, bodyTimeoutMs: 3, totalTimeoutMs: 4 }
  const codes = {
    provider_unreachable: ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
    provider_not_sent: ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'UND_ERR_CLOSED'],
    provider_timeout: ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
    provider_cut_off: ['Z_DATA_ERROR', 'Z_BUF_ERROR'],
    provider_broke_off: ['ECONNRESET', 'EPIPE', ''],
  }
  for (const [expected, all] of Object.entries(codes))
    for (const code of all)
      t.equal(brokenOff(Object.assign(new Error('it broke'), { code }), limits).code, expected, code)
  const notFound = Object.assign(new Error('no such name'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' })
  t.equal(brokenOff(notFound, limits).code, 'provider_unreachable')
  const long = new Error('x'.repeat(201))
  t.equal(
    brokenOff(long, limits).message,
    `the connection to the provider broke: ${'x'.repeat(200)}…`,
    'in so many characters',
  )
  t.equal(brokenOff(long, limits, false).message, `no connection to the provider: ${'x'.repeat(200)}…`)
})
