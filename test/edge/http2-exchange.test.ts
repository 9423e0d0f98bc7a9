// What Fastify does by itself with a request and a response of HTTP/2: sends payloads of each kind, and errors, to real clients. How the
// gateway uses them is in test/journeys/http2.test.ts.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ClientHttp2Stream, connect, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { type Answering, Http2Request, Http2Response } from '../../src/edge/connection/http2-exchange.ts'
import { until } from '../support/until.ts'

const large = Buffer.alloc(1_000_000, 'weather ')

const start = async (t: Test) => {
  const app = fastify()
  app.get('/text', (_request, reply) => void reply.send('some text'))
  app.get('/large', (_request, reply) => void reply.send(large))
  app.get('/none', (_request, reply) => void reply.code(204).send('nothing is sent'))
  app.get('/moved', (_request, reply) => void reply.redirect('/text'))
  app.get('/error', () => {
    throw new Error('of a handler')
  })
  app.get('/waits', (_request, reply) => void reply.hijack())
  app.get('/request', ({ raw }, reply) => {
    const { method, url, httpVersion, httpVersionMajor, headers, complete } = raw
    void reply.send({ method, url, httpVersion, httpVersionMajor, host: headers.host, complete })
  })
  await app.ready()
  t.teardown(() => app.close())
  const closed: number[] = []
  const answering: Answering = { open: 0, ended: 0, onClose: () => {} }
  const responses: Http2Response[] = []
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    const request = new Http2Request(stream, headers, stream.session?.socket as never)
    const response = new Http2Response(request, answering).on('close', () => closed.push(response.statusCode))
    responses.push(response)
    app.routing(request as unknown as IncomingMessage, response as unknown as ServerResponse)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => {
    session.destroy()
    server.close()
  })
  const open = (path: string, method = 'GET', more = {}): ClientHttp2Stream =>
    session.request({ ':path': path, ':method': method, ...more })
  const send = async (path: string, method = 'GET', more = {}) => {
    const stream = open(path, method, more)
    const [headers] = await once(stream, 'response')
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    const text = Buffer.concat(chunks)
    return { status: headers[':status'], headers, text: text.toString(), bytes: text }
  }
  return { send, open, closed, answering, responses }
}

t.test('payloads, redirects and errors of Fastify reach the client', async t => {
  const { send, closed, answering } = await start(t)
  t.match(await send('/text'), {
    status: 200,
    text: 'some text',
    headers: { 'content-type': 'text/plain; charset=utf-8', 'content-length': '9', date: /GMT$/ },
  })
  const { status, bytes } = await send('/large')
  t.ok(status === 200 && bytes.equals(large), 'one that is sent in pieces, as the client takes it')
  const none = await send('/none')
  t.match(none, { status: 204, text: '' })
  t.equal(none.headers['content-type'], undefined)
  t.match(await send('/moved'), { status: 302, headers: { location: '/text' }, text: '' })
  t.match(await send('/error'), { status: 500, text: /of a handler/ })
  t.match(await send('/nowhere'), { status: 404 })
  t.match(await send('/text', 'HEAD'), { status: 200, headers: { 'content-length': '9' }, text: '' })
  await until('all are closed', async () => closed.length === 7)
  t.strictSame(closed, [200, 200, 204, 302, 500, 404, 200])
  t.match(answering, { open: 0, ended: 0 })
})

t.test('a request has what one of HTTP/1.1 has', async t => {
  const { send } = await start(t)
  const of = async (more = {}) => JSON.parse((await send('/request?of=mine', 'GET', more)).text)
  const { host, ...rest } = await of()
  t.match(host, /^127\.0\.0\.1:\d+$/)
  t.match(rest, { method: 'GET', url: '/request?of=mine', httpVersion: '2.0', httpVersionMajor: 2 })
  t.equal((await of({ ':authority': 'one.example', host: 'one.example' })).host, 'one.example')
  t.equal((await of({ ':authority': 'one.example', host: 'two.example' })).host, 'two.example, one.example')
})

t.test('what is written to a client that has gone is dropped, and counted once', async t => {
  const { open, closed, answering, responses } = await start(t)
  const stream = open('/waits')
  stream.on('error', () => {})
  await until('the request has come', async () => responses.length === 1)
  const [response] = responses
  if (!response) return
  t.match(answering, { open: 1, ended: 0 })
  stream.close(8)
  await until('the server knows', async () => closed.length === 1)
  t.match(answering, { open: 0, ended: 0 })
  response.writeReady(200, 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n', '', [Buffer.from('x')])
  response.writeHead(500, {}).end('late')
  t.equal(response.write('late'), true)
  t.notOk(response.headersSent)
  t.match(answering, { open: 0, ended: 0 })
})
