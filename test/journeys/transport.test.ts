// HTTPS is required of consumers: TLS ends here, or at a trusted proxy that says so.

import { once } from 'node:events'
import { copyFileSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import t from 'tap'
import { Agent, request } from 'undici'
import { runCommand } from '../support/process.ts'
import { startProvider } from '../support/provider-process.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures')
const provider = await startProvider(t)
const list = '/api/v1/locations?type=division'

t.test('with a certificate it speaks HTTPS itself', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_SERVER__TLS__CERT: join(fixtures, 'localhost.crt'),
      ABOHAWA_SERVER__TLS__KEY: join(fixtures, 'localhost.key'),
    },
  })
  t.match(gateway.apiUrl, /^https:\/\/127\.0\.0\.1:\d+$/)
  const dispatcher = new Agent({ connect: { ca: readFileSync(join(fixtures, 'localhost.crt')) } })
  t.teardown(() => dispatcher.close())
  const send = (headers: Record<string, string>) =>
    request(`${gateway.apiUrl}${list}`, { dispatcher, headers })
  const answer = await send({ 'x-api-key': gateway.keys.free ?? '' })
  t.equal(answer.statusCode, 200)
  t.match(await answer.body.json(), { total: 8 })
  const refused = await send({})
  t.equal(refused.statusCode, 401)
  await refused.body.dump()
})

t.test('versions and ciphers that scanners refuse are refused, also after a renewal', async t => {
  const folder = t.testdir()
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') }
  const put = (name: string): void => {
    copyFileSync(join(fixtures, `${name}.key`), files.key)
    copyFileSync(join(fixtures, `${name}.crt`), files.cert)
  }
  put('localhost')
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__TLS__CERT: files.cert, ABOHAWA_SERVER__TLS__KEY: files.key },
  })
  const { hostname, port } = new URL(gateway.apiUrl)
  /** What was agreed on, or why nothing. */
  const agreed = async (offered: ConnectionOptions): Promise<string> => {
    // The client itself must be ready for what is refused.
    const ciphers = `${offered.ciphers ?? 'DEFAULT'}:@SECLEVEL=0`
    const socket = connectTls({
      port: Number(port),
      host: hostname,
      rejectUnauthorized: false,
      ...offered,
      ciphers,
    })
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
  await gateway.reloadConfig()
  await refusedTo()
})

t.test(
  'a stopping gateway finishes what is in flight, with TLS and without, and drops idle connections',
  async t => {
    const tls = {
      ABOHAWA_SERVER__TLS__CERT: join(fixtures, 'localhost.crt'),
      ABOHAWA_SERVER__TLS__KEY: join(fixtures, 'localhost.key'),
    }
    for (const more of [{}, tls]) {
      const gateway = await startGateway(t, {
        providerUrl: provider.url,
        env: { ...more, ABOHAWA_SERVER__REQUEST_TIMEOUT: '100ms' },
      })
      const dispatcher = new Agent({ connect: { ca: readFileSync(join(fixtures, 'localhost.crt')) } })
      t.teardown(() => dispatcher.close())
      const { hostname, port } = new URL(gateway.apiUrl)
      // It reads whatever comes: on a slow machine a 400 may come before the end.
      const silent = connect(Number(port), hostname).resume()
      const dropped = once(silent, 'close')
      await once(silent, 'connect')
      await provider.steer({ hold: true })
      const slow = request(`${gateway.apiUrl}/api/v1/weather/district/3026`, {
        dispatcher,
        headers: { 'x-api-key': gateway.keys.free ?? '' },
      })
      await until('the provider has a request', async () => (await provider.state()).inFlight > 0)
      const closed = gateway.close()
      // An idle connection is dropped after the request timeout; the request in flight outlives that.
      await dropped
      await provider.steer({ hold: false })
      const { statusCode, body } = await slow
      t.equal(statusCode, 200)
      t.ok((await body.text()).length > 1_000)
      await closed
    }
  },
)

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
  for (const headers of [
    {},
    { 'x-forwarded-proto': 'http' },
    { 'x-forwarded-proto': 'https, http' },
    { 'x-forwarded-proto': 'http, https' },
    { 'x-forwarded-proto': '' },
  ]) {
    const refused = await send(headers as Record<string, string>)
    t.equal(refused.status, 400, JSON.stringify(headers))
    t.match(refused.body.error, /HTTPS is required$/)
    t.equal(refused.headers['x-ratelimit-limit'], '0')
  }
  t.equal((await send({}, null)).status, 400)
  t.equal(
    (await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used,
    2,
    'a 400 of the transport costs nothing',
  )
})

t.test('an address that is not trusted can’t claim HTTPS', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__TRUSTED_PROXIES: '10.0.0.0/8' },
  })
  const headers = { 'x-forwarded-proto': 'https' }
  t.equal(
    (await sendRequest(`${gateway.apiUrl}${list}`, { key: gateway.keys.free ?? '', headers })).status,
    400,
  )
})

t.test('TLS that ends here and TLS that ends at a proxy are each judged by themselves', async t => {
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_SERVER__TLS__CERT: join(fixtures, 'localhost.crt'),
      ABOHAWA_SERVER__TLS__KEY: join(fixtures, 'localhost.key'),
      ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.2/32',
    },
  })
  const ca = readFileSync(join(fixtures, 'localhost.crt'))
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

t.test(
  'on loopback, with neither configured, plain HTTP is allowed, and a header changes nothing',
  async t => {
    const gateway = await startGateway(t, { providerUrl: provider.url })
    t.equal(
      (await gateway.get('/locations?type=division', { headers: { 'x-forwarded-proto': 'http' } })).status,
      200,
    )
  },
)

t.test('on any other address the start fails and says what to configure', async t => {
  const env = { ABOHAWA_SERVER__HOST: '0.0.0.0', ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db') }
  const { code, stderr } = await runCommand(['serve'], env)
  t.equal(code, 1)
  t.match(stderr, /server\.host.*0\.0\.0\.0/)
  t.match(stderr, /server\.tls\.cert/)
  t.match(stderr, /server\.trustedProxies/)
})

t.test('a certificate that can’t be read or is none stops the start with one sentence', async t => {
  const folder = t.testdir({ 'not.pem': 'hello' })
  for (const [cert, message] of [
    ['/nowhere.pem', /^abohawa: server\.tls\.cert is \/nowhere\.pem, which can't be read/],
    [join(folder, 'not.pem'), /^abohawa: server\.tls\.cert and server\.tls\.key can't be used/],
  ] as const) {
    const { code, stderr } = await runCommand(['serve'], {
      ABOHAWA_STORE__PATH: join(folder, 'store.db'),
      ABOHAWA_SERVER__PORT: '0',
      ABOHAWA_OPS__PORT: '0',
      ABOHAWA_SERVER__TLS__CERT: cert,
      ABOHAWA_SERVER__TLS__KEY: join(fixtures, 'localhost.key'),
    })
    t.equal(code, 1)
    t.match(stderr, message)
    t.equal(stderr.trim().split('\n').length, 1)
  }
})
