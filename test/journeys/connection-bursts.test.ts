// Without it strangers could take all connections, or their limits could close connections of good keys.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openHttp2, startTlsGateway } from '../support/http2-client.ts'
import { startProviderHere } from '../support/provider.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const weather = '/api/v1/weather/district/3026'
const most = 20
const atMost = (count: number) => ({ ABOHAWA_SERVER__MAX_CONNECTIONS_PER_ADDRESS: String(count) })

/** The beginning of a TLS handshake: a record of 512 bytes, of which the last is missing. */
const halfHello = Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), Buffer.alloc(505)])

const burst = (t: Test, url: string, count: number, bytes?: Buffer | string): Socket[] => {
  const { hostname: host, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ host, port: Number(port), localAddress: '127.0.0.2' })
    socket.on('error', () => {})
    if (bytes) socket.write(bytes)
    return socket.resume()
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}
const closedBy = async (gateway: TestGateway, reason: string) =>
  (await gateway.metric(`abohawa_connections_closed_total{reason="${reason}"}`)) ?? 0
const unauthenticated = (gateway: TestGateway) => gateway.metric('abohawa_connections_unauthenticated')
const get = (gateway: TestGateway, key = gateway.keys.enterprise) =>
  `GET ${weather} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`

for (const [name, isTls, bytes] of [
  ['half TLS handshakes', true, halfHello],
  ['connections under TLS that say nothing', true, undefined],
  ['connections that say nothing', false, undefined],
  ['half requests', false, `GET ${weather} HTTP/1.1\r\nhost: x\r\nx-`],
] as const)
  t.test(`of ${name} from one address, no more stay than may be, and others are served`, async t => {
    const gateway = await (isTls
      ? startTlsGateway(t, provider, atMost(most))
      : startGateway(t, { providerUrl: provider.url, env: atMost(most) }))
    const isServed = async () => {
      const raw = await openRaw(t, gateway.apiUrl)
      raw.send(get(gateway))
      return (await raw.answer()).status
    }
    t.equal(await isServed(), 200)
    const sockets = burst(t, gateway.apiUrl, 80, bytes)
    const gone = () => sockets.filter(({ destroyed }) => destroyed)
    await until('those beyond are closed', () => gone().length >= 80 - most)
    t.equal(gone().length, 80 - most)
    for (let i = 0; i < 5; i++) t.equal(await isServed(), 200, `consumer ${i} of another address`)
    t.equal(await closedBy(gateway, 'address'), 80 - most)
    t.equal(await unauthenticated(gateway), most)
    const said = gateway.logged.filter(({ msg }) =>
      /^too many connections from an address$/.test(String(msg)),
    )
    t.hasStrict(said, [{ level: 'warn', client: '127.0.0.2' }], 'one line for all of them')
    // Those that go make room.
    for (const socket of sockets) socket.destroy()
    await until('none is left', async () => (await unauthenticated(gateway)) === 0)
    const [next] = burst(t, gateway.apiUrl, 1, bytes)
    await until('one more is taken', async () => (await unauthenticated(gateway)) === 1)
    t.equal(next?.destroyed, false)
    t.equal(await closedBy(gateway, 'address'), 80 - most)
  })

t.test('a good key takes its connection out of the count for good', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url, env: atMost(2) })
  const opened = []
  for (let i = 0; i < 10; i++) {
    const raw = await openRaw(t, gateway.apiUrl)
    raw.send(get(gateway))
    t.equal((await raw.answer()).status, 200)
    raw.send(get(gateway, 'wrong'))
    t.equal((await raw.answer()).status, 401)
    opened.push(raw)
  }
  t.equal(await gateway.metric('abohawa_connections'), 10)
  t.equal(await unauthenticated(gateway), 0)
  t.equal(await closedBy(gateway, 'address'), 0)
  const tls = await startTlsGateway(t, provider, atMost(2))
  for (let i = 0; i < 5; i++) {
    const { send } = await openHttp2(t, tls.apiUrl)
    t.equal((await send(weather, { 'x-api-key': tls.keys.enterprise ?? '' })).status, 200)
  }
  t.equal(await closedBy(tls, 'address'), 0)
})

t.test('addresses of trusted proxies are not counted', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ...atMost(2), ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.2/32' },
  })
  const sockets = burst(t, gateway.apiUrl, 10, 'GET / HTTP/1.1\r\nhost: x\r\n')
  await until('all have come', async () => (await gateway.metric('abohawa_connections')) === 10)
  t.notOk(sockets.some(({ destroyed }) => destroyed))
})

t.test('more connections than there may be in all are closed, whoever they are', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__MAX_CONNECTIONS: '4' },
  })
  const kept = await Promise.all(Array.from({ length: 4 }, () => openRaw(t, gateway.apiUrl)))
  const serveAll = async () => {
    for (const raw of kept) {
      raw.send(get(gateway))
      t.equal((await raw.answer()).status, 200)
    }
  }
  await serveAll()
  const sockets = burst(t, gateway.apiUrl, 3)
  await until('the new ones are closed', () => sockets.every(({ destroyed }) => destroyed))
  t.equal(await closedBy(gateway, 'connections'), 3)
  await serveAll()
})

t.test('the hundredth refusal is the last answer of a connection that showed no good key', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  // One by one, and all at once.
  for (const atOnce of [1, 100]) {
    const raw = await openRaw(t, gateway.apiUrl)
    raw.send(get(gateway, 'wrong').repeat(atOnce))
    for (let i = 1; i <= 100; i++) {
      const { status, headers } = await raw.answer()
      t.strictSame([status, headers.get('connection')], [401, i < 100 ? 'keep-alive' : 'close'])
      if (atOnce === 1 && i < 100) raw.send(get(gateway, 'wrong'))
    }
    t.strictSame(await raw.answersToTheEnd(), [])
  }
  t.equal(await closedBy(gateway, 'refusals'), 2)
  const flooding = await openRaw(t, gateway.apiUrl)
  flooding.send(get(gateway, 'wrong').repeat(2_000))
  await until('it is closed', () => flooding.socket.destroyed)
  t.equal(await closedBy(gateway, 'pipeline'), 1, 'far more at once end it without their answers')
  const patient = await openRaw(t, gateway.apiUrl)
  for (const refusals of [90, 300]) {
    patient.send(get(gateway, 'wrong').repeat(refusals) + get(gateway))
    for (let i = 0; i < refusals; i++) t.equal((await patient.answer()).status, 401)
    t.equal((await patient.answer()).status, 200)
  }
  const tls = await startTlsGateway(t, provider)
  const { send, session } = await openHttp2(t, tls.apiUrl)
  const ended = once(session, 'close')
  for (let i = 0; i < 100; i++) t.equal((await send(weather)).status, 401)
  await ended
  t.equal(await closedBy(tls, 'refusals'), 1)
})
