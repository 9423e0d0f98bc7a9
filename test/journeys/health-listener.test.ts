// Without it probes and Prometheus could get no answer during a flood, or reach what is for operators only.

import t from 'tap'
import { startCommand } from '../support/process.ts'
import { openSocket, requestBytes, sendRaw } from '../support/raw-connection.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'

const providerUrl = 'http://127.0.0.1:9'
const host = 'host: 10.244.3.17:9091'
const chromium = 'user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0'

const start = async (t: Teardown, env: Record<string, string> = {}) => {
  const gateway = await startGateway(t, { providerUrl, env: { ABOHAWA_HEALTH__PORT: '0', ...env } })
  const url = gateway.healthUrl ?? ''
  const get = (path: string, headers: readonly string[] = [host]) =>
    sendRaw(url, requestBytes(`GET ${path}`, headers))
  return { gateway, url, get }
}

t.test('without health.port there is no such listener', async t => {
  const gateway = await startGateway(t, { providerUrl })
  t.equal(gateway.healthUrl, undefined)
})

t.test('health and metrics answer there and on the ops listener, and nothing else does there', async t => {
  const { gateway, url, get } = await start(t, {
    ABOHAWA_OPS__TOKEN: '0123456789abcdef0123456789abcdef',
    ABOHAWA_HEALTH__HOST: '0.0.0.0',
  })
  t.match(url, /^http:\/\/0\.0\.0\.0:/)
  t.not(url, gateway.opsUrl)
  for (const listener of [url, gateway.opsUrl]) {
    const ask = (path: string) => sendRaw(listener, requestBytes(`GET ${path}`, [host]))
    t.hasStrict(await ask('/livez'), { status: 200, body: { status: 'live' } })
    t.has(await ask('/readyz'), { status: 200, body: { status: 'ready', detail: { store: 'embedded' } } })
    t.match((await ask('/metrics')).text, /^abohawa_catalogue_places \d+$/m)
  }
  const error = 'there is nothing here; try /livez, /readyz or /metrics'
  for (const path of ['/', '/cache/cell?of=district/3026', '/provider/v1/forecast', '/api/v1/locations'])
    t.hasStrict(await get(path), { status: 404, body: { error } })
  for (const method of ['POST', 'OPTIONS', 'DELETE', 'TRACE']) {
    const answer = await sendRaw(url, requestBytes(`${method} /metrics`, [host]))
    t.hasStrict(answer, { status: 405, headers: { allow: 'GET, HEAD' } })
  }
})

t.test('it is asked by an address or an allowed name, and by no web page', async t => {
  const { get } = await start(t, { ABOHAWA_OPS__ALLOWED_HOSTS: 'gateway-1' })
  for (const name of ['gateway-1:9091', 'localhost', '127.0.0.1:9091'])
    t.equal((await get('/metrics', [`host: ${name}`])).status, 200, name)
  const allowed = 'an IP address, localhost, the name in health.host or a name in ops.allowedHosts'
  const error = `the host header must be ${allowed}, got "evil.example"`
  t.hasStrict(await get('/metrics', ['host: evil.example']), { status: 403, body: { error } })
  for (const header of ['sec-fetch-site: same-site', 'origin: http://evil.example'])
    t.equal((await get('/metrics', [host, chromium, header])).status, 403, header)
  t.equal((await get('/metrics', [host, chromium, 'sec-fetch-site: none'])).status, 200, 'the address bar')
})

t.test('a flood keeps no probe and no operator waiting, and draining is told', async t => {
  const gateway = await startCommand(t, ['serve'], ['ops', 'health', 'api'], {
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_SERVER__DRAIN_FOR: '2s',
    ABOHAWA_OPS__PORT: '0',
    ABOHAWA_HEALTH__PORT: '0',
    ABOHAWA_TEST_HEALTH__MAX_CONNECTIONS: '64',
    ABOHAWA_STORE__PATH: `${t.testdir()}/store.db`,
    ABOHAWA_PROVIDER__BASE_URL: providerUrl,
  })
  const url = gateway.urls.health ?? ''
  const ready = () => sendRequest(`${url}/readyz`)
  t.equal((await ready()).status, 200)
  // Half requests and answers that nobody takes fill no place that a probe needs.
  for (const bytes of [
    'GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-',
    'GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'.repeat(200),
  ]) {
    const sockets = Array.from({ length: 40 }, () => openSocket(url).pause())
    for (const socket of sockets) socket.write(bytes)
    for (let i = 0; i < 10; i++)
      for (const path of ['/livez', '/readyz'])
        t.equal((await sendRaw(url, requestBytes(`GET ${path}`, [host]))).status, 200, path)
    t.equal((await sendRequest(`${gateway.urls.ops}/livez`)).status, 200)
    for (const socket of sockets) socket.destroy()
  }
  gateway.child.kill('SIGTERM')
  await until('it says that it drains', async () => {
    const { status, body } = await ready()
    return status === 503 && body.status === 'draining'
  })
  t.equal(await gateway.exited, 0)
})

t.test('an address that is taken fails the start with the names of the settings', async t => {
  const { url } = await start(t)
  const { port } = new URL(url)
  const taken = `^can't listen on 127\\.0\\.0\\.1:${port} \\(health\\.host, health\\.port\\): `
  await t.rejects(start(t, { ABOHAWA_HEALTH__PORT: port }), { message: new RegExp(taken) })
})
