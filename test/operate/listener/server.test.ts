// Checks what the server under the ops listener writes onto a connection with several requests, byte for byte: each answer in its
// turn and whole, nothing between them, and none for what never became a request.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createBoundedServer } from '../../../src/operate/listener/server.ts'
import { openRaw } from '../../support/raw-connection.ts'
import { until } from '../../support/until.ts'

type Pending = { readonly request: IncomingMessage; readonly response: ServerResponse }

/** A server whose requests wait for their answers until the test gives them. */
const start = async (t: Test) => {
  const pending: Pending[] = []
  const refused: string[] = []
  const listener = createBoundedServer(
    async (request, response) => void pending.push({ request, response }),
    { refused: reason => void refused.push(reason) },
    { maxConnections: 10, requestTimeoutMs: 10_000, answerWithinMs: 10_000 },
  )
  await listener.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => listener.close())
  const raw = await openRaw(t, `http://127.0.0.1:${(listener.server.address() as AddressInfo).port}`)
  const have = (count: number) => until(`${count} requests are there`, () => pending.length >= count)
  const answer = (index: number, body: string): unknown =>
    pending[index]?.response.writeHead(200, { 'content-length': body.length }).end(Buffer.from(body))
  return { raw, refused, have, answer, pending }
}

const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, 'host: 127.0.0.1', ...headers, '', ''].join('\r\n')
const expecting = head('POST /b', 'expect: 100-continue', 'content-length: 5')

t.test('100 Continue waits for the answers to the requests before it', async t => {
  const { raw, have, answer, pending } = await start(t)
  raw.send(head('GET /1') + head('GET /2') + expecting)
  await have(2)
  // At once when it comes, in bytes: Node by itself would write 100 between its head and its body.
  const last = have(3).then(() => answer(2, 'third'))
  if (pending.length > 2) await last
  // Begun, so that a 100 would stand in the middle of it.
  const first = pending[0]?.response.writeHead(200, { 'content-length': 8 })
  first?.write('half')
  answer(1, 'second')
  await until('the first half is there', () => raw.socket.bytesRead > 0)
  first?.end('half')
  const { headers, ...whole } = await raw.answer()
  t.match(whole, { status: 200, body: 'halfhalf' })
  t.equal(headers.get('keep-alive'), 'timeout=5', 'how long it may be idle')
  t.match(await raw.answer(), { status: 200, body: 'second' })
  // Without a length it has no body.
  t.equal((await raw.answer('HEAD')).status, 100)
  raw.send('hello')
  await last
  t.match(await raw.answer(), { status: 200, body: 'third' })
})

t.test('a request that was answered before its body was read has no second answer', async t => {
  const { raw, refused, have, answer } = await start(t)
  raw.send(head('POST /a', 'transfer-encoding: chunked'))
  await have(1)
  answer(0, 'early')
  t.match(await raw.answer(), { status: 200, body: 'early' })
  raw.send('zz\r\n')
  t.strictSame(await raw.answersToTheEnd(), [])
  t.strictSame(refused, ['unparsable'])
})

t.test('garbage behind several requests takes none of their answers', async t => {
  const { raw, refused, have, answer } = await start(t)
  raw.send(`${head('GET /1') + head('GET /2') + head('GET /3')}no HTTP\r\n\r\n`)
  await have(3)
  await until('the garbage is refused', () => refused.length === 1)
  for (const [i, body] of ['third', 'second', 'first'].entries()) answer(2 - i, body)
  const bodies = (await raw.answersToTheEnd()).map(({ body }) => body)
  t.strictSame(bodies, ['first', 'second', 'third'])
  t.strictSame(refused, ['unparsable'])
})

t.test('a fault in the body of a request that waits for its answer is its answer, in its turn', async t => {
  for (const fields of [[], ['expect: 100-continue']]) {
    const { raw, refused, have, answer, pending } = await start(t)
    raw.send(`${head('GET /1') + head('POST /2', 'transfer-encoding: chunked', ...fields)}zz\r\n`)
    await have(1)
    await until('the fault is found', () => refused.length > 0)
    answer(0, 'first')
    const answers = await raw.answersToTheEnd()
    t.equal(answers.length, 2)
    t.match(answers, [{ status: 200 }, { status: 400, body: /the request is not valid HTTP/ }])
    t.strictSame(refused, ['unparsable', 'unread_body'])
    t.equal(pending.length, 2 - fields.length, 'one that waits to be asked for its body is not begun')
  }
})
