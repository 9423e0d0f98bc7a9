// What an HTTP/2 session may cost: connections, streams, resets, headers, bodies, time, and answers that nobody takes are
// bounded as over HTTP/1.1, and consumers are served meanwhile.

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import {
  frame,
  frames,
  getFrame,
  openFrames,
  openHttp2,
  startTlsGateway,
  trusting,
} from '../support/http2-client.ts'
import { startProvider } from '../support/provider-process.ts'
import { drained } from '../support/raw-http.ts'
import type { TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
const weather = '/api/v1/weather/district/3026'
const closedBy = async (gateway: TestGateway, reason: string) =>
  (await gateway.metric(`abohawa_connections_closed_total{reason="${reason}"}`)) ?? 0
const keyOf = (gateway: TestGateway) => ({ 'x-api-key': gateway.keys.enterprise ?? '' })
/** Sends frames until the other side has enough of it, or all are sent; waits for the kernel to take them. */
const sendAll = async (socket: TLSSocket, pieces: Iterable<Buffer>) => {
  for (const piece of pieces) {
    if (socket.destroyed) return
    if (!socket.write(piece)) await drained(socket)
  }
}
const isServed = async (t: Test, gateway: TestGateway) => {
  const client = await openHttp2(t, gateway.apiUrl)
  t.equal((await client.send(weather, keyOf(gateway))).status, 200, 'a consumer is served')
  client.session.close()
}

t.test('a session without a request is closed after the request timeout', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__REQUEST_TIMEOUT: '1s' })
  const { hostname: host, port } = new URL(gateway.apiUrl)
  // One that says nothing at all, one with settings, and one that begins a request again and again and never ends it.
  const silent = connectTls({ host, port: Number(port), ...trusting, ALPNProtocols: ['h2'] }).resume()
  silent.on('error', () => {})
  const polite = (await openFrames(t, gateway.apiUrl)).resume()
  const partial = (await openFrames(t, gateway.apiUrl)).resume()
  const begun = getFrame(1, weather)
  // END_STREAM without END_HEADERS: the rest is to come.
  begun.writeUInt8(0x1, 4)
  partial.write(begun)
  await until('all are closed', () => [silent, polite, partial].every(({ destroyed }) => destroyed))
  await until('none is left', async () => (await gateway.metric('abohawa_connections')) === 0)
})

t.test('an idle session is closed after the time for idle connections', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__KEEP_ALIVE_TIMEOUT: '1s' })
  const { session, send } = await openHttp2(t, gateway.apiUrl)
  const left = once(session, 'goaway')
  t.equal((await send(weather, keyOf(gateway))).status, 200)
  t.equal((await left)[0], 0, 'with GOAWAY')
  await until('none is left', async () => (await gateway.metric('abohawa_connections')) === 0)
})

t.test('sessions without a good key are bounded in number, like other connections', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__MAX_UNAUTHENTICATED: '4' })
  const good = await openHttp2(t, gateway.apiUrl)
  t.equal((await good.send(weather, keyOf(gateway))).status, 200)
  for (let i = 0; i < 12; i++) {
    const { send } = await openHttp2(t, gateway.apiUrl)
    t.equal((await send(weather)).status, 401)
  }
  t.equal(await closedBy(gateway, 'unauthenticated'), 8)
  t.equal(await gateway.metric('abohawa_connections_unauthenticated'), 4)
  t.equal((await good.send(weather, keyOf(gateway))).status, 200)
})

t.test('where there are too many connections, idle sessions make room', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__MAX_CONNECTIONS: '4' })
  for (let i = 0; i < 8; i++) await isServedOn(t, gateway)
  t.ok((await closedBy(gateway, 'connections')) >= 4)
  t.ok(((await gateway.metric('abohawa_connections')) ?? 0) <= 4)
})
const isServedOn = async (t: Test, gateway: TestGateway) => {
  const { send } = await openHttp2(t, gateway.apiUrl)
  t.equal((await send(weather, keyOf(gateway))).status, 200)
}

t.test('the last of a thousand refusals ends the session', async t => {
  const gateway = await startTlsGateway(t, provider)
  const { send, session } = await openHttp2(t, gateway.apiUrl)
  const ended = once(session, 'close')
  let refused = 0
  let broken = 0
  // Twice as many as there may be: those that came with the last one are not begun.
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (let i = 0; i < 100; i++)
        try {
          if ((await send(weather)).status === 401) refused += 1
        } catch {
          broken += 1
          return
        }
    }),
  )
  await ended
  t.equal(refused, 1_000)
  t.ok(broken > 0)
  await until('none is left', async () => (await gateway.metric('abohawa_connections')) === 0)
  await isServed(t, gateway)
})

t.test('requests that wait are bounded over all sessions', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__MAX_QUEUED_REQUESTS: '30' })
  await provider.steer({ hold: true })
  const miss = '/api/v1/weather/coords/25.5/89.5'
  const [shallow, deep] = [await openHttp2(t, gateway.apiUrl), await openHttp2(t, gateway.apiUrl)]
  const few = Array.from({ length: 10 }, () => shallow.send(miss, keyOf(gateway)))
  await until('nine wait', async () => (await gateway.metric('abohawa_requests_queued')) === 9)
  const many = Array.from({ length: 40 }, () => deep.send(miss, keyOf(gateway)).catch(() => undefined))
  await until('the deepest is closed', async () => (await closedBy(gateway, 'pipelining')) === 1)
  await provider.steer({ hold: false })
  for (const { status } of await Promise.all(few)) t.equal(status, 200)
  t.strictSame(new Set(await Promise.all(many)), new Set([undefined]))
  await until('nothing is queued', async () => (await gateway.metric('abohawa_requests_queued')) === 0)
})

t.test('requests of strangers wait for their turn, and are forgotten when they are given up', async t => {
  const gateway = await startTlsGateway(t, provider)
  const socket = (await openFrames(t, gateway.apiUrl)).resume()
  const give = function* () {
    for (let stream = 1; stream < 199; stream += 2) {
      yield getFrame(stream, weather)
      yield frame(frames.reset, 0, stream, Buffer.from([0, 0, 0, 8]))
    }
    yield getFrame(199, weather)
  }
  await sendAll(socket, [Buffer.concat([...give()])])
  await until('the last is answered', () =>
    gateway.logged.some(({ msg, status }) => msg === 'answered' && status === 401),
  )
  await until('nothing is queued', async () => (await gateway.metric('abohawa_requests_queued')) === 0)
  t.ok(gateway.logged.filter(({ msg }) => msg === 'answered').length < 100, 'not all were begun')
})

t.test('requests that are given up by the thousand end the session', async t => {
  const gateway = await startTlsGateway(t, provider)
  for (const headers of [{}, keyOf(gateway)] as Record<string, string>[]) {
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
    await isServed(t, gateway)
  }
  const begun = gateway.logged.filter(({ msg }) => msg === 'answered').length
  t.ok(begun < 5_000, `${begun} requests were begun`)
  await until('nothing is queued', async () => (await gateway.metric('abohawa_requests_queued')) === 0)
})

t.test('floods of pings, settings and continuations end the session or cost nothing', async t => {
  const gateway = await startTlsGateway(t, provider)
  const repeated = (one: Buffer, count: number) => Array.from({ length: count }, () => one)
  const begun = getFrame(1, weather)
  begun.writeUInt8(0x1, 4)
  const more = frame(
    frames.continuation,
    0,
    1,
    Buffer.concat([Buffer.from([0, 1]), Buffer.from('a'), Buffer.from([1]), Buffer.from('b')]),
  )
  const batch = 100
  for (const [name, pieces] of [
    ['ping', repeated(Buffer.concat(repeated(frame(frames.ping, 0, 0, Buffer.alloc(8)), batch)), 500)],
    ['settings', repeated(Buffer.concat(repeated(frame(frames.settings, 0, 0), batch)), 500)],
    ['continuation', [begun, ...repeated(Buffer.concat(repeated(more, batch)), 500)]],
  ] as const) {
    const before = process.memoryUsage().rss
    // Nothing is read.
    const socket = (await openFrames(t, gateway.apiUrl)).pause()
    await Promise.race([sendAll(socket, pieces), pause(5_000, undefined, { ref: false })])
    await isServed(t, gateway)
    socket.destroy()
    const grown = (process.memoryUsage().rss - before) / 2 ** 20
    t.ok(grown < 100, `${name}: ${Math.round(grown)} MiB`)
  }
  await until('none is left', async () => (await gateway.metric('abohawa_connections')) === 0)
})

t.test('a client that takes nothing of an answer is closed, whatever else it sends', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__WRITE_TIMEOUT: '1s' })
  await isServed(t, gateway)
  // A window of no bytes for every answer.
  const socket = (
    await openFrames(t, gateway.apiUrl, frame(frames.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])))
  ).resume()
  socket.write(getFrame(1, weather, keyOf(gateway)))
  const pings = setInterval(() => socket.write(frame(frames.ping, 0, 0, Buffer.alloc(8))), 50)
  t.teardown(() => clearInterval(pings))
  await until('it is closed', () => socket.destroyed)
  t.equal(await closedBy(gateway, 'write_timeout'), 1)
})

t.test('a client that takes an answer slowly gets all of it', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__WRITE_TIMEOUT: '1s' })
  const socket = await openFrames(
    t,
    gateway.apiUrl,
    frame(frames.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])),
  )
  let ended = false
  socket.on('data', (chunk: Buffer) => {
    // DATA with END_STREAM for the stream: the last piece.
    for (let at = 0; at + 9 <= chunk.length; at += 9 + chunk.readUIntBE(at, 3))
      if (chunk[at + 3] === 0 && ((chunk[at + 4] ?? 0) & 1) === 1) ended = true
  })
  socket.write(getFrame(1, weather, keyOf(gateway)))
  const window = Buffer.alloc(4)
  window.writeUInt32BE(600)
  // Some eight pieces, over twice the timeout.
  const windows = setInterval(() => socket.write(frame(frames.windowUpdate, 0, 1, window)), 300)
  t.teardown(() => clearInterval(windows))
  await until('it has the whole', () => ended)
  t.equal(await closedBy(gateway, 'write_timeout'), 0)
})

t.test('headers beyond 16 KiB end their stream alone, and bodies are not read', async t => {
  const gateway = await startTlsGateway(t, provider)
  const { send, session } = await openHttp2(t, gateway.apiUrl)
  t.equal((await send(`${weather}?x=${'a'.repeat(15_000)}`, keyOf(gateway))).status, 200)
  await t.rejects(send(`${weather}?x=${'a'.repeat(17_000)}`, keyOf(gateway)), /ENHANCE_YOUR_CALM/)
  await t.rejects(
    send(weather, {
      ...keyOf(gateway),
      ...Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, '1'])),
    }),
    /ENHANCE_YOUR_CALM/,
  )
  for (const method of ['GET', 'POST']) {
    const stream = session.request(
      { ':path': weather, ':method': method, ...keyOf(gateway) },
      { endStream: false },
    )
    stream.on('error', () => {})
    const closed = once(stream, 'close')
    // More than a window: the rest could not be sent.
    stream.write(Buffer.alloc(1_000_000))
    const [headers] = await once(stream.resume(), 'response')
    t.equal(headers[':status'], method === 'GET' ? 200 : 405)
    await closed
  }
  t.equal((await send(weather, keyOf(gateway))).status, 200)
})

t.test('how many requests may be under way follows server.maxPipelined, from a hundred on', async t => {
  const gateway = await startTlsGateway(t, provider)
  const allowed = async () => {
    const { session } = await openHttp2(t, gateway.apiUrl)
    return session.remoteSettings.maxConcurrentStreams
  }
  t.equal(await allowed(), 100)
  t.equal(await gateway.set({ 'server.maxPipelined': '300' }), 'applied')
  t.equal(await allowed(), 300)
})
