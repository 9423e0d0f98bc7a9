// Who may use the ops listener: tools of the operator, but no web page. Requests are written byte by byte, with the headers
// that Chromium sends.

import t from 'tap'
import { purgeBytes as purge, refusedFor } from '../support/ops-requests.ts'
import { requestBytes, sendRaw } from '../support/raw-http.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'

const forecastPath = '/v1/forecast?latitude=23.8&longitude=90.4&current=temperature_2m'
const paths = [
  '/livez',
  '/readyz',
  '/metrics',
  '/cache/cell?of=district/3026',
  `/provider${forecastPath}`,
  '/provider/data/ecmwf_ifs/static/meta.json',
]
const chromium =
  'user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36'

const start = async (t: Parameters<typeof startGateway>[0], env: Record<string, string> = {}) => {
  const provider = await startScriptedProvider(t)
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const refused = (reason: string) => refusedFor(gateway.opsUrl, reason)
  const get = (path: string, headers: readonly string[]) =>
    sendRaw(gateway.opsUrl, requestBytes(`GET ${path}`, headers))
  const purges = () => gateway.logged.filter(({ msg }) => msg === 'cache purged').length
  return { provider, gateway, refused, get, purges }
}

t.test('a foreign host name is refused on every path, whatever its port', async t => {
  const { provider, gateway, refused, get, purges } = await start(t)
  const hosts: [header: readonly string[], shown: string][] = [
    [['host: evil.example'], '"evil.example"'],
    [['host: evil.example:9090'], '"evil.example:9090"'],
    [['host: localhost.evil.example'], '"localhost.evil.example"'],
    [['host: 127.0.0.1.evil.example'], '"127.0.0.1.evil.example"'],
    [['host: evil.localhost'], '"evil.localhost"'],
    [['host: 127.1'], '"127.1"'],
    [['host: 2130706433'], '"2130706433"'],
    [['host: 0x7f.0.0.1'], '"0x7f.0.0.1"'],
    [['host: [::1'], '"[::1"'],
    [['host: [localhost]'], '"[localhost]"'],
    [['host: localhost:9090:9090'], '"localhost:9090:9090"'],
    [['host: localhost:port'], '"localhost:port"'],
    [['host: me@localhost'], '"me@localhost"'],
    [['host: localhost/x'], '"localhost/x"'],
    [['host: localhost, evil.example'], '"localhost, evil.example"'],
    [['host:'], '""'],
    [[], 'missing'],
    [['host: localhost', 'host: evil.example'], 'given more than once'],
    [['host: localhost', 'host: localhost'], 'given more than once'],
    [[`host: ${'x'.repeat(300)}.example`], `"${'x'.repeat(60)}…"`],
    [['host: \xff\xfe"<script>'], '"ÿþ\\"<script>"'],
  ]
  for (const [headers, shown] of hosts) {
    const { status, body } = await get('/metrics', headers)
    t.match({ status, body }, { status: 403, body: { error: String } }, headers.join())
    t.equal(
      body?.error,
      `the host header is ${shown}; allowed: an IP address, localhost, the name in ops.host and those in ops.allowedHosts`,
    )
  }
  for (const path of [...paths, '/', '/nothing']) {
    const { status } = await get(path, ['host: evil.example'])
    t.equal(status, 403, path)
  }
  t.equal((await sendRaw(gateway.opsUrl, purge(['host: evil.example']))).status, 403)
  t.equal(purges(), 0, 'nothing was purged')
  t.strictSame(provider.requests, [], 'and nothing spent')
  t.equal(await refused('host'), hosts.length + paths.length + 3)
})

t.test('addresses, localhost and the configured names are allowed', async t => {
  const { get, gateway } = await start(t, { ABOHAWA_OPS__ALLOWED_HOSTS: 'ops.example, Gateway-1' })
  const { port } = new URL(gateway.opsUrl)
  // The pod's address, as Prometheus and the kubelet send it; the address of a machine; all forms of loopback.
  for (const host of [
    `127.0.0.1:${port}`,
    '127.0.0.1',
    '127.9.9.9:1',
    '[::1]:9090',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '10.244.3.17:9090',
    '192.168.0.5',
    '[fd00::2]:9090',
    'localhost:9090',
    'LOCALHOST',
    'localhost.',
    'ops.example:9090',
    'OPS.example',
    'gateway-1:9090',
  ])
    t.equal((await get('/metrics', [`host: ${host}`])).status, 200, host)
  t.equal((await get('/metrics', ['host: other.example'])).status, 403)
  const named = await start(t, { ABOHAWA_OPS__HOST: 'localhost' })
  t.equal((await named.get('/livez', ['host: localhost'])).status, 200)
})

t.test(
  'a page of another site or origin is refused on every path; the address bar and tools are not',
  async t => {
    const { provider, gateway, refused, get, purges } = await start(t)
    const { host } = new URL(gateway.opsUrl)
    const own = [`host: ${host}`, chromium]
    const fromPages: [reason: string, headers: readonly string[]][] = [
      // <img src="http://127.0.0.1:9090/…">, a frame, a link: no origin, and the page can suppress the referrer.
      ['fetch_site', ['sec-fetch-site: cross-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: image']],
      ['fetch_site', ['sec-fetch-site: cross-site', 'sec-fetch-mode: navigate', 'sec-fetch-dest: iframe']],
      // From another port of the same machine.
      ['fetch_site', ['sec-fetch-site: same-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: script']],
      ['fetch_site', ['sec-fetch-site: none', 'sec-fetch-site: cross-site']],
      ['fetch_site', ['sec-fetch-site: something-new']],
      // fetch() with CORS, and browsers without sec-fetch-site.
      ['origin', ['sec-fetch-site: cross-site', 'origin: http://evil.example']],
      ['origin', ['origin: http://evil.example']],
      ['origin', ['origin: null']],
      ['origin', [`origin: http://127.0.0.1:1`]],
      ['origin', [`origin: http://${host}.evil.example`]],
      ['origin', [`origin: ftp://${host}`]],
      ['origin', [`origin: http://${host}`, 'origin: http://evil.example']],
    ]
    let sent = 0
    for (const [reason, headers] of fromPages) {
      const before = await refused(reason)
      for (const path of paths) {
        const { status, body } = await get(path, [...own, ...headers])
        t.equal(status, 403, `${path} with ${headers.join()}`)
        t.match(body?.error, /^the (sec-fetch-site|origin) header is ".*"; allowed: /)
        sent += 1
      }
      t.equal((await sendRaw(gateway.opsUrl, purge([...own, ...headers]))).status, 403)
      t.equal((await refused(reason)) - before, paths.length + 1, reason)
    }
    t.ok(sent > 50)
    t.equal(
      (
        await sendRaw(
          gateway.opsUrl,
          requestBytes('OPTIONS /cache/purge', [...own, 'origin: http://evil.example']),
        )
      ).status,
      403,
      'preflight',
    )
    t.equal(purges(), 0)
    t.strictSame(provider.requests, [])

    for (const headers of [
      [],
      ['sec-fetch-mode: cors'],
      ['sec-fetch-site: none', 'sec-fetch-mode: navigate', 'sec-fetch-dest: document'],
      ['sec-fetch-site: same-origin', 'sec-fetch-mode: cors'],
      ['sec-fetch-site: same-origin', `origin: http://${host}`],
      [`origin: http://${host}`, 'sec-fetch-site: same-origin'],
    ])
      for (const path of paths) {
        const tool = headers.length === 0 ? [`host: ${host}`, 'user-agent: curl/8.5.0'] : own
        const spends = path.startsWith('/provider') && tool === own
        if (spends && !headers.includes('sec-fetch-site: same-origin')) continue
        t.equal((await get(path, [...tool, ...headers])).status, 200, `${path} with ${headers.join()}`)
      }
    const purged = await sendRaw(gateway.opsUrl, purge([`host: ${host}`]))
    t.match(purged, { status: 200, body: { kind: 'soft' } }, 'a tool purges')
  },
)

t.test(
  'without a token no browser spends anything but for a page of this listener, and it may read',
  async t => {
    const { provider, gateway, refused, get } = await start(t)
    const { host } = new URL(gateway.opsUrl)
    const browsers: (readonly string[])[] = [
      // A link in a mail, an address that redirects, a bookmark: no page is told of.
      [
        `host: ${host}`,
        chromium,
        'sec-fetch-site: none',
        'sec-fetch-mode: navigate',
        'sec-fetch-user: ?1',
        'sec-fetch-dest: document',
      ],
      [`host: ${host}`, 'sec-fetch-site: none'],
      // Browsers tell it to loopback and over HTTPS only: to http://10.0.0.5:9090 an image looks like the address bar.
      ['host: 10.0.0.5:9090', chromium],
      // Older than the header.
      [`host: ${host}`, 'user-agent: Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/89.0'],
      [`host: ${host}`, 'user-agent: Opera/9.80 (X11; Linux i686) Presto/2.12.388 Version/12.16'],
    ]
    for (const headers of browsers)
      for (const path of paths) {
        const { status, body } = await get(path, headers)
        if (!path.startsWith('/provider/')) t.equal(status, 200, path)
        else {
          t.equal(status, 403, `${path} with ${headers.join()}`)
          t.equal(
            body?.error,
            "the request comes from a browser and would spend the provider's quota; allowed: a tool such as curl, or a request with the token in ops.token",
          )
        }
      }
    t.strictSame(provider.requests, [])
    t.equal(await refused('browser'), 2 * browsers.length)
  },
)

t.test('an absolute target or an unneeded method is refused with one sentence', async t => {
  const { gateway, refused, get, purges } = await start(t)
  const host = ['host: 127.0.0.1']
  for (const target of ['http://evil.example/metrics', 'http://127.0.0.1/metrics', '*', '/metrics#x'])
    t.match(await sendRaw(gateway.opsUrl, requestBytes(`GET ${target}`, host)), { status: /40[04]/ }, target)
  for (const path of [
    '//metrics',
    '/./metrics',
    '/%6detrics',
    '/metrics/',
    '/cache//cell',
    '/%70rovider/v1/forecast',
    '/api/v1/locations',
  ])
    t.match(await get(path, host), { status: 404, body: { error: /^there is nothing here; try / } }, path)
  const methods: [string, string, string][] = [
    ['DELETE', '/metrics', 'GET, HEAD'],
    ['POST', '/readyz', 'GET, HEAD'],
    ['PUT', `/provider${forecastPath}`, 'GET, HEAD'],
    ['POST', `/provider${forecastPath}`, 'GET, HEAD'],
    ['OPTIONS', '/cache/cell?of=1,2', 'GET, HEAD'],
    ['GET', '/cache/purge', 'POST'],
    ['PUT', '/cache/purge', 'POST'],
  ]
  for (const [method, path, allow] of methods) {
    const answer = await sendRaw(gateway.opsUrl, requestBytes(`${method} ${path}`, host))
    t.match(
      answer,
      { status: 405, headers: { allow }, body: { error: `the method is ${method}; allowed: ${allow}` } },
      `${method} ${path}`,
    )
  }
  t.equal(await refused('method'), methods.length)
  t.equal(purges(), 0)
  const head = await sendRaw(gateway.opsUrl, requestBytes('HEAD /metrics', host))
  t.match(head, { status: 200, text: '', headers: { 'content-length': /^\d{4,}$/ } })
})

t.test('every response keeps browsers from running, framing or embedding it', async t => {
  const { gateway } = await start(t)
  const host = ['host: 127.0.0.1']
  const requests = [
    ...paths.map(path => requestBytes(`GET ${path}`, host)),
    requestBytes('GET /livez', ['host: evil.example']),
    requestBytes('GET /nothing', host),
    requestBytes('DELETE /metrics', host),
    requestBytes('GET /cache/cell', host),
    requestBytes('GET /provider/v2/forecast', host),
    purge(host),
    'not HTTP at all\r\n\r\n',
    requestBytes('GET /metrics', [...host, `x-long: ${'x'.repeat(20_000)}`]),
  ]
  for (const bytes of requests) {
    const answer = await sendRaw(gateway.opsUrl, bytes)
    t.match(
      answer.headers,
      {
        'content-type': /^(application\/json|text\/plain|application\/octet-stream)/,
        'x-content-type-options': 'nosniff',
        'content-security-policy': /^default-src 'none'; .*sandbox$/,
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      },
      `${answer.status} to ${bytes.slice(0, 50)}`,
    )
    t.equal(answer.headers['access-control-allow-origin'], undefined)
    if (answer.status >= 400) t.type(answer.body?.error, 'string')
  }
})
