// Without it HTTP/2 replays could hang on dead sessions, or send one request at a time.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { checkReachable, targetOf } from '../../../../tools/load/replay/target.ts'
import { listenOn } from '../../../support/listening.ts'
import type { Teardown } from '../../../support/teardown.ts'
import { until } from '../../../support/until.ts'
import { arriving, sendSome } from './send-some.ts'

const fixtures = join(import.meta.dirname, '../../../fixtures')
const ca = join(fixtures, 'localhost.crt')
const pair = { cert: readFileSync(ca), key: readFileSync(join(fixtures, 'localhost.key')) }

const started = async (t: Teardown, server: Http2Server) => {
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', session => sessions.add(session))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, sessions }
}

t.test('many requests at once on one connection', async t => {
  const waiting: (() => void)[] = []
  const seen: unknown[] = []
  const server = createServer((request, response) => {
    seen.push([request.method, request.url, request.headers['x-api-key'], request.headers['accept-encoding']])
    response.writeHead(200, { 'cache-status': 'abohawa; fwd=miss; stored; ttl=1', etag: '"1"' })
    waiting.push(() => response.end('{}'))
  })
  const { port, sessions } = await started(t, server)
  const requests = arriving(Array(20).fill(0), { key: 'a', accepts: 'br' })
  const options = { http: '2', connections: 1, keys: [undefined, 'svc_live_a'] } as const
  const { ended, answers } = await sendSome(`http://127.0.0.1:${port}`, requests, options)
  await until('all are in flight', () => waiting.length === 20)
  t.equal(sessions.size, 1)
  for (const answer of waiting) answer()
  await ended
  t.equal(answers.length, 20)
  t.hasStrict(answers[0], { endpoint: 'weather', outcome: 'miss', status: 200, bytes: 2 })
  t.strictSame(seen[0], ['GET', '/api/v1/weather/district/3026', 'svc_live_a', 'br'])
})

t.test('over TLS, with the certificates of --ca', async t => {
  const server = createSecureServer(pair, (_request, response) => response.end('{}'))
  const { port } = await started(t, server as unknown as Http2Server)
  const url = `https://localhost:${port}`
  const { ended, recorder } = await sendSome(url, arriving([0, 1, 2]), { http: '2', ca })
  await ended
  t.match(recorder.counts, { answered: 3, failed: {} })
  await checkReachable(await targetOf(url, { ca }), '2')
  await t.rejects(checkReachable(await targetOf(url, { ca }), '1.1'), /can't be reached/)
  await t.rejects(checkReachable(await targetOf(url), '2'), /can't be reached.*certificate/)
})

t.test('requests on a session that never comes about end in time, and so does the run', async t => {
  const silent = createTcpServer(() => {})
  const port = await listenOn(t, silent)
  const options = { http: '2', connections: 1, timeoutMs: 150, ca } as const
  const requests = arriving([0, 1, 2])
  const { ended, failures, recorder } = await sendSome(`https://localhost:${port}`, requests, options)
  await ended
  t.match(recorder.counts, { sent: 3, answered: 0 })
  t.ok(failures.some(([reason]) => reason === 'timeout'))
})

t.test('a session that ends fails its requests, and the next ones have another', async t => {
  const server = createServer((request, response) => {
    if (request.url === '/end') request.stream.session?.destroy()
    else response.end('{}')
  })
  const { port, sessions } = await started(t, server)
  const requests = [...arriving([0], { path: '/end' }), ...arriving([2_500, 2_501], { path: '/' })]
  const options = { http: '2', connections: 1 } as const
  const { ended, recorder, failures } = await sendSome(`http://127.0.0.1:${port}`, requests, options)
  await ended
  t.equal(failures.length, 1)
  t.match(recorder.counts, { sent: 3, answered: 2 })
  t.equal(sessions.size, 2)

  const gone = await sendSome('http://127.0.0.1:1', arriving([0]), { http: '2' })
  await gone.ended
  const reasons = gone.failures.map(([reason]) => reason)
  t.strictSame(reasons, ['refused'])
})
