// Without it clients of HTTP/2 could get other answers than those of HTTP/1.1, or a session could exhaust the gateway.

import { once } from 'node:events'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { frame, frames, getFrame, openHttp2, startTlsGateway, trusting } from '../support/http2-client.ts'
import { outputOf } from '../support/process.ts'
import { withoutCurl } from '../support/programs.ts'
import { startProviderHere } from '../support/provider.ts'
import { drained } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const weather = '/api/v1/weather/district/3026'

const origin = 'https://weather.example'
const gateway = await startTlsGateway(t, provider, {
  ABOHAWA_SERVER__CORS__ORIGINS: origin,
  ABOHAWA_QUOTA__TIERS__TINY: '2',
})
const keyOf = (tier: string) => ({ 'x-api-key': gateway.keys[tier] ?? '' })
const key = keyOf('enterprise')
const usedSoFar = async () =>
  (await gateway.administration.usage(gateway.keyIds.enterprise ?? '', 1)).days[0]?.used ?? 0

/** Headers of one connection, and those that differ from one request to the next. */
const own = ['connection', 'keep-alive', 'x-request-id', 'x-ratelimit-remaining', 'ratelimit']

t.test('both versions give the same answer to the same request, of a web page too', async t => {
  const http1 = new Agent({ allowH2: false, connect: trusting })
  t.teardown(() => http1.close())
  const client = await openHttp2(t, gateway.apiUrl)
  // So that both find it in memory, and its place compressed, which it is from the second time on.
  const { headers: warm } = await client.send(weather, key)
  for (let i = 0; i < 2; i++) await client.send(weather, { ...key, 'accept-encoding': 'gzip' })
  await client.send('/api/v1/forecast/district/3026?days=3', key)
  const requests: [path: string, headers?: Record<string, string>, method?: string][] = [
    [weather, key],
    [`${weather}?lang=en`, { ...key, 'accept-encoding': 'br' }],
    [weather, { ...key, 'accept-encoding': 'gzip' }],
    [weather, { ...key, 'if-none-match': String(warm.etag) }],
    [weather, key, 'HEAD'],
    ['/api/v1/forecast/district/3026?days=3', key],
    ['/api/v1/locations?type=division', key],
    ['/api/v1/locations?type=upazila&limit=100', key],
    ['/api/v1/locations/district/3026', key],
    [weather],
    [weather, { 'x-api-key': 'svc_live_wrong' }],
    ['/api/v1/nothing', key],
    ['/api/v1/nothing', key, 'HEAD'],
    ['/api/v1/weather/district/9', key],
    ['/%', key],
    ['/api/v1/locations?type=all', key],
    [`${weather}?lang=en&lang=bn`, key],
    [weather, key, 'DELETE'],
    [weather, key, 'POST'],
    [weather, { ...key, 'x-request-id': 'mine' }],
    [weather, { ...key, origin }],
    [weather, { ...key, origin }, 'HEAD'],
    [weather, { ...key, origin }, 'OPTIONS'],
  ]
  for (const [path, headers = {}, method = 'GET'] of requests) {
    const answer = await client.send(path, headers, method)
    const options = { dispatcher: http1, method: method as 'GET', headers }
    const other = await request(`${gateway.apiUrl}${path}`, options)
    const bytes = Buffer.from(await other.body.arrayBuffer())
    const title = `${method} ${path} ${Object.keys(headers)}`
    t.equal(answer.status, other.statusCode, title)
    t.ok(answer.bytes.equals(bytes), `the body of ${title}`)
    const without = (given: Record<string, unknown>) =>
      Object.fromEntries(
        Object.entries(given)
          .filter(([name]) => !own.includes(name) && !name.startsWith(':'))
          .map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : String(value)]),
      )
    t.strictSame(without(answer.headers), without(other.headers), `the headers of ${title}`)
    for (const name of ['connection', 'keep-alive', 'transfer-encoding'])
      t.notOk(name in answer.headers, `${name} of ${title}`)
    t.equal(
      Number(other.headers['x-ratelimit-remaining']),
      Math.max(0, Number(answer.headers['x-ratelimit-remaining']) - 1),
      `both are counted: ${title}`,
    )
  }
  const paths = gateway.logged.filter(({ msg }) => msg === 'answered')
  const http2 = paths.filter(({ httpVersion }) => httpVersion === '2.0')
  t.equal(http2.length, requests.length + 4)
  t.equal(new Set(http2.map(({ connection }) => connection)).size, 1)
  t.strictSame(
    http2.map(({ connectionRequest }) => connectionRequest),
    http2.map((_, i) => i + 1),
  )
  for (const { client } of http2) t.equal(client, '127.0.0.1')
  t.equal(await gateway.metric('abohawa_connections'), 2)
})

t.test('CONNECT is refused as any other method, and its session goes on', async t => {
  const { session, send } = await openHttp2(t, gateway.apiUrl)
  for (const [headers, status] of [
    [{}, 401],
    [key, 405],
  ] as const) {
    // It has neither a scheme nor a path, and its client does not end the stream.
    const stream = session.request({ ':method': 'CONNECT', ':authority': 'example.org:443', ...headers })
    const [answer] = await once(stream, 'response')
    t.equal(answer[':status'], status)
    stream.close()
  }
  t.equal((await send(weather, key)).status, 200)
})

t.test('a method is any word, and 405 with a good key; what is not percent-encoded is 400', async t => {
  const { send } = await openHttp2(t, gateway.apiUrl)
  const path = '/api/v1/locations/district/3026'
  for (const method of ['POST', 'PROPFIND', 'GE*', 'get', 'A'.repeat(500)]) {
    const answer = await send(path, key, method)
    t.equal(answer.status, 405, method)
    t.equal(answer.headers.allow, 'GET, HEAD')
    const error = `the method must be GET or HEAD, got ${method.length > 60 ? `${'A'.repeat(60)}…` : method}`
    t.strictSame(answer.json(), {
      error,
      code: 'method_not_allowed',
      doc_url: '/docs#error-method_not_allowed',
    })
    t.equal((await send(path, {}, method)).status, 401, 'the key comes first')
  }
  const encoded = await send('/ঢাকা', keyOf('tiny'))
  t.match(encoded.json(), { error: /must be percent-encoded/ })
  t.strictSame([encoded.status, encoded.headers['x-ratelimit-remaining']], [400, '1'])
  t.strictSame(
    [(await send(weather, keyOf('tiny'))).status, (await send(weather, keyOf('tiny'))).status],
    [200, 429],
  )
})

t.test('a client that names one host twice is refused like one that names two', async t => {
  const client = await openHttp2(t, gateway.apiUrl)
  const send = (host: Record<string, string>) =>
    client.send('/api/v1/locations/district/3026', { ...key, ...host })
  t.equal((await send({ ':authority': 'one.example', host: 'one.example' })).status, 200)
  t.equal((await send({ host: 'one.example' })).status, 200)
  for (const host of ['One.Example', 'one.example:443', 'one.example:'])
    t.equal((await send({ ':authority': 'one.example', host })).status, 200, host)
  t.equal((await send({ ':authority': 'one.example', host: 'one.example:80' })).status, 400)
  const two = await send({ ':authority': 'one.example', host: 'two.example' })
  t.equal(two.status, 400)
  t.match(two.json(), { error: /^the host header must name one host.*, got "two\.example, one\.example"$/ })
})

t.test('hundreds of requests share a connection, hits and misses, each with its own answer', async t => {
  const before = await usedSoFar()
  const client = await openHttp2(t, gateway.apiUrl)
  const warm = await client.send(weather, key)
  await provider.steer({ hold: true })
  const slow = ['23/90', '24/89', '25/90'].map(point => client.send(`/api/v1/weather/coords/${point}`, key))
  await until('the provider has a request', async () => (await provider.state()).inFlight > 0)
  // More than may be under way at once: Node's client lets the rest wait.
  const hits = await Promise.all(Array.from({ length: 400 }, () => client.send(weather, key)))
  t.ok(
    hits.every(({ status, bytes }) => status === 200 && bytes.equals(warm.bytes)),
    'hits do not wait for misses',
  )
  await provider.steer({ hold: false })
  for (const { status } of await Promise.all(slow)) t.equal(status, 200)
  t.equal(new Set(hits.map(({ headers }) => headers['x-request-id'])).size, 400)
  t.equal((await usedSoFar()) - before, 404)
  // Sent before the client has read how many it may send.
  const eager = await openHttp2(t, gateway.apiUrl, false)
  const answers = await Promise.all(Array.from({ length: 100 }, () => eager.send(weather, key)))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(eager.session.remoteSettings.maxConcurrentStreams, 100)
})

t.test('a stopping gateway says so, answers what came, and takes nothing more', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__DRAIN_FOR: '3s' })
  const key = { 'x-api-key': gateway.keys.enterprise ?? '' }
  const [idle, busy] = [await openHttp2(t, gateway.apiUrl), await openHttp2(t, gateway.apiUrl)]
  t.equal((await idle.send(weather, key)).status, 200)
  const left = once(idle.session, 'goaway')
  await provider.steer({ hold: true })
  const slow = busy.send('/api/v1/weather/coords/23.5/90.5', key)
  await until('the provider has a request', async () => (await provider.state()).inFlight > 0)
  const closed = gateway.close()
  const [code, lastStream] = await left
  t.strictSame([code, lastStream], [0, 2 ** 31 - 1], 'an idle client is told at once')
  t.equal((await busy.send(weather, key)).status, 200, 'a busy one goes on while the gateway drains')
  const newcomer = await openHttp2(t, gateway.apiUrl)
  const turnedAway = once(newcomer.session, 'goaway')
  t.equal((await newcomer.send(weather, key)).status, 200)
  t.strictSame(
    (await turnedAway).slice(0, 2),
    [0, 2 ** 31 - 1],
    'one that comes meanwhile is told behind its answer',
  )
  const told = once(busy.session, 'goaway')
  await told
  await provider.steer({ hold: false })
  t.equal((await slow).status, 200)
  await closed
})

t.test('curl chooses HTTP/2 by itself, and HTTP/1.1 when it is to', { skip: withoutCurl() }, async t => {
  const run = (...more: string[]) => {
    const args = ['-sk', '-o', '/dev/null', '-w', '%{http_version} %{http_code}']
    const header = ['-H', `x-api-key: ${gateway.keys.free}`]
    const url = `${gateway.apiUrl}${weather}`
    return outputOf(t, ['curl', ...args, ...header, ...more, url])
  }
  t.equal(await run(), '2 200')
  t.equal(await run('--http1.1'), '1.1 200')
})

t.test('server.tls.http2: false offers HTTP/1.1 alone', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__TLS__HTTP2: 'false' })
  const { hostname: host, port } = new URL(gateway.apiUrl)
  const socket = connectTls({ host, port: Number(port), ...trusting, ALPNProtocols: ['h2', 'http/1.1'] })
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  t.equal(socket.alpnProtocol, 'http/1.1')
})

// What a session may cost is bounded by Node, and consumers are served meanwhile.

/** A connection on which HTTP/2 was chosen: the preface and empty settings are sent. */
const openFrames = async (
  t: Test,
  url: string,
  settings: Buffer = frame(frames.settings, 0, 0),
): Promise<TLSSocket> => {
  const { hostname: host, port } = new URL(url)
  const socket = connectTls({ host, port: Number(port), ...trusting, ALPNProtocols: ['h2'] })
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings]))
  return socket
}

/** Sends frames until the other side has enough of it, or all are sent; waits for the kernel to take them. */
const sendAll = async (socket: TLSSocket, pieces: Iterable<Buffer>) => {
  for (const piece of pieces) {
    if (socket.destroyed) return
    if (!socket.write(piece)) await drained(socket)
  }
}
const isServed = async (t: Test) => {
  const client = await openHttp2(t, gateway.apiUrl)
  t.equal((await client.send(weather, key)).status, 200, 'a consumer is served')
  client.session.close()
}

t.test('requests that are given up by the thousand end the session', async t => {
  const answered = () => gateway.logged.filter(({ msg }) => msg === 'answered').length
  const before = answered()
  for (const headers of [{}, key] as Record<string, string>[]) {
    const socket = (await openFrames(t, gateway.apiUrl)).resume()
    const ended = once(socket, 'close')
    const give = function* () {
      for (let stream = 1; stream < 100_000; stream += 2) {
        yield getFrame(stream, weather, headers)
        yield frame(frames.reset, 0, stream, Buffer.from([0, 0, 0, 8]))
      }
    }
    await sendAll(socket, give())
    await ended
    await isServed(t)
  }
  const begun = answered() - before
  t.ok(begun < 5_000, `${begun} requests were begun`)
})

t.test('floods of pings, settings and continuations end the session or cost nothing', async t => {
  const repeated = (one: Buffer, count: number) => Array.from({ length: count }, () => one)
  const begun = getFrame(1, weather)
  begun.writeUInt8(0x1, 4)
  // A header named a, whose value is b.
  const more = frame(frames.continuation, 0, 1, Buffer.from('\0\x01a\x01b'))
  const batch = 100
  for (const [name, pieces] of [
    ['ping', repeated(Buffer.concat(repeated(frame(frames.ping, 0, 0, Buffer.alloc(8)), batch)), 500)],
    ['settings', repeated(Buffer.concat(repeated(frame(frames.settings, 0, 0), batch)), 500)],
    ['continuation', [begun, ...repeated(Buffer.concat(repeated(more, batch)), 500)]],
  ] as const) {
    const before = process.memoryUsage().rss
    // Nothing is read.
    const socket = (await openFrames(t, gateway.apiUrl)).pause()
    const sent = sendAll(socket, pieces)
    // Once the kernels are full the flood waits for ever.
    for (let i = 0; i < 20; i++) await isServed(t)
    socket.destroy()
    await sent
    const grown = (process.memoryUsage().rss - before) / 2 ** 20
    t.ok(grown < 100, `${name}: ${Math.round(grown)} MiB`)
  }
  await until('none is left', async () => (await gateway.metric('abohawa_connections')) === 0)
})

t.test('headers beyond 16 KiB end their stream alone, and bodies are not read', async t => {
  const { send, session } = await openHttp2(t, gateway.apiUrl)
  t.equal((await send(`${weather}?x=${'a'.repeat(15_000)}`, key)).status, 200)
  await t.rejects(send(`${weather}?x=${'a'.repeat(17_000)}`, key), /ENHANCE_YOUR_CALM/)
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, '1']))
  await t.rejects(send(weather, { ...key, ...many }), /ENHANCE_YOUR_CALM/)
  for (const method of ['GET', 'HEAD', 'POST']) {
    const stream = session.request({ ':path': weather, ':method': method, ...key }, { endStream: false })
    stream.on('error', () => {})
    const closed = once(stream, 'close')
    // More than a window: the rest could not be sent.
    stream.write(Buffer.alloc(1_000_000))
    const [headers] = await once(stream.resume(), 'response')
    t.equal(headers[':status'], method === 'POST' ? 405 : 200)
    await closed
  }
  t.equal((await send(weather, key)).status, 200)
})

t.test('a stranger whose lists wait is let go of with all of them', async t => {
  const { send, session } = await openHttp2(t, gateway.apiUrl)
  const closed = once(session, 'close')
  const outcomes = await Promise.all(
    Array.from({ length: 150 }, (_, i) =>
      send('/api/v1/weather?places=district/3026', { 'x-api-key': `svc_live_wrong${i}` }).then(
        ({ status }) => status,
        () => 'not answered',
      ),
    ),
  )
  t.equal(outcomes.filter(each => each === 401).length, 100)
  t.equal(outcomes.filter(each => each === 'not answered').length, 50)
  await closed
})
