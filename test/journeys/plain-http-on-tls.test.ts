// Plain HTTP on the port where the gateway speaks TLS: one answer that says so, and the limits of connections hold.

import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-http.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures')
const provider = await startProvider(t)
const start = (more: Record<string, string> = {}) =>
  startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_SERVER__TLS__CERT: join(fixtures, 'localhost.crt'),
      ABOHAWA_SERVER__TLS__KEY: join(fixtures, 'localhost.key'),
      ...more,
    },
  })

t.test('every method is answered with 400 and the sentence, whatever follows it', async t => {
  const gateway = await start()
  const key = `x-api-key: ${gateway.keys.free}`
  for (const [line, headers, body] of [
    ['GET /api/v1/locations?type=division', ['host: x', key], ''],
    ['HEAD /', [], ''],
    ['POST /', ['host: x', 'content-length: 200000'], 'x'.repeat(200_000)],
    ['OPTIONS *', ['host: x'], ''],
    ['DELETE /a', ['host: x'], ''],
    ['CONNECT a:1', [], ''],
    ['PRI *', [], ''],
  ] as const) {
    const answer = await sendRaw(gateway.apiUrl, requestBytes(line, headers, body))
    t.equal(answer.status, 400, line)
    t.strictSame(answer.body, {
      error: 'the request came over plain HTTP; HTTPS is required',
      code: 'https_required',
    })
    t.match(answer.headers, {
      connection: 'close',
      'cache-control': 'no-store',
      'x-ratelimit-limit': '0',
      'x-request-id': /^\S+$/,
    })
  }
  t.equal((await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used ?? 0, 0)
  await until('no connection is left', async () => (await gateway.metric('abohawa_connections')) === 0)
})

/** Connections that send too little for a request and for a handshake. */
const openSilent = (url: string, count: number) => {
  const sockets = Array.from({ length: count }, () => openSocket(url).resume())
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (const socket of sockets) socket.write('GE')
  return sockets
}

t.test('a connection whose handshake does not come is closed after the request timeout', async t => {
  const gateway = await start({ ABOHAWA_SERVER__REQUEST_TIMEOUT: '500ms' })
  const sockets = openSilent(gateway.apiUrl, 3)
  await until('they are closed', () => sockets.every(({ destroyed }) => destroyed))
  await until('no connection is left', async () => (await gateway.metric('abohawa_connections')) === 0)
  t.equal(await gateway.metric('abohawa_connections_unauthenticated'), 0)
})

t.test('a thousand plain requests that read no answer leave nothing behind', async t => {
  const gateway = await start()
  const { hostname, port } = new URL(gateway.apiUrl)
  let closed = 0
  for (let round = 0; round < 10; round++) {
    const before = closed
    for (let i = 0; i < 100; i++) {
      const socket = connect(Number(port), hostname).pause()
      socket.on('error', () => {})
      socket.on('close', () => {
        closed += 1
      })
      socket.write('GET / HTTP/1.1\r\n\r\n', () => socket.resume())
    }
    await until('this hundred is closed', () => closed === before + 100)
  }
  await until('no connection is left', async () => (await gateway.metric('abohawa_connections')) === 0)
  t.equal(await gateway.metric('abohawa_connections_unauthenticated'), 0)
})
