// What the process in front of the workers sends to a worker, byte for byte, and what it makes of answers that are cut short, come
// too early or carry more than one answer. The workers are sockets that the test writes to.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildOpsProxy } from '../../src/workers/ops-proxy.ts'
import { openRaw } from '../support/raw-connection.ts'
import { openSocket } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

/** A front with one worker. @param onData with everything that came on a connection so far */
const start = async (t: Test, onData: (socket: Socket, text: string, connection: number) => void) => {
  // Short: a path of a socket has 107 bytes at most.
  const folder = await mkdtemp(join(tmpdir(), 'front-'))
  const opsPath = join(folder, 'worker.sock')
  const texts: string[] = []
  const sockets = new Set<Socket>()
  const worker = createServer(socket => {
    const connection = texts.push('') - 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.setEncoding('latin1').on('data', text => {
      const sofar = (texts[connection] ?? '') + text
      texts[connection] = sofar
      onData(socket, sofar, connection)
    })
  })
  await once(worker.listen(opsPath), 'listening')
  const front = buildOpsProxy(
    {
      workers: () => [{ number: 1, pid: 1, isReady: true, isResponding: true, startedAt: 0, opsPath }],
      configured: () => 1,
      ended: () => 0,
      timedOut: () => 0,
      closings: () => 0,
      restart: () => false,
      isDraining: () => false,
      observer: { refused: () => {} },
      counts: () => '',
    },
    {
      section: 'ops',
      host: '127.0.0.1',
      allowedHosts: [],
      token: null,
      maxConnections: 100,
      requestTimeoutMs: 10_000,
      answerWithinMs: 120_000,
    },
  )
  await front.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await front.close()
    for (const socket of sockets) socket.destroy()
    worker.close()
    await rm(folder, { recursive: true, force: true })
  })
  return { url: `http://127.0.0.1:${(front.server.address() as AddressInfo).port}`, texts }
}

const answer = (body: string, ...headers: string[]): string =>
  ['HTTP/1.1 200 OK', `content-length: ${body.length}`, ...headers, '', body].join('\r\n')
const head = (line: string, ...headers: string[]): string =>
  [line, 'host: 127.0.0.1', ...headers, '', ''].join('\r\n')
const chunked = 'transfer-encoding: chunked'

t.test('framing is written anew, and what is of one connection stays there', async t => {
  const { url, texts } = await start(t, (socket, text) => {
    if (/^(GET|HEAD|DELETE|OPTIONS)|hello|content-length: 0\r\n|\r\n0\r\n\r\n$/.test(text))
      socket.end(answer(''))
  })
  const raw = await openRaw(t, url)
  const seen = async (bytes: string, method = 'GET') => {
    raw.send(bytes)
    await raw.answer(method)
    const [lines = '', ...body] = (texts.at(-1) ?? '').split('\r\n\r\n')
    return { lines: lines.split('\r\n'), body: body.join('\r\n\r\n') }
  }
  const own = ['x-forwarded-for: 127.0.0.1', 'Connection: keep-alive']
  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS'])
    t.strictSame(
      await seen(
        head(`${method} /cells HTTP/1.1`, 'content-length: 0', 'Connection: upgrade', 'Upgrade: x'),
        method,
      ),
      { lines: [`${method} /cells HTTP/1.1`, 'host: 127.0.0.1', ...own], body: '' },
    )
  const post = 'POST /keys HTTP/1.1'
  const first = [post, 'host: 127.0.0.1']
  const [from, connection] = own as [string, string]
  t.strictSame(
    await seen(
      head(
        post,
        'X-A: 1',
        'connection: x-a, keep-alive',
        'Connection: X-B',
        'x-b: 2',
        'x-c: 3',
        'te: trailers',
      ),
    ),
    { lines: [...first, 'x-c: 3', from, 'content-length: 0', connection], body: '' },
  )
  t.strictSame(
    await seen(`${head(post, 'content-length: 5', 'expect: something', 'x-forwarded-for: 10.0.0.1')}hello`),
    { lines: [...first, from, 'content-length: 5', connection], body: 'hello' },
  )
  t.strictSame(await seen(`${head(post, chunked, 'trailer: y')}5;x=y\r\nhello\r\n0\r\ny: z\r\n\r\n`), {
    lines: [...first, from, chunked, connection],
    body: '5\r\nhello\r\n0\r\n\r\n',
  })
  t.match(
    (
      await seen(
        head(
          'GET /cells HTTP/1.1',
          'authorization: Bearer x',
          'connection: authorization, origin, host',
          'origin: y',
        ),
      )
    ).lines,
    ['GET /cells HTTP/1.1', 'host: 127.0.0.1', 'authorization: Bearer x', 'origin: y'],
    'what the worker judges can not be taken away',
  )
  t.strictSame(
    await seen(
      `${head(post, 'content-length: 5', 'connection: Content-Type, content-length', 'content-type: text/csv')}hello`,
    ),
    { lines: [...first, from, 'content-length: 5', connection], body: 'hello' },
    'what the worker does not judge goes, whatever it is',
  )
})

t.test('each request has its own connection: more than an answer reaches nobody', async t => {
  const { url, texts } = await start(t, (socket, text, connection) => {
    if (text.includes('\r\n\r\n')) socket.write(answer(`own ${connection}`) + answer('of somebody else'))
  })
  const raw = await openRaw(t, url)
  for (let i = 0; i < 5; i++) {
    raw.send(head('GET /cells HTTP/1.1').repeat(3))
    for (let j = 0; j < 3; j++) t.equal((await raw.answer()).body, `own ${3 * i + j}`)
  }
  t.equal(texts.length, 15)
})

t.test('an answer that is cut short is not presented as whole', async t => {
  const rows: [what: string, bytes: string][] = [
    ['in a length', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf'],
    ['in chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['in its head', 'HTTP/1.1 200 OK\r\ncontent-le'],
  ]
  for (const version of ['1.1', '1.0'])
    for (const [what, bytes] of rows) {
      const { url } = await start(t, socket => socket.end(bytes))
      const socket = openSocket(url)
      let text = ''
      let error: NodeJS.ErrnoException | undefined
      socket.on('error', cause => {
        error = cause
      })
      socket.setEncoding('latin1').on('data', part => {
        text += part
      })
      socket.write(head(`GET /cells HTTP/${version}`))
      if (what === 'in its head') {
        await until('it is refused', () => text.includes('the worker that had the request has ended'))
        t.match(text, /^HTTP\/1\.1 503 /)
        socket.destroy()
        continue
      }
      await until('the connection is over', () => socket.destroyed)
      t.notMatch(text, /\r\n0\r\n\r\n$/, `${version}, ${what}`)
      if (version === '1.0') t.equal(error?.code, 'ECONNRESET', `${version}, ${what}`)
    }
})

t.test('an answer before the end of a body does not hold up the next request', async t => {
  const { url } = await start(t, socket => socket.write(answer('refused')))
  const raw = await openRaw(t, url)
  // A longer one ends the connection.
  const half = 'x'.repeat(8 * 1024)
  for (const [framing, first, second] of [
    [`content-length: ${2 * half.length}`, half, half],
    [chunked, `2000\r\n${half}\r\n`, `1f00\r\n${half.slice(0, 0x1f00)}\r\n0\r\n\r\n`],
  ] as const) {
    raw.send(head('POST /keys HTTP/1.1', framing) + first)
    t.equal((await raw.answer()).body, 'refused')
    raw.send(second + head('GET /cells HTTP/1.1'))
    t.equal((await raw.answer()).body, 'refused', framing)
  }
})

t.test('an answer before the end of a long body says that it is the last, and comes whole', async t => {
  const { url } = await start(t, socket => socket.write(answer('refused')))
  const long = 'x'.repeat(1_000_000)
  for (const [framing, first, more] of [
    [`content-length: ${100 * long.length}`, long, long],
    [chunked, `f4240\r\n${long}\r\n`, `f4240\r\n${long}\r\n`],
  ] as const) {
    const raw = await openRaw(t, url)
    raw.send(head('POST /keys HTTP/1.1', framing) + first)
    const { body, headers } = await raw.answer()
    t.equal(body, 'refused')
    if (framing !== chunked) t.equal(headers.get('connection'), 'close')
    raw.send(more + head('GET /cells HTTP/1.1'))
    t.strictSame(await raw.answersToTheEnd(), [], framing)
  }
})

t.test('headers of one connection stay there in answers too', async t => {
  const { url } = await start(t, socket =>
    socket.end(
      answer('x', 'connection: x-a', 'x-a: 1', 'keep-alive: timeout=1', 'proxy-authenticate: y', 'x-b: 2'),
    ),
  )
  const raw = await openRaw(t, url)
  raw.send(head('GET /cells HTTP/1.1'))
  const { headers, body } = await raw.answer()
  t.equal(body, 'x')
  for (const name of ['x-a', 'proxy-authenticate']) t.notOk(headers.has(name), name)
  t.equal(headers.get('x-b'), '2')
  t.not(headers.get('keep-alive'), 'timeout=1')
})

t.test('an answer loses whatever its connection header names, and stays whole', async t => {
  const { url } = await start(t, socket =>
    socket.end(
      answer(
        'whole',
        'connection: X-A,\tOrigin',
        'connection: content-type, content-length',
        'x-a: 1',
        'origin: y',
        'content-type: text/plain',
        'x-b: 2',
      ),
    ),
  )
  const given = await fetch(`${url}/cells`)
  const { headers } = given
  t.equal(await given.text(), 'whole')
  for (const name of ['x-a', 'origin', 'content-type', 'content-length']) t.notOk(headers.has(name), name)
  t.equal(headers.get('x-b'), '2')
})
