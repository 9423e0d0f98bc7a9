// Without it the nginx of the kit could hide the client, drop headers, or answer with its own HTML.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import t from 'tap'
import { Agent, request } from 'undici'
import { loadConfig } from '../../src/config/load.ts'
import { createKey, processEnv } from '../scenarios/set-up.ts'
import { makeCertificate } from '../support/certificate-chain.ts'
import { freePort } from '../support/listening.ts'
import { startCommand } from '../support/process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { testRedis } from '../support/redis-server.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { until } from '../support/until.ts'
import { replaced, startNginx, withoutNginx } from './nginx.ts'

skipFileIf(t, withoutNginx)

const path = '/api/v1/locations?type=division'
const opsToken = '0123456789abcdef0123456789abcdef'
const folder = t.testdir()
const names = 'subjectAltName=DNS:weather.example,DNS:*.weather.example,DNS:localhost'
const { cert, key: certKey } = makeCertificate(folder, 'weather.example', 2, '-addext', names)
const [https, http, ...ports] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
const redis = await testRedis(t)
const env = processEnv('http://127.0.0.1:9', {
  ...redis.env,
  ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.1',
  ABOHAWA_SERVER__DRAIN_FOR: '500ms',
  ABOHAWA_OPS__TOKEN: opsToken,
  ABOHAWA_OPS__ALLOWED_HOSTS: 'ops.weather.example',
  ABOHAWA_LOG__LEVEL: 'info',
  ABOHAWA_LOG__ACCESS: 'true',
})
const key = await createKey(env)
const gateways = await Promise.all(
  ports
    .slice(0, 2)
    .map(port => startCommand(t, ['serve'], ['api', 'ops'], { ...env, ABOHAWA_SERVER__PORT: String(port) })),
)

const site = replaced(readFileSync('deploy/nginx/abohawa.conf', 'utf8'), {
  'listen 80;': `listen 127.0.0.1:${http};`,
  'listen 443 ssl http2;': `listen 127.0.0.1:${https} ssl http2;`,
  '/etc/nginx/tls/abohawa.crt': cert,
  '/etc/nginx/tls/abohawa.key': certKey,
  '/var/log/nginx/abohawa.log': join(folder, 'access.log'),
  '/var/log/nginx/abohawa-ops.log': join(folder, 'ops.log'),
  'allow 10.0.0.0/8;': 'allow 127.0.0.2;',
  '127.0.0.1:9090': new URL(gateways[0]?.urls.ops ?? '').host,
  '127.0.0.1:8081': `127.0.0.1:${ports[0]}`,
  '127.0.0.1:8082': `127.0.0.1:${ports[1]}`,
})
await startNginx(t, folder, site, https)

t.test('nginx closes idle connections before a gateway does', async t => {
  const [, seconds] = /^\s+keepalive_timeout (\d+)s;$/m.exec(site) ?? []
  t.ok(Number(seconds) * 1000 < loadConfig({ files: [], env: {} }).server.keepAliveTimeoutMs, String(seconds))
})

const origin = `https://127.0.0.1:${https}`
// Not nginx's own address.
const client = '127.0.0.2'
const agent = new Agent({
  connect: { ca: readFileSync(cert), servername: 'weather.example' },
  localAddress: client,
  connections: 16,
})
t.teardown(() => agent.destroy())
const get = async (where: string, headers: Record<string, string> = {}) => {
  const answer = await request(where.startsWith('http') ? where : `${origin}${where}`, {
    dispatcher: agent,
    headers: { 'x-api-key': key, ...headers },
  })
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
}
const answeredLines = () =>
  gateways
    .flatMap(({ lines }) => lines)
    .map(line => JSON.parse(line))
    .filter(({ msg }) => msg === 'answered')

t.test('quota, validators and compression of the gateway reach the client', async t => {
  const { status, headers } = await get(path, { 'accept-encoding': 'gzip' })
  t.equal(status, 200)
  t.match(headers, {
    'x-ratelimit-limit': /^\d+$/,
    'x-ratelimit-remaining': /^\d+$/,
    'content-encoding': 'gzip',
    'strict-transport-security': /max-age/,
  })
  const { etag } = headers
  t.equal((await get(path, { 'accept-encoding': 'gzip', 'if-none-match': String(etag) })).status, 304)
  t.equal((await get(path, { 'x-api-key': 'svc_live_no' })).status, 401)
})

t.test('the client is the one that nginx sees, whatever the request claims', async t => {
  const requestId = 'claims-an-address'
  const claimed = {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-proto': 'http',
    forwarded: 'for=203.0.113.9',
  }
  const { status } = await get(path, { ...claimed, 'x-request-id': requestId })
  t.equal(status, 200, 'a proto of the client is not believed: TLS was ended here')
  const line = await until('the request is logged', () =>
    answeredLines().find(entry => entry.requestId === requestId),
  )
  t.equal(line.client, client)
})

const host = 'host: weather.example'
const long = 'a'.repeat(20_000)
const plain = `http://127.0.0.1:${http}`
const get1 = 'GET / HTTP/1.1'
type Refused = readonly [what: string, head: readonly string[], code: string, status?: number, where?: string]
const refused: readonly Refused[] = [
  ['a % without digits', ['GET /%zz HTTP/1.1', host], 'http_invalid'],
  ['%00', ['GET /a%00b HTTP/1.1', host], 'http_invalid'],
  ['no host', [get1], 'http_invalid'],
  ['two hosts', [get1, host, host], 'http_invalid'],
  ['TRACE', ['TRACE / HTTP/1.1', host], 'method_not_allowed', 405],
  ['a long URL', [`GET /${long} HTTP/1.1`, host], 'head_too_large'],
  ['a long header', [get1, host, `x: ${long}`], 'head_too_large'],
  ['a long body', ['POST / HTTP/1.1', host, 'content-length: 20000'], 'http_invalid'],
  ['a coding', [get1, host, 'transfer-encoding: no'], 'transfer_encoding_not_supported'],
  ['HTTP/3 on TCP', ['GET / HTTP/3.0', host], 'http_version_not_supported'],
  ['an internal path', ['GET /abohawa-refused/away HTTP/1.1', host], 'path_not_found', 404],
  ['plain HTTP on 443', [get1, host], 'https_required', 400, `http://127.0.0.1:${https}`],
  ['plain HTTP', ['GET /a HTTP/1.1', host], 'https_required', 308, plain],
  ['%zz in plain', ['GET /%zz HTTP/1.1', host], 'https_required', 400, plain],
]

t.test('what nginx refuses itself is JSON like every answer, under a code of the API', async t => {
  for (const [what, head, code, status = 400, url = origin] of refused) {
    const connection = await openRaw(t, url)
    const body = what === 'a long body' ? long : ''
    connection.send([...head, 'connection: close', '', body].join('\r\n'))
    const answer = await connection.answer()
    t.equal(answer.status, status, what)
    t.equal(answer.headers.get('content-type'), 'application/json', what)
    t.equal(answer.headers.get('cache-control'), 'no-store', what)
    t.match(JSON.parse(answer.body), { error: /^(the|transfer-encoding|there is nothing) /, code }, what)
    if (status === 308) t.equal(answer.headers.get('location'), 'https://weather.example/a')
    if (status === 405) t.equal(answer.headers.get('allow'), 'GET, HEAD')
    if (status !== 308 && url === origin) t.match(answer.headers.get('x-request-id'), /^[0-9a-f]{32}$/, what)
  }
})

t.test('a request has one id in both logs and in the answer, and no query is logged', async t => {
  const ids = {
    'my-request-1': /^my-request-1$/,
    '': /^[0-9a-f]{32}$/,
    'two words': /^[0-9a-f]{32}$/,
    [key]: /^[0-9a-f]{32}$/,
  }
  for (const [given, expected] of Object.entries(ids)) {
    const asked = `${path}&api_key=svc_live_secret`
    const { headers } = await get(asked, given === '' ? {} : { 'x-request-id': given })
    const id = String(headers['x-request-id'])
    t.match(id, expected, given === key ? 'a key' : given)
    const log = () => readFileSync(join(folder, 'access.log'), 'utf8')
    await until('nginx has logged it', () => log().includes(`200 ${id}\n`))
    await until('the gateway has logged it', () => answeredLines().some(({ requestId }) => requestId === id))
    t.match(log(), /GET \/api\/v1\/locations 200 /)
    t.notMatch(log(), /\?|svc_live/)
  }
})

t.test("operators reach a gateway's dashboard under a name of its own, and nobody else does", async t => {
  const ops = `ops.weather.example:${https}`
  const page = { host: ops, origin: `https://${ops}`, authorization: `Bearer ${opsToken}` }
  for (const path of ['/', '/dashboard/page/main.js', '/status', '/cells'])
    t.equal((await get(path, page)).status, 200, path)
  t.equal((await get('/status', { ...page, authorization: '' })).status, 401)
  t.equal((await get('/status', { ...page, origin: 'https://evil.example' })).status, 403)
  t.hasStrict(JSON.parse((await get('/status', { authorization: page.authorization })).text), {
    code: 'path_not_found',
  })
  // nginx's own address is none of the operators'.
  const other = new Agent({ connect: { ca: readFileSync(cert), servername: 'weather.example' } })
  t.teardown(() => other.destroy())
  const { statusCode, body } = await request(`${origin}/status`, { dispatcher: other, headers: page })
  await body.dump()
  t.equal(statusCode, 403)
})

t.test(
  'beyond the limits of an address the answer is 429 with a code of its own, and when to try again',
  async t => {
    const [port, plainPort] = [await freePort(), await freePort()]
    const smaller = replaced(site, {
      [`127.0.0.1:${https}`]: `127.0.0.1:${port}`,
      [`127.0.0.1:${http}`]: `127.0.0.1:${plainPort}`,
      'rate=500r/s': 'rate=1r/m',
      'burst=1000': 'burst=2',
    })
    await startNginx(t, t.testdir(), smaller, port)
    const answers = []
    for (let i = 0; i < 4; i++) answers.push(await get(`https://127.0.0.1:${port}/docs`))
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200, 200, 429],
    )
    const { headers, text } = answers[3] as (typeof answers)[number]
    t.has(headers, { 'retry-after': '2', 'content-type': 'application/json', 'cache-control': 'no-store' })
    t.match(JSON.parse(text), {
      error: /^too many requests or connections come from this address/,
      code: 'address_rate_limited',
      doc_url: '/docs#error-address_rate_limited',
    })
  },
)

t.test('without any gateway the answer is JSON that says so, and when to try again', async t => {
  for (const { child, exited } of gateways) {
    child.kill('SIGKILL')
    await exited
  }
  const { status, headers, text } = await get(path)
  t.equal(status, 503)
  t.equal(headers['retry-after'], '5')
  t.equal(headers['content-type'], 'application/json')
  t.match(JSON.parse(text), {
    error: /no gateway answers at present/,
    code: 'gateway_unavailable',
    doc_url: '/docs#error-gateway_unavailable',
  })
  await until('the log has the path that was asked for', () =>
    readFileSync(join(folder, 'access.log'), 'utf8').includes(`GET ${path.split('?')[0]} 503 `),
  )
})
