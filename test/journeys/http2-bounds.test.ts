// What an HTTP/2 session may cost: streams, resets, headers and bodies are bounded by Node, and consumers are served meanwhile.

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { frame, frames, getFrame, openFrames, openHttp2, startTlsGateway } from '../support/http2-client.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { drained } from '../support/raw-http.ts'
import type { TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const weather = '/api/v1/weather/district/3026'
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
})

t.test('floods of pings, settings and continuations end the session or cost nothing', async t => {
  const gateway = await startTlsGateway(t, provider)
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
    await Promise.race([sendAll(socket, pieces), pause(5_000, undefined, { ref: false })])
    await isServed(t, gateway)
    socket.destroy()
    const grown = (process.memoryUsage().rss - before) / 2 ** 20
    t.ok(grown < 100, `${name}: ${Math.round(grown)} MiB`)
  }
  await until('none is left', async () => (await gateway.metric('abohawa_connections')) === 0)
})

t.test('headers beyond 16 KiB end their stream alone, and bodies are not read', async t => {
  const gateway = await startTlsGateway(t, provider)
  const { send, session } = await openHttp2(t, gateway.apiUrl)
  t.equal((await send(`${weather}?x=${'a'.repeat(15_000)}`, keyOf(gateway))).status, 200)
  await t.rejects(send(`${weather}?x=${'a'.repeat(17_000)}`, keyOf(gateway)), /ENHANCE_YOUR_CALM/)
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, '1']))
  await t.rejects(send(weather, { ...keyOf(gateway), ...many }), /ENHANCE_YOUR_CALM/)
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
