// Without it plain HTTP, old TLS or a false proxy header could pass, or connections could be left open.

import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import t from 'tap'
import { Agent, request } from 'undici'
import { renewedAt, startTlsGateway, trusting } from '../support/http2-client.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-connection.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures')
const provider = await startProviderHere(t)
const list = '/api/v1/locations?type=division'

t.test('versions and ciphers that scanners refuse are refused, also after a renewal', async t => {
  const folder = t.testdir()
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  const put = (name: string): void => {
    copyFileSync(join(fixtures, `${name}.key`), files.key)
    copyFileSync(join(fixtures, `${name}.crt`), files.cert)
  }
  put('localhost')
  const env = { ABOHAWA_SERVER__TLS__CERT: files.cert, ABOHAWA_SERVER__TLS__KEY: files.key }
  const gateway = await startTlsGateway(t, provider, env, manualClock(renewedAt))
  const { hostname, port } = new URL(gateway.apiUrl)
  /** What was agreed on, or why nothing. */
  const agreed = async (offered: ConnectionOptions): Promise<string> => {
    // The client itself must be ready for what is refused.
    const ciphers = `${offered.ciphers ?? 'DEFAULT'}:@SECLEVEL=0`
    const at = { port: Number(port), host: hostname, rejectUnauthorized: false }
    const socket = connectTls({ ...at, ...offered, ciphers })
    try {
      await once(socket, 'secureConnect')
      return `${socket.getProtocol()} ${socket.getCipher().name}`
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? String(error)
    } finally {
      socket.destroy()
    }
  }
  const refusedTo = async (): Promise<void> => {
    for (const version of ['TLSv1', 'TLSv1.1'] as const)
      t.match(await agreed({ minVersion: version, maxVersion: version }), /^ERR_SSL|ECONNRESET/, version)
    for (const ciphers of ['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384', 'ECDHE-ECDSA-AES128-CCM'])
      t.match(await agreed({ maxVersion: 'TLSv1.2', ciphers }), /^ERR_SSL|ECONNRESET/, ciphers)
    t.equal(
      await agreed({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }),
      'TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256',
    )
    t.equal(await agreed({}), 'TLSv1.3 TLS_AES_256_GCM_SHA384')
  }
  await refusedTo()
  put('renewed')
  t.equal(await gateway.reloadConfig(), 'applied')
  await refusedTo()
})

t.test('behind a trusted proxy only what came over HTTPS passes, and 400 comes before 401', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.0/8' },
  })
  const key = gateway.keys.free ?? ''
  const send = (headers: Record<string, string>, presented: string | null = key) =>
    sendRequest(`${gateway.apiUrl}${list}`, { key: presented, headers })
  t.equal((await send({ 'x-forwarded-proto': 'https' })).status, 200)
  t.equal((await send({ 'x-forwarded-proto': 'HTTPS, https' })).status, 200)
  for (const proto of [undefined, 'http', 'https, http', 'http, https', '']) {
    const refused = await send(proto === undefined ? {} : { 'x-forwarded-proto': proto })
    t.match(refused, { status: 400, body: { error: /HTTPS is required$/ } }, `${proto}`)
    t.equal(refused.headers['x-ratelimit-limit'], '0')
  }
  t.equal((await send({}, null)).status, 400)
  t.equal(
    (await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used,
    2,
    'a 400 of the transport costs nothing',
  )
})

t.test('who is not trusted can’t claim HTTPS, and without a proxy the header changes nothing', async t => {
  for (const [env, proto, status] of [
    [{ ABOHAWA_SERVER__TRUSTED_PROXIES: '10.0.0.0/8' }, 'https', 400],
    [{}, 'http', 200],
  ] as const) {
    const { get } = await startGateway(t, { providerUrl: provider.url, env })
    const headers = { 'x-forwarded-proto': proto }
    t.equal((await get('/locations?type=division', { headers })).status, status)
  }
})

t.test('TLS that ends here and TLS that ends at a proxy are each checked by themselves', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.2/32' })
  // The certificate is for this address too.
  const { ca } = trusting
  const statusFrom = async (localAddress: string, headers: Record<string, string>) => {
    const dispatcher = new Agent({ localAddress, connect: { ca } })
    const { statusCode, body } = await request(`${gateway.apiUrl}${list}`, {
      dispatcher,
      headers: { 'x-api-key': gateway.keys.free ?? '', ...headers },
    })
    await body.dump()
    await dispatcher.close()
    return statusCode
  }
  // Straight from a consumer, whose own header has no effect.
  t.equal(await statusFrom('127.0.0.1', {}), 200)
  t.equal(await statusFrom('127.0.0.1', { 'x-forwarded-proto': 'http' }), 200)
  // From the proxy: forwarded requests, and requests of the proxy itself.
  t.equal(await statusFrom('127.0.0.2', { 'x-forwarded-proto': 'https' }), 200)
  t.equal(await statusFrom('127.0.0.2', { 'x-forwarded-proto': 'http' }), 400)
  t.equal(await statusFrom('127.0.0.2', { 'x-forwarded-proto': '' }), 400)
  t.equal(await statusFrom('127.0.0.2', {}), 200)
})

const noneIsLeft = async (gateway: TestGateway) => {
  await until('no connection is left', async () => (await gateway.metric('abohawa_connections')) === 0)
  t.equal(await gateway.metric('abohawa_connections_unauthenticated'), 0)
}

t.test('plain HTTP on the port of TLS gets one 400 that says so, whatever its method', async t => {
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
    t.strictSame(answer.body, { error, code: 'https_required', doc_url: '/docs#error-https_required' })
    t.match(answer.headers, {
      connection: 'close',
      'cache-control': 'no-store',
      'x-ratelimit-limit': '0',
      'x-request-id': /^\S+$/,
    })
  }
  t.equal((await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used ?? 0, 0)
  await noneIsLeft(gateway)

  // A thousand that read no answer leave nothing behind.
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 100 }, () => openSocket(gateway.apiUrl).pause())
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\n\r\n', () => socket.resume())
    await until('this hundred is closed', () => sockets.every(({ closed }) => closed))
  }
  await noneIsLeft(gateway)
})

t.test('a connection whose handshake does not come is closed after the request timeout', async t => {
  const gateway = await startTlsGateway(t, provider, { ABOHAWA_TEST_SERVER__REQUEST_TIMEOUT: '500ms' })
  const sockets = Array.from({ length: 3 }, () => openSocket(gateway.apiUrl).resume())
  // Too little for a request and for a handshake.
  for (const socket of sockets) socket.write('GE')
  await until('they are closed', () => sockets.every(({ destroyed }) => destroyed))
  await noneIsLeft(gateway)
})
