// Bursts of connections without a good key: what they may cost is bounded from the moment they are accepted, TLS handshakes
// included, and clients with a key that connect at the same moment are served.

import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openHttp2, startTlsGateway } from '../support/http2-client.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const weather = '/api/v1/weather/district/3026'
const most = 20

/** The beginning of a TLS handshake: a record of 512 bytes, of which the last is missing. */
const halfHello = Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), Buffer.alloc(505)])

const burst = (t: Test, url: string, count: number, bytes?: Buffer | string): Socket[] => {
  const { hostname: host, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ host, port: Number(port) })
    socket.on('error', () => {})
    if (bytes) socket.write(bytes)
    return socket.resume()
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}
const unauthenticated = async (gateway: TestGateway) =>
  (await gateway.metric('abohawa_connections_unauthenticated')) ?? 0

for (const [name, isTls, bytes] of [
  ['half TLS handshakes', true, halfHello],
  ['connections under TLS that say nothing', true, undefined],
  ['connections that say nothing', false, undefined],
  ['half requests', false, `GET ${weather} HTTP/1.1\r\nhost: x\r\nx-`],
] as const)
  t.test(`of ${name} in a burst, no more stay than may be, and consumers are served`, async t => {
    const env = { ABOHAWA_SERVER__MAX_UNAUTHENTICATED: String(most) }
    const gateway = await (isTls
      ? startTlsGateway(t, provider, env)
      : startGateway(t, { providerUrl: provider.url, env }))
    const key = { 'x-api-key': gateway.keys.enterprise ?? '' }
    const get = async () => {
      if (isTls) {
        const { send, session } = await openHttp2(t, gateway.apiUrl)
        const { status } = await send(weather, key)
        session.close()
        return status
      }
      const raw = await openRaw(t, gateway.apiUrl)
      raw.send(`GET ${weather} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key['x-api-key']}\r\n\r\n`)
      const { status } = await raw.answer()
      raw.socket.destroy()
      return status
    }
    t.equal(await get(), 200)
    // Far below the request timeout, after which they would be closed anyway.
    const sockets = burst(t, gateway.apiUrl, 80, bytes)
    for (let i = 0; i < 5; i++) t.equal(await get(), 200, `consumer ${i}`)
    // It takes them seconds, and each look costs the gateway a page of metrics.
    await until('the others are closed', async () => (await unauthenticated(gateway)) <= most, 60_000, 100)
    await until('they hear of it', () => sockets.filter(({ destroyed }) => destroyed).length >= 80 - most)
    t.ok(
      ((await gateway.metric('abohawa_connections_closed_total{reason="unauthenticated"}')) ?? 0) >=
        80 - most,
    )
  })

const statusesOf = (t: Test, gateway: TestGateway, count: number) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const raw = await openRaw(t, gateway.apiUrl)
      raw.send(`GET ${weather} HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.enterprise}\r\n\r\n`)
      return (await raw.answer()).status
    }),
  )
const few = { ABOHAWA_SERVER__MAX_UNAUTHENTICATED: '4' }

t.test('a wave of consumers that connect at once is served whole', async t => {
  for (const isTls of [false, true]) {
    const gateway = await (isTls
      ? startTlsGateway(t, provider, few)
      : startGateway(t, { providerUrl: provider.url, env: few }))
    t.strictSame(new Set(await statusesOf(t, gateway, 200)), new Set([200]))
    t.equal(await gateway.metric('abohawa_connections_closed_total{reason="unauthenticated"}'), 0)
  }
})

t.test('so is one whose handshakes take longer because the event loop hardly turns', async t => {
  const gateway = await startTlsGateway(t, provider, few)
  const statuses = statusesOf(t, gateway, 12)
  // Longer than the time after which a connection that says nothing makes room for others.
  for (let i = 0; i < 10; i++) {
    await turn()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 260)
  }
  t.strictSame(new Set(await statuses), new Set([200]))
  t.equal(await gateway.metric('abohawa_connections_closed_total{reason="unauthenticated"}'), 0)
})

t.test('connections that wait to be read are bounded too', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__MAX_UNAUTHENTICATED: '4' },
  })
  burst(t, gateway.apiUrl, 1_500)
  let most = 0
  await until('all have come', async () => {
    most = Math.max(most, await unauthenticated(gateway))
    return ((await gateway.metric('abohawa_connections_closed_total{reason="unauthenticated"}')) ?? 0) >= 496
  })
  t.ok(most <= 1_004, `${most} at once`)
})
