// Without it, a web page in the operator's browser could use the ops listener.

import t, { type Test } from 'tap'
import { requestBytes } from '../support/raw-connection.ts'
import { purgeBytes as purge, refreshBytes as refresh, startOps } from './ops-requests.ts'

const forecastPath = '/v1/forecast?latitude=23.8&longitude=90.4&current=temperature_2m'
const paths = [
  ...['/livez', '/readyz', '/metrics', '/cache/cell?of=district/3026', '/status', '/cells', '/search?q=a'],
  ...[`/provider${forecastPath}`, '/provider/data/ecmwf_ifs/static/meta.json'],
]
const chromium =
  'user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36'

const start = async (t: Test, env: Record<string, string> = {}) => {
  const started = await startOps(t, { env })
  const { provider, gateway } = started
  const isUntouched = () =>
    provider.requests.length === 0 && !gateway.logged.some(({ msg }) => msg === 'cache purged')
  return { ...started, isUntouched, host: `host: ${new URL(gateway.opsUrl).host}` }
}

t.test('a foreign host name is refused on every path, whatever its port', async t => {
  const { refused, get, send, isUntouched } = await start(t)
  const names = [
    ...['evil.example:9090', '127.0.0.1.evil.example', 'evil.localhost', '127.1', '2130706433', '[::1'],
    ...['localhost:port', 'localhost:90:90', 'me@localhost', 'localhost/x', 'localhost, evil.example', ''],
  ]
  const hosts: [headers: readonly string[], shown: string][] = [
    ...names.map((name): [string[], string] => [[`host: ${name}`], `"${name}"`]),
    [[], 'none'],
    [['host: localhost', 'host: localhost'], 'several'],
    [[`host: ${'x'.repeat(300)}.example`], `"${'x'.repeat(60)}…"`],
    [['host: \xff\xfe"<script>'], '"ÿþ\\"<script>"'],
  ]
  const allowed = 'an IP address, localhost, the name in ops.host or a name in ops.allowedHosts'
  for (const [headers, shown] of hosts) {
    const { status, body } = await get('/metrics', headers)
    t.strictSame([status, body?.error], [403, `the host header must be ${allowed}, got ${shown}`])
  }
  const evil = ['host: evil.example']
  for (const path of [...paths, '/', '/nothing']) t.equal((await get(path, evil)).status, 403, path)
  for (const bytes of [purge(evil), refresh(evil)]) t.equal((await send(bytes)).status, 403)
  t.ok(isUntouched(), 'nothing was purged or spent')
  t.equal(await refused('host'), hosts.length + paths.length + 4)
})

t.test('addresses, localhost and the configured names are allowed', async t => {
  const { get, gateway } = await start(t, { ABOHAWA_OPS__ALLOWED_HOSTS: 'ops.example, Gateway-1' })
  const { port } = new URL(gateway.opsUrl)
  // The pod's address, as Prometheus and the kubelet send it; the address of a machine; all forms of loopback.
  for (const name of [
    ...[`127.0.0.1:${port}`, '127.0.0.1', '127.9.9.9:1', '[::1]:9090', '[::1]', '[::ffff:127.0.0.1]'],
    ...['10.244.3.17:9090', '192.168.0.5', '[fd00::2]:9090', 'localhost:9090', 'LOCALHOST', 'localhost.'],
    ...['ops.example:9090', 'OPS.example', 'gateway-1:9090'],
  ])
    t.equal((await get('/metrics', [`host: ${name}`])).status, 200, name)
  t.equal((await get('/metrics', ['host: other.example'])).status, 403)
  const named = await start(t, { ABOHAWA_OPS__HOST: 'localhost' })
  t.equal((await named.get('/livez', ['host: localhost'])).status, 200)
})

t.test('a page of another site or origin is refused on every path, and tools are not', async t => {
  const { refused, get, send, isUntouched, host } = await start(t)
  const own = [host, chromium]
  const origin = host.replace('host: ', 'origin: http://')
  const fromPages: [reason: string, headers: readonly string[]][] = [
    // <img src="http://127.0.0.1:9090/…">, a frame, a link: no origin, and the page can suppress the referrer.
    ['fetch_site', ['sec-fetch-site: cross-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: image']],
    // From another port of the same machine.
    ['fetch_site', ['sec-fetch-site: same-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: script']],
    ['fetch_site', ['sec-fetch-site: none', 'sec-fetch-site: cross-site']],
    ['fetch_site', ['sec-fetch-site: something-new']],
    // fetch() with CORS, and browsers without sec-fetch-site.
    ['origin', ['sec-fetch-site: cross-site', 'origin: http://evil.example']],
    ['origin', ['origin: http://evil.example']],
    ['origin', ['origin: null']],
    ['origin', ['origin: http://127.0.0.1:1']],
    ['origin', [`${origin}.evil.example`]],
    ['origin', [origin.replace('http', 'ftp')]],
    ['origin', [origin, 'origin: http://evil.example']],
    ['origin', [origin, 'origin: http://evil.example', 'sec-fetch-site: same-origin']],
    ['origin', ['origin: http://evil.example', 'sec-fetch-site: same-origin', 'sec-fetch-site: none']],
  ]
  for (const [reason, more] of fromPages) {
    const before = await refused(reason)
    const headers = [...own, ...more]
    for (const path of paths) {
      const { status, body } = await get(path, headers)
      t.equal(status, 403, `${path} with ${more.join()}`)
      t.match(body?.error, /^the (sec-fetch-site|origin) header must be .*, got ".*"; /)
    }
    for (const bytes of [purge(headers), refresh(headers)]) t.equal((await send(bytes)).status, 403)
    t.equal((await refused(reason)) - before, paths.length + 2, reason)
  }
  const preflight = requestBytes('OPTIONS /cache/purge', [...own, 'origin: http://evil.example'])
  t.equal((await send(preflight)).status, 403, 'preflight')
  t.ok(isUntouched())

  const tool = [host, 'user-agent: curl/8.5.0']
  for (const headers of [
    tool,
    [...own, 'sec-fetch-site: none', 'sec-fetch-mode: navigate', 'sec-fetch-dest: document'],
    [...own, 'sec-fetch-site: same-origin', 'sec-fetch-mode: cors'],
    [...own, origin, 'sec-fetch-site: same-origin'],
    // Behind a proxy that sends its own host header.
    [...own, 'origin: https://ops.example', 'sec-fetch-site: same-origin'],
  ])
    for (const path of paths) {
      const spends = path.startsWith('/provider') && !headers.includes('sec-fetch-site: same-origin')
      if (spends && headers !== tool) continue
      t.equal((await get(path, headers)).status, 200, `${path} with ${headers.join()}`)
    }
  t.equal((await send(refresh([...own, 'sec-fetch-site: same-origin', origin]))).status, 200)
  t.hasStrict(await send(purge([host])), { status: 200, body: { kind: 'soft' } }, 'a tool purges')
})

t.test('without a token browsers may read, and spend only for a page of this listener', async t => {
  const { refused, get, send, isUntouched, host } = await start(t)
  const address = ['sec-fetch-mode: navigate', 'sec-fetch-user: ?1', 'sec-fetch-dest: document']
  const browsers: (readonly string[])[] = [
    // A link in a mail, an address that redirects, a bookmark: no page is told of.
    [host, chromium, 'sec-fetch-site: none', ...address],
    // Browsers tell it to loopback and over HTTPS only: to http://10.0.0.5:9090 an image looks like the address bar.
    ['host: 10.0.0.5:9090', chromium],
    // Older than the header.
    [host, 'user-agent: Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/89.0'],
  ]
  const error =
    "a browser must not send this request, because it spends the provider's quota; use a tool such as curl, or set ops.token"
  for (const headers of browsers) {
    for (const path of paths) {
      const { status, body } = await get(path, headers)
      const wanted = path.startsWith('/provider/') ? [403, error] : [200, undefined]
      t.strictSame([status, body?.error], wanted, `${path} with ${headers.join()}`)
    }
    t.hasStrict(await send(refresh(headers)), { status: 403, body: { error } })
  }
  t.ok(isUntouched())
  t.equal(await refused('browser'), 3 * browsers.length)
})

t.test('an absolute target or an unneeded method is refused with one sentence', async t => {
  const { refused, get, send, isUntouched, host } = await start(t)
  for (const target of ['http://evil.example/metrics', 'http://127.0.0.1/metrics', '*', '/metrics#x'])
    t.match(await send(requestBytes(`GET ${target}`, [host])), { status: /40[04]/ }, target)
  for (const path of ['//metrics', '/./metrics', '/metrics/'])
    t.match(await get(path, [host]), { status: 404, body: { error: /^there is nothing here; try / } }, path)
  const methods: [method: string, path: string, allow: string][] = [
    ['DELETE', '/metrics', 'GET, HEAD'],
    ['POST', `/provider${forecastPath}`, 'GET, HEAD'],
    ['OPTIONS', '/cache/cell?of=1,2', 'GET, HEAD'],
    ['PUT', '/cache/purge', 'POST'],
    ['GET', '/cache/refresh?of=1,2', 'POST'],
  ]
  for (const [method, path, allow] of methods) {
    const answer = await send(requestBytes(`${method} ${path}`, [host]))
    const error = `the method must be one of ${allow}, got ${method}`
    t.hasStrict(answer, { status: 405, headers: { allow }, body: { error } }, `${method} ${path}`)
  }
  t.equal(await refused('method'), methods.length)
  t.ok(isUntouched())
  const head = await send(requestBytes('HEAD /metrics', [host]))
  t.match(head, { status: 200, text: '', headers: { 'content-length': /^\d{4,}$/ } })
})

t.test('every response keeps browsers from running, framing or embedding it', async t => {
  const { send, host } = await start(t)
  const requests = [
    ...[...paths, '/nothing', '/cache/cell'].map(path => requestBytes(`GET ${path}`, [host])),
    requestBytes('GET /livez', ['host: evil.example']),
    requestBytes('DELETE /metrics', [host]),
    purge([host]),
    'not HTTP at all\r\n\r\n',
    requestBytes('GET /metrics', [host, `x-long: ${'x'.repeat(20_000)}`]),
  ]
  const guards = {
    'content-type': /^(application\/json|text\/plain|application\/octet-stream)/,
    'x-content-type-options': 'nosniff',
    'content-security-policy': /^default-src 'none'; .*sandbox$/,
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'no-store',
    'access-control-allow-origin': undefined,
  }
  for (const bytes of requests) {
    const { status, headers, body } = await send(bytes)
    t.match(headers, guards, `${status} to ${bytes.slice(0, 50)}`)
    if (status >= 400) t.type(body?.error, 'string')
  }
})
