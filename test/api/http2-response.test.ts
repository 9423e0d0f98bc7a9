// Without it a client of HTTP/2 could get another answer than one of HTTP/1.1, or a fault in the error handler end the process.

import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect, createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import type { ApiOptions, ApiParts } from '../../src/api/api.ts'
import { http2Options } from '../../src/api/connection/http2-request.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { localCertificate, openHttp2, trusting } from '../support/http2-client.ts'
import { openRaw } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'
import { goodKey, startApp } from './api-app.ts'

const certificate = { cert: readFileSync(localCertificate.cert), key: readFileSync(localCertificate.key) }

t.test('an error in the error handler is answered with 500', async t => {
  const app = fastify({
    serverFactory: listener =>
      createSecureServer({ ...http2Options(16_384), ...certificate }, listener as never) as never,
  })
  app.setErrorHandler(() => {
    throw new Error('again')
  })
  app.get('/', () => {
    throw new Error('once')
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = connect(`https://127.0.0.1:${(app.server.address() as AddressInfo).port}`, trusting)
  t.teardown(async () => {
    session.destroy()
    await app.close()
  })
  for (const method of ['GET', 'HEAD']) {
    const stream = session.request({ ':path': '/', ':method': method })
    const closed = once(stream, 'close')
    const [headers] = await once(stream.resume(), 'response')
    t.equal(headers[':status'], 500, method)
    await closed
  }
})

const weather = '/api/v1/weather/district/3026'
const page = 'https://app.example'
const key = { 'x-api-key': goodKey }
const start = async (t: Test, parts: Partial<ApiParts> = {}, options: Partial<ApiOptions> = {}) => {
  const consume: ApiParts['quota']['consume'] = (_client, _at, _units, callback) =>
    callback(undefined, { allowed: true, remaining: 1 })
  const quota = { now: () => 0, resetAfter: () => 1, refund: () => 0, isExact: () => true, consume }
  const tls = { ...localCertificate, ticketKey: null, http2: true }
  const app = await startApp(t, { quota, ...parts }, { tls, cors: { origins: [page] }, ...options })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const url = `https://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const client = await openHttp2(t, url)
  t.teardown(app.close)
  t.teardown(() => client.session.destroy())
  return { ...app, ...client, url }
}

t.test('each response is that of HTTP/1.1, with one head and without lines of a connection', async t => {
  const { send, answered, inject } = await start(t)
  const { etag } = (await send(weather, key)).headers
  for (const [status, path, headers, method] of [
    [200, weather, key],
    [200, weather, { ...key, origin: page }],
    [200, weather, key, 'HEAD'],
    [200, '/api/v1/weather?places=district/3026,coords/23.8/90.4', key],
    [304, weather, { ...key, 'if-none-match': String(etag) }],
    [401, weather, {}],
    [404, '/nowhere', key],
    [404, '/nowhere', key, 'HEAD'],
    [405, weather, key, 'POST'],
    [204, weather, { origin: page }, 'OPTIONS'],
    [308, '/', {}],
    [200, '/docs', {}],
  ] as [number, string, Record<string, string>, string?][]) {
    for (const _ of ['made', 'remembered']) {
      const answer = await send(path, headers, method)
      const other = await inject(path, headers, method)
      t.strictSame([answer.status, other.status], [status, status], path)
      t.ok(answer.bytes.equals(other.bytes))
      const own = [':status', 'x-request-id', 'connection', 'keep-alive']
      const names = (given: object) =>
        Object.keys(given)
          .filter(name => !own.includes(name))
          .sort()
      t.strictSame(names(answer.headers), names(other.headers), path)
      for (const name of ['vary', 'content-length', 'content-type', 'etag', 'location', 'allow'])
        t.equal(
          String(answer.headers[name]).replaceAll(', ', ','),
          String(other.headers[name]).replaceAll(', ', ','),
        )
    }
  }
  const own = answered.filter(({ httpVersion }) => httpVersion === '2.0')
  t.strictSame(
    own.map(({ connectionRequest }) => connectionRequest),
    own.map((_, i) => i + 1),
  )
})

t.test('a method is any word, a path is ASCII, and two hosts have to be one', async t => {
  const { send } = await start(t)
  for (const method of ['POST', 'PROPFIND', 'get', 'ANYTHING']) {
    const answer = await send(weather, key, method)
    t.hasStrict(answer.json(), { error: `the method must be GET or HEAD, got ${method}` })
    t.equal((await send(weather, {}, method)).status, 401)
  }
  t.hasStrict((await send('/ঢাকা', key)).json(), { code: 'url_not_encoded' })
  for (const [host, status] of [
    ['one.example', 200],
    ['One.Example', 200],
    ['one.example:443', 200],
    ['one.example:', 200],
    ['one.example:80', 400],
    ['two.example', 400],
  ] as const) {
    const answer = await send(weather, { ...key, ':authority': 'one.example', host })
    t.equal(answer.status, status, host)
  }
  t.equal((await send(weather, { ...key, host: 'two.example' })).status, 200, 'a host alone')
  const { error } = (await send(weather, { ...key, ':authority': 'a', host: 'b' })).json() as {
    error: string
  }
  t.match(error, /got "b, a"$/)
})

t.test('eight lists are begun together, and everything else beside them', async t => {
  let loads = 0
  const wait = Promise.withResolvers<never>()
  const read = () => {
    loads += 1
    return wait.promise
  }
  const { send, session } = await start(t, { timelines: { read } })
  const all = Array.from({ length: 9 }, () => send('/api/v1/weather?places=coords/23.8/90.4', key))
  const others = ['/api/v1/weather/coords/23.8/90.4', '/api/v1/forecast/district/3026']
  const singles = others.map(path => send(path, key))
  t.equal((await send('/api/v1/locations?type=division', key)).status, 200, 'which came last')
  t.equal(loads, 10)
  wait.reject(new AbohawaError('provider_timeout', 'late'))
  for (const { status } of await Promise.all([...all, ...singles])) t.equal(status, 500)
  t.equal(loads, 11)
  t.equal(session.remoteSettings.maxConcurrentStreams, 100)
})

t.test(
  'a session of a stranger ends with its hundredth request, and one that drains is told to go',
  async t => {
    const { send, session, closed } = await start(t)
    for (let i = 0; i < 99; i++) await send(weather)
    t.strictSame(closed, [])
    t.equal((await send(weather)).status, 401)
    t.strictSame(closed, ['refusals'])
    // What was sent before its answer has come.
    const pinged = (given: ClientHttp2Session) =>
      new Promise<void>(resolve => void given.ping(() => resolve()))
    await pinged(session)
    t.equal(session.closed, true)
    const app = await start(t)
    await app.send(weather, key)
    const told: number[][] = []
    app.session.on('goaway', (code, lastStream) => told.push([code, lastStream]))
    app.drain()
    await pinged(app.session)
    t.strictSame(told, [[0, 2 ** 31 - 1]])
  },
)

t.test('plain HTTP on its port is told so, and HTTP/1.1 over TLS is answered', async t => {
  const { url, connections, session } = await start(t)
  for (const [line, code] of [
    ['GET /', 'https_required'],
    ['CONNECT x:80', 'https_required'],
    ['DELETE /', 'https_required'],
  ] as const) {
    const plain = await openRaw(t, url.replace('https', 'http'))
    plain.send(`${line} HTTP/1.1\r\nhost: x\r\n\r\n`)
    const [answer, ...others] = await plain.answersToTheEnd()
    t.strictSame([answer?.status, JSON.parse(answer?.body ?? '').code, others], [400, code, []], line)
  }
  const raw = await openRaw(t, url)
  raw.send(`GET ${weather} HTTP/1.1\r\nhost: x\r\nx-api-key: ${goodKey}\r\n\r\n`)
  const { status, headers } = await raw.answer()
  t.strictSame([status, headers.get('connection')], [200, 'keep-alive'])
  await until('the plain ones are gone', () => connections().open === 2)
  t.equal(connections().unauthenticated, 1, 'of two connections the one without a request')
  session.destroy()
  await until('its connection is gone', () => connections().open === 1)
  t.equal(connections().unauthenticated, 0)
})

t.test('a certificate or a ticket key is replaced where its file differs', async t => {
  const folder = t.testdir()
  const ticketKey = join(folder, 'ticket.key')
  writeFileSync(ticketKey, Buffer.alloc(48, 1), { mode: 0o600 })
  const own = { ...localCertificate, ticketKey: null, http2: true }
  const secured = await start(t)
  t.equal(secured.prepareTls(own), undefined)
  t.strictSame(secured.prepareTls({ ...own, ticketKey })?.replaced, ['ticket key'])
  const renewed = {
    cert: localCertificate.cert.replace('localhost', 'renewed'),
    key: localCertificate.key.replace('localhost', 'renewed'),
    ticketKey: null,
  }
  const before = secured.certificateExpiresAt()
  const change = secured.prepareTls(renewed)
  t.strictSame(change?.replaced, ['certificate'])
  t.equal(secured.certificateExpiresAt(), before, 'it is not in use yet')
  change?.use()
  t.not(secured.certificateExpiresAt(), before)
  t.equal(secured.prepareTls(renewed), undefined)
  t.strictSame(secured.prepareTls({ ...own, ticketKey })?.replaced, ['certificate', 'ticket key'])
  const plain = await startApp(t)
  t.strictSame([plain.prepareTls(own), plain.certificateExpiresAt()], [undefined, undefined])
})
