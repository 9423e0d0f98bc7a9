// Without it a client that still sends a body could lose its answer or keep its connection for ever.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { startTlsGateway, trusting } from '../support/http2-client.ts'
import { startProviderHere } from '../support/provider.ts'
import { drained } from '../support/raw-connection.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { patienceMs, until } from '../support/until.ts'

const provider = await startProviderHere(t)
const gateways: Record<string, TestGateway> = {}
t.before(async () => {
  gateways.plain = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_HEALTH__PORT: '0' } })
  gateways.tls = await startTlsGateway(t, provider)
})

const piece = Buffer.alloc(16 * 1024, 'x')
const chunk = Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])

/** Sends a head and then a body without end, and reads beside it until the connection ends. */
const sendWithoutEnd = async (url: string, head: string, body: Buffer) => {
  const { hostname: host, port, protocol } = new URL(url)
  const at = { host, port: Number(port), allowHalfOpen: true }
  const socket: Socket =
    protocol === 'https:' ? connectTls({ ...at, ...trusting, ALPNProtocols: ['http/1.1'] }) : connect(at)
  let text = ''
  let ended = false
  socket.on('data', (data: Buffer) => {
    text += data.toString('latin1')
  })
  socket.on('end', () => {
    ended = true
  })
  socket.on('error', () => {})
  socket.write(head, 'latin1')
  let sent = 0
  const endsBy = performance.now() + patienceMs
  // More than the kernels at both ends hold, and what is discarded.
  const most = 512 * 2 ** 20
  while (!socket.destroyed && sent < most && performance.now() < endsBy) {
    sent += body.length
    if (socket.write(body)) await new Promise(setImmediate)
    else await drained(socket)
  }
  const isCut = socket.destroyed
  socket.destroy()
  const [headers = '', answer = ''] = text.replace(/^HTTP\/1.1 100 Continue\r\n\r\n/, '').split('\r\n\r\n')
  const length = Number(/content-length: (\d+)/i.exec(headers)?.[1])
  return {
    status: Number(headers.slice(9, 12)),
    isWhole: answer.length === length,
    saysClose: /^connection: close$/im.test(headers),
    isContinued: text.startsWith('HTTP/1.1 100'),
    isCut,
    ended,
    sent,
  }
}

/** The whole answer, then the end of the other side, then of the connection. */
const ends = { isWhole: true, ended: true, isCut: true }
const place = '/api/v1/locations/district/3026'
const listeners = () => [
  { url: gateways.plain?.apiUrl, path: place },
  { url: gateways.tls?.apiUrl, path: place },
  { url: gateways.plain?.opsUrl, path: '/livez' },
  { url: gateways.plain?.opsUrl, path: '/cache/purge' },
  { url: gateways.plain?.healthUrl, path: '/livez' },
]
const keysOf = (url: string) => {
  const { keys } = Object.values(gateways).find(({ apiUrl }) => apiUrl === url) ?? {}
  return keys ? ['', keys.enterprise ?? ''] : ['']
}

for (const [name, headers, body] of [
  ['a declared length', 'content-length: 10000000000\r\n', piece],
  ['chunks', 'transfer-encoding: chunked\r\n', chunk],
  ['a length that waits to be asked for', 'content-length: 10000000000\r\nexpect: 100-continue\r\n', piece],
] as const)
  t.test(`a body without end of ${name} ends the connection behind the whole answer`, async t => {
    const cases = listeners().flatMap(({ url = '', path }) =>
      keysOf(url).flatMap(key => ['POST', 'GET', 'PUT'].map(method => ({ url, path, key, method }))),
    )
    // Each waits for the end of its close.
    await Promise.all(
      cases.map(async ({ url, path, key, method }) => {
        const keyLine = key === '' ? '' : `x-api-key: ${key}\r\n`
        // JSON, so that nothing else is wrong with it where bodies are read.
        const type = 'content-type: application/json\r\n'
        const head = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${type}${keyLine}${headers}\r\n`
        const { status, sent, ...was } = await sendWithoutEnd(url, head, body)
        const title = `${url}${path} ${method} with the key "${key.slice(0, 9)}": ${status}, ${sent} sent`
        t.ok(status >= 200, title)
        // Whether chunks end is not known when the answer is written.
        t.match(was, name === 'chunks' ? ends : { ...ends, saysClose: true, isContinued: false }, title)
      }),
    )
    await until('no connection is left', async () => {
      const open = await Promise.all(Object.values(gateways).map(each => each.metric('abohawa_connections')))
      return open.every(count => count === 0)
    })
  })

t.test('what never becomes a request has its whole refusal, however long it goes on', async t => {
  const { plain, tls } = gateways
  const urls = [plain?.apiUrl, tls?.apiUrl, plain?.opsUrl, plain?.healthUrl].map(url => url ?? '')
  const cases = urls.flatMap(url =>
    ['no HTTP\r\n', 'GET / HTTP/1.1\r\nhost: localhost\r\nx: ', 'GET /'].map(head => ({ url, head })),
  )
  const head = 'CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n'
  // For operators such a connection is closed without a word.
  cases.push(...urls.slice(0, 2).map(url => ({ url, head })))
  await Promise.all(
    cases.map(async ({ url, head }) => {
      const { status, sent, ...was } = await sendWithoutEnd(url, head, piece)
      const title = `${url} ${head.slice(0, 12)}: ${status}, ${sent} sent`
      t.ok(status >= 400 && status < 500, title)
      t.match(was, { ...ends, saysClose: true }, title)
    }),
  )
})

t.test('requests behind an answer that ends the connection reset nothing', async t => {
  const { apiUrl, opsUrl } = gateways.plain as TestGateway
  for (const [url, line] of [
    [apiUrl, 'GET /api/v1/locations?type=division'],
    [opsUrl, 'DELETE /cache/warm'],
  ] as const) {
    const { hostname: host, port } = new URL(url)
    const socket = connect({ host, port: Number(port), allowHalfOpen: true })
    t.teardown(() => socket.destroy())
    const faults: string[] = []
    socket.on('error', (error: NodeJS.ErrnoException) => void faults.push(error.code ?? ''))
    const closed = new Promise(done => socket.once('close', done))
    socket.resume()
    socket.write(`${line} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 1\r\n\r\nx`)
    await once(socket, 'end')
    // A closed connection would answer them with a reset.
    const next = `GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`
    for (const bytes of [next, next]) {
      await new Promise(written => socket.write(bytes, written))
      // The gateway runs in this process: it sees each by itself.
      for (const turn of Array(10).keys()) await nextTurn(turn)
    }
    socket.end()
    await closed
    t.strictSame(faults, [], line)
  }
})
