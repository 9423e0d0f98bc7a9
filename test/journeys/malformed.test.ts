// Malformed requests of every known kind: each gets JSON with one sentence, and nothing crashes.

import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, { providerUrl: provider.url })
})

// path below /api/v1, status, sentence
const table: [string, number, string | RegExp][] = [
  ['/locations', 400, 'type is missing; allowed: division, district, upazila, union'],
  ['/locations?type=', 400, 'type is ""; allowed: division, district, upazila, union'],
  ['/locations?type=all', 400, 'type is "all"; allowed: division, district, upazila, union'],
  ['/locations?type=division&type=division', 400, 'type is given more than once; allowed: at most once'],
  ['/locations?type=division&limit=0', 400, 'limit is "0"; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&limit=101', 400, 'limit is "101"; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&limit=ten', 400, 'limit is "ten"; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&limit=5.0', 400, 'limit is "5.0"; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&limit=', 400, 'limit is ""; allowed: a whole number from 1 to 100'],
  ['/locations?type=division&offset=-1', 400, 'offset is "-1"; allowed: a whole number from 0 to 1000000000'],
  [`/locations?type=division&offset=${'9'.repeat(400)}`, 400, /^offset is "9{60}…"; allowed: a whole number/],
  ['/locations?type=division&q=%FF', 400, 'q is "%FF"; allowed: percent-encoded UTF-8'],
  [
    `/locations?type=division&q=${'x'.repeat(101)}`,
    400,
    /^q is "x+…", 101 characters; allowed: at most 100 characters$/,
  ],
  ['/locations/planet/1', 400, 'type is "planet"; allowed: division, district, upazila, union'],
  ['/locations/district/0', 404, 'the district "0" was not found or is not published'],
  [
    `/locations/district/${'9'.repeat(500)}`,
    404,
    /^the district "9{60}…" was not found or is not published$/,
  ],
  ['/weather/coords/23.8', 400, 'lng is missing; a point is asked for as /api/v1/weather/coords/{lat}/{lng}'],
  ['/weather/district/3026?lang=fr', 400, 'lang is "fr"; allowed: bn, en'],
  ['/weather/district/3026?lang=en&lang=bn', 400, 'lang is given more than once; allowed: at most once'],
  ['/weather/coords/NaN/90', 400, 'lat is "NaN"; allowed: decimal degrees such as 23.81, from 20 to 27'],
  ['/weather/coords/2e1/90', 400, 'lat is "2e1"; allowed: decimal degrees such as 23.81, from 20 to 27'],
  ['/weather/coords/23/0x5A', 400, 'lng is "0x5A"; allowed: decimal degrees such as 23.81, from 87.5 to 93'],
  ['/weather/coords/%20/90', 400, 'lat is " "; allowed: decimal degrees such as 23.81, from 20 to 27'],
  ['/weather/coords/19.9/90', 400, 'lat is "19.9", outside the bounds of Bangladesh; allowed: 20 to 27'],
  ['/weather/coords/23/93.1', 400, 'lng is "93.1", outside the bounds of Bangladesh; allowed: 87.5 to 93'],
  ['/forecast/district/3026?days=0', 400, 'days is "0"; allowed: a whole number from 1 to 7'],
  ['/forecast/district/3026?days=8', 400, 'days is "8"; allowed: a whole number from 1 to 7'],
  ['/forecast/district/3026?days=1&days=2', 400, 'days is given more than once; allowed: at most once'],
  [
    '/weather/district/%E0%A6',
    400,
    'the path is "/api/v1/weather/district/%E0%A6"; allowed: percent-encoded UTF-8',
  ],
  [
    `/weather/%2${'x'.repeat(5_000)}`,
    400,
    /^the path is "\/api\/v1\/weather\/%2x+…"; allowed: percent-encoded UTF-8$/,
  ],
  [
    '/weather',
    404,
    /^there is nothing at "\/api\/v1\/weather"; the endpoints are \/api\/v1\/weather\/\{type\}\/\{id\}, /,
  ],
  ['/weather/district/3026/', 404, /^there is nothing at/],
  ['/Weather/district/3026', 404, /^there is nothing at/],
  ['/../../etc/passwd', 404, /^there is nothing at/],
]

for (const [path, status, sentence] of table)
  t.test(`${path.slice(0, 70)} is ${status}`, async t => {
    const answer = await sendBytes(
      `GET /api/v1${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.enterprise}\r\n`,
    )
    t.equal(answer.status, status)
    t.match(answer.body.error, sentence)
    t.strictSame(Object.keys(answer.body), ['error', 'code'])
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    t.equal(answer.headers.get('x-ratelimit-limit'), '100000')
    t.equal(answer.headers.get('cache-control'), 'no-store')
  })

t.test('a URL without a path is 400 and counts, whatever its query looks like', async t => {
  for (const url of ['http://x', 'http://x?x=/api/v1/locations?type=division']) {
    const { status, body, headers } = await sendBytes(
      `GET ${url} HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.enterprise}\r\n`,
    )
    t.equal(status, 400, url)
    t.equal(body.error, `the URL is "${url}", without a path; allowed: one with a path`)
    t.equal(headers.get('x-ratelimit-limit'), '100000')
  }
})

t.test('unknown parameters are ignored, also when given twice', async t => {
  t.equal((await gateway.get('/locations?type=division&foo=1&foo=2&lang=xx')).status, 200)
})

t.test('bytes after a request never replace its response', async t => {
  for (const behind of ['hello there\r\n\r\n', 'CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n']) {
    const answer = await sendBytes(
      `GET /api/v1/locations/district/3026 HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.enterprise}\r\n\r\n${behind}`,
      '',
    )
    t.equal(answer.status, 200, behind.trim())
  }
})

t.test('a reset in the middle of anything leaves the gateway standing', async t => {
  const { hostname, port } = new URL(gateway.apiUrl)
  for (const bytes of [
    'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n',
    'garbage\r\n\r\n',
    'GET / HTTP/1.1\r\n',
  ]) {
    for (let i = 0; i < 5; i++) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write(bytes)
      socket.resetAndDestroy()
    }
  }
  t.equal((await gateway.get('/locations?type=division')).status, 200)
})

t.test('a request that does not arrive in time gets an error that says so', async t => {
  const impatient = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__REQUEST_TIMEOUT: '200ms' },
  })
  const { hostname, port } = new URL(impatient.apiUrl)
  const socket = connect(Number(port), hostname)
  socket.write('GET /api/v1/locations HTTP/1.1\r\nhost: x\r\n')
  const [head] = await once(socket, 'data')
  t.match(String(head), /^HTTP\/1\.1 400 Bad Request\r\n/)
  t.match(String(head), '{"error":"the request did not arrive completely in time","code":"request_timeout"}')
  socket.destroy()
})

t.test('a key that was put into the URL does not stand in the log', async t => {
  await gateway.get(`/locations?type=division&x-api-key=${gateway.keys.starter}`)
  t.notMatch(JSON.stringify(gateway.logged), (gateway.keys.starter ?? '').slice(9, 30))
})

t.test('every other method is 405 and names the allowed ones', async t => {
  for (const method of [
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'PROPFIND',
    'PURGE',
    'SEARCH',
    'LINK',
    'TRACE',
  ])
    for (const path of ['/locations?type=division', '/nothing']) {
      const answer = await sendBytes(
        `${method} /api/v1${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.keys.enterprise}\r\ncontent-length: 0\r\n`,
      )
      t.equal(answer.status, 405, `${method} ${path}`)
      t.equal(answer.headers.get('allow'), 'GET, HEAD')
      t.equal(answer.body.error, `the method is ${method}; allowed: GET, HEAD`)
    }
  const withBody = await gateway.get('/locations?type=division', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
  })
  t.equal(withBody.status, 405, 'whatever its body is')
  t.equal((await gateway.get('/nothing', { method: 'DELETE', key: null })).status, 401, 'the key comes first')
})

t.test('HEAD answers as GET without a body', async t => {
  for (const path of [
    '/locations?type=division',
    '/weather/district/3026',
    '/weather/district/9',
    '/locations?type=x',
  ]) {
    const [got, head] = [await gateway.get(path), await gateway.get(path, { method: 'HEAD' })]
    t.equal(head.status, got.status, path)
    t.equal(head.text, '')
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
      t.equal(head.headers[name], got.headers[name], `${name} of ${path}`)
  }
})

// The bytes on the socket, the status, the sentence. A request without a key that parses gets 401 first.
const garbage: [string, string, number, RegExp][] = [
  ['no HTTP at all', 'hello there\r\n\r\n', 400, /^the request is not valid HTTP$/],
  ['bytes', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n', 400, /^the request is not valid HTTP$/],
  ['a method that is none', 'BREW /pot HTTP/1.1\r\nhost: x\r\n\r\n', 400, /^the request is not valid HTTP$/],
  [
    'Bengali that is not percent-encoded',
    'GET /api/v1/locations?q=ঢাকা HTTP/1.1\r\nhost: x\r\n\r\n',
    400,
    /must be percent-encoded, such as %E0%A6%A2 for ঢ$/,
  ],
  ['a header without a colon', 'GET / HTTP/1.1\r\nhost\r\n\r\n', 400, /^the request is not valid HTTP$/],
  [
    'two lengths',
    'GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
    400,
    /not valid HTTP/,
  ],
  [
    'a URL too long',
    `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    400,
    /^the URL and headers are too large/,
  ],
  [
    'headers too large',
    `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
    400,
    /^the URL and headers are too large/,
  ],
  ['no host', 'GET /api/v1/locations HTTP/1.1\r\n\r\n', 400, /^the host header is missing/],
  ['CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n', 405, /^the method is CONNECT/],
  [
    'an expectation we do not know',
    'GET /nowhere HTTP/1.1\r\nhost: x\r\nexpect: miracles\r\n\r\n',
    401,
    /key is missing/,
  ],
  [
    'an upgrade',
    'GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    401,
    /key is missing/,
  ],
  ['HTTP/1.0', 'GET /nowhere HTTP/1.0\r\n\r\n', 401, /key is missing/],
  ['HTTP/2.0', 'GET / HTTP/2.0\r\nhost: x\r\n\r\n', 400, /^the HTTP version is 2\.0; allowed: 1\.1, 1\.0$/],
  ['HTTP/0.9', 'GET / HTTP/0.9\r\nhost: x\r\n\r\n', 400, /^the HTTP version is 0\.9; allowed: 1\.1, 1\.0$/],
  [
    'two hosts',
    'GET / HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n',
    400,
    /^the host header is "x, x"; allowed: one host/,
  ],
  [
    'two hosts with HTTP/1.0',
    'GET / HTTP/1.0\r\nhost: x\r\nHost: y\r\n\r\n',
    400,
    /^the host header is "x, y"/,
  ],
  [
    'a host that is none',
    'GET / HTTP/1.1\r\nhost: x/y\r\n\r\n',
    400,
    /^the host header is "x\/y"; allowed: one host/,
  ],
  ['a host with an account', 'GET / HTTP/1.1\r\nhost: a@x\r\n\r\n', 400, /^the host header is "a@x"/],
  ['an empty host', 'GET / HTTP/1.1\r\nhost: \r\n\r\n', 400, /^the host header is missing/],
  [
    'a transfer encoding that is none',
    'GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity\r\n\r\n',
    400,
    /^transfer-encoding is "identity"; allowed: chunked$/,
  ],
  [
    'chunks in HTTP/1.0',
    'POST / HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    /^transfer-encoding is given with HTTP\/1\.0; allowed: HTTP\/1\.1$/,
  ],
  [
    'a length and chunks',
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    /^the request is not valid HTTP$/,
  ],
]
const hosts = ['x', 'x:8080', 'api.example.org', '127.0.0.1:1', '[::1]', '[::1]:443', 'a_b.example:']

t.test('every form of a host is taken', async t => {
  for (const host of hosts) {
    const { status } = await sendBytes(`GET /nowhere HTTP/1.1\r\nhost: ${host}\r\n`)
    t.equal(status, 401, host)
  }
})

for (const [what, bytes, status, sentence] of garbage)
  t.test(`${what} on the socket is answered in JSON`, async t => {
    const answer = await sendBytes(bytes, '')
    t.equal(answer.status, status)
    t.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    t.match(answer.body.error, sentence)
    for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining']) t.equal(answer.headers.get(name), '0')
    t.match(answer.headers.get('x-ratelimit-reset'), /^\d{10}$/)
    t.match(answer.headers.get('x-request-id'), /./)
    t.equal((await gateway.get('/locations?type=division')).status, 200, 'and the gateway lives on')
  })

t.test('a request id of the caller comes back when it is a sane one', async t => {
  const echo = async (id: string) =>
    (await gateway.get('/locations?type=division', { headers: { 'x-request-id': id } })).headers[
      'x-request-id'
    ]
  t.equal(await echo('trace-01/a=b'), 'trace-01/a=b')
  for (const id of ['with blanks', 'x'.repeat(129), '"quoted"', '<script>']) t.not(await echo(id), id)
  const ours = [await echo('with blanks'), await echo('with blanks')]
  t.match(ours[0], /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/)
  t.not(ours[0], ours[1])
})

/** Sends raw bytes and reads until the gateway closes; `end` makes it close. */
async function sendBytes(bytes: string, end = 'connection: close\r\n\r\n') {
  const { hostname, port } = new URL(gateway.apiUrl)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {})
  socket.write(bytes + end)
  // A keep-alive response is complete once its declared length has arrived.
  const parse = () => {
    const [head = '', body = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n')
    const [statusLine = '', ...lines] = head.split('\r\n')
    const headers = new Headers(lines.map(line => line.split(/: (.*)/s).slice(0, 2) as [string, string]))
    const length = Number(headers.get('content-length'))
    const text = Buffer.from(body).subarray(0, length).toString()
    return { status: Number(statusLine.split(' ')[1]), headers, text }
  }
  const complete = () => {
    const { headers, text } = parse()
    return headers.has('content-length') && Buffer.byteLength(text) >= Number(headers.get('content-length'))
  }
  await until('the answer is complete', () => complete() || socket.destroyed)
  socket.destroy()
  const { text, ...answer } = parse()
  return { ...answer, body: JSON.parse(text) as { error: string } }
}
