// Without it, answers of the ops listener could mix on a connection, or bytes that are no request could get one.

import { type AddressInfo, connect } from 'node:net'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createApplication } from '../../../src/operate/listener/application.ts'
import { openRaw } from '../../support/raw-connection.ts'
import { until } from '../../support/until.ts'

/** A listener whose requests with GET wait for their answers until the test gives them. */
const start = async (t: Test) => {
  const answers: ((body: string) => void)[] = []
  const refused: string[] = []
  const listener = createApplication(
    {
      admit: () => undefined,
      paths: '',
      observer: { refused: reason => void refused.push(reason), unloadable: () => {} },
    },
    { maxConnections: 10, requestTimeoutMs: 10_000, answerWithinMs: 10_000 },
    async app => {
      app.get('/*', () => new Promise<string>(resolve => void answers.push(resolve)))
      app.post('/*', async ({ body }) => body)
    },
  )
  await listener.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => listener.close())
  const raw = await openRaw(t, `http://127.0.0.1:${(listener.server.address() as AddressInfo).port}`)
  return { raw, refused, answers, listener }
}

const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, 'host: 127.0.0.1', ...headers, '', ''].join('\r\n')
const json = 'content-type: application/json'

t.test('a body is asked for, and its connection may be idle for a while', async t => {
  const { raw } = await start(t)
  raw.send(head('POST /', json, 'expect: 100-continue', 'content-length: 2'))
  // Without a length it has no body.
  t.equal((await raw.answer('HEAD')).status, 100)
  raw.send('[]')
  const { status, headers, body } = await raw.answer()
  t.strictSame([status, body, headers.get('keep-alive')], [200, '[]', 'timeout=5'])
})

t.test('garbage behind several requests takes none of their answers', async t => {
  const { raw, refused, answers } = await start(t)
  raw.send(`${head('GET /1') + head('GET /2') + head('GET /3')}no HTTP\r\n\r\n`)
  await until('all are there', () => answers.length === 3)
  await until('the garbage is refused', () => refused.length === 1)
  for (const [i, body] of ['third', 'second', 'first'].entries()) answers[2 - i]?.(body)
  const bodies = (await raw.answersToTheEnd()).map(({ body }) => body)
  t.strictSame(bodies, ['first', 'second', 'third'])
  t.strictSame(refused, ['unparsable'])
})

t.test('a fault in the body of a request that waits for its answer is its answer, in its turn', async t => {
  const { raw, refused, answers } = await start(t)
  raw.send(`${head('GET /1') + head('POST /2', json, 'transfer-encoding: chunked')}zz\r\n`)
  await until('the fault is found', () => refused.length > 0)
  answers[0]?.('first')
  t.match(await raw.answersToTheEnd(), [
    { status: 200, body: 'first' },
    { status: 400, body: /the request is not valid HTTP/ },
  ])
  t.strictSame(refused, ['unparsable'])
})

t.test('a connection that is reset is no refused request', async t => {
  const { refused, answers, listener } = await start(t)
  const socket = connect((listener.server.address() as AddressInfo).port, '127.0.0.1')
  const open = () => promisify(listener.server.getConnections.bind(listener.server))()
  await until('both are there', async () => (await open()) === 2)
  socket.write(head('GET /1'))
  await until('the request is there', () => answers.length === 1)
  socket.resetAndDestroy()
  await until('it is gone', async () => (await open()) === 1)
  t.strictSame(refused, [])
})

t.test('a listener whose routes do not load says so and ends nothing', async t => {
  const causes: unknown[] = []
  const cause = new Error('no such file')
  const listener = createApplication(
    {
      admit: () => undefined,
      paths: '',
      observer: { refused: () => {}, unloadable: cause => void causes.push(cause) },
    },
    { maxConnections: 10, requestTimeoutMs: 10_000, answerWithinMs: 10_000 },
    () => Promise.reject(cause),
  )
  await listener.listen({ host: '127.0.0.1', port: 0 })
  for (const path of ['/readyz', '/status']) {
    const response = await fetch(`http://127.0.0.1:${(listener.server.address() as AddressInfo).port}${path}`)
    t.strictSame(
      [response.status, await response.json()],
      [500, { error: 'this listener did not load: see the log, and restart the gateway' }],
    )
  }
  t.strictSame(causes, [cause])
  await listener.close()
})
