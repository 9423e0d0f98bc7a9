// Plain HTTP on the port where the gateway speaks TLS: one answer that says so, and the limits of connections hold.

import t from 'tap'
import { startTlsGateway } from '../support/http2-client.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-http.ts'
import type { TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const noneIsLeft = async (gateway: TestGateway) => {
  await until('no connection is left', async () => (await gateway.metric('abohawa_connections')) === 0)
  t.equal(await gateway.metric('abohawa_connections_unauthenticated'), 0)
}

t.test('every method is answered with 400 and the sentence, whatever follows it', async t => {
  const gateway = await startTlsGateway(t, provider)
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
    const error = 'the request came over plain HTTP; HTTPS is required'
    t.strictSame(answer.body, { error, code: 'https_required' })
    t.match(answer.headers, {
      connection: 'close',
      'cache-control': 'no-store',
      'x-ratelimit-limit': '0',
      'x-request-id': /^\S+$/,
    })
  }
  t.equal((await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used ?? 0, 0)
  await noneIsLeft(gateway)
})

t.test('a connection whose handshake does not come is closed after the request timeout', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__REQUEST_TIMEOUT: '500ms' })
  const sockets = Array.from({ length: 3 }, () => openSocket(gateway.apiUrl).resume())
  // Too little for a request and for a handshake.
  for (const socket of sockets) socket.write('GE')
  await until('they are closed', () => sockets.every(({ destroyed }) => destroyed))
  await noneIsLeft(gateway)
})

t.test('a thousand plain requests that read no answer leave nothing behind', async t => {
  const gateway = await startTlsGateway(t, provider)
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 100 }, () => openSocket(gateway.apiUrl).pause())
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\n\r\n', () => socket.resume())
    await until('this hundred is closed', () => sockets.every(({ closed }) => closed))
  }
  await noneIsLeft(gateway)
})
