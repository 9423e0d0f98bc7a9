// The fuzzer finds faults: each test gives it a server with one fault in place of a gateway, and the checks must report it.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import t from 'tap'
import { marker } from '../../fuzz/http/answer-rules.ts'
import { createRandom } from '../../fuzz/random.ts'
import type { System } from '../../fuzz/system/system.ts'
import type { Target } from '../../fuzz/target.ts'
import { parameters } from '../../fuzz/targets/parameters.ts'
import { pipelines } from '../../fuzz/targets/pipelines.ts'
import { sockets } from '../../fuzz/targets/sockets.ts'
import { streams } from '../../fuzz/targets/streams.ts'
import { frame, frames } from '../support/http2-client.ts'

type Teardown = { teardown(fn: () => unknown): void }
type Respond = (request: string) => string

const quietMs = 25
const reset = Math.floor(Date.now() / 1000) + 3_600
const answer = (status: number, body: string, more = ''): string =>
  `HTTP/1.1 ${status} Any\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-ratelimit-limit: 9\r\nx-ratelimit-remaining: 8\r\nx-ratelimit-reset: ${reset}\r\nx-request-id: a-1\r\n${more}\r\n${body}`

const fixture = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url))
const certificate = { cert: fixture('localhost.crt'), key: fixture('localhost.key') }

/** A server that sends one fixed response to whatever comes, and closes. */
const serve = async (t: Teardown, respond: Respond, isTls: boolean): Promise<System> => {
  const onConnection = (socket: Socket): void => {
    socket.on('error', () => {})
    let text = ''
    let timer: NodeJS.Timeout | undefined
    // Requests come in chunks; they are complete when no more come.
    socket.setEncoding('latin1').on('data', piece => {
      text += piece
      clearTimeout(timer)
      timer = setTimeout(() => socket.end(Buffer.from(respond(text), 'latin1')), quietMs)
    })
  }
  const server: Server = isTls
    ? createTlsServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }, onConnection)
    : createServer({ allowHalfOpen: true }, onConnection)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const gateway = { api: { host: '127.0.0.1', port }, isAlive: () => true, residentBytes: () => 0 }
  return {
    gateway: () => gateway,
    keys: [{ id: 'key_1', key: `svc_live_${'0'.repeat(38)}`, limit: 9 }],
  } as unknown as System
}

/** The rules that the cases of one kind report as broken. */
const broken = async (t: Teardown, target: Target<never>, shape: string, respond: Respond) => {
  const session = await target.open(await serve(t, respond, target.name === 'streams'))
  const rules = new Set<string>()
  for (let number = 0, ran = 0; ran < 5; number++) {
    const one = target.generate(createRandom('finds', number), number)
    if (target.shapeOf(one) !== shape || target.isAlone(one)) continue
    ran += 1
    for (const { rule } of await session.run(one)) rules.add(rule)
  }
  return [...rules]
}

type Row = [what: string, rule: string, respond: Respond]
const close = 'connection: close\r\n'

const onSockets: Row[] = [
  [
    'two answers',
    'more answers than requests',
    () => answer(200, '{}') + answer(400, '{"error":"x","code":"x_y"}'),
  ],
  [
    'an answer behind the close',
    'the answer is not HTTP/1.1',
    () => answer(200, '{}', close) + answer(200, '{}'),
  ],
  [
    'a status of its own',
    'a status that the contract does not have',
    () => answer(503, '{"error":"x","code":"x_y"}'),
  ],
  [
    'a failure',
    '5xx although nothing failed',
    () => answer(500, '{"error":"x","code":"x_y"}', 'retry-after: 1\r\n'),
  ],
  ['no JSON', 'a body that is not one JSON object', () => answer(200, 'hello')],
  ['no sentence', 'a failure without error', () => answer(400, '{"message":"x"}')],
  ['no code', 'a failure without code', () => answer(400, '{"error":"x"}')],
  [
    'control characters',
    'an error with control characters',
    () => answer(400, '{"error":"\\u001b[2J","code":"x_y"}'),
  ],
  [
    'bytes of the request in a header',
    'a header holds bytes of the request',
    () => answer(200, '{}', `x: ${marker}\r\n`),
  ],
  ['a split response', 'the answer is not HTTP/1.1', () => answer(200, '{}', 'x: a\nset-cookie: b\r\n')],
  ['a large head', 'a head of more than 8 KiB', () => answer(200, '{}', `x: ${'y'.repeat(9_000)}\r\n`)],
  [
    'no quota',
    'rate-limit headers',
    () => answer(200, '{}').replace('x-ratelimit-limit: 9', 'x-ratelimit-limit: -1'),
  ],
  [
    'more left than there is',
    'rate-limit headers',
    () => answer(200, '{}').replace('remaining: 8', 'remaining: 10'),
  ],
  ['a 401 without a challenge', '401 without a challenge', () => answer(401, '{"error":"x","code":"x_y"}')],
  ['an age', 'an age', () => answer(200, '{}', 'age: 1\r\n')],
  ['another type', 'content-type', () => answer(200, '{}').replace('application/json', 'text/html')],
  ['a half answer', 'an answer breaks off', () => answer(200, '{}').slice(0, -1)],
  [
    'a refusal',
    'another status than HTTP and the contract demand',
    () => answer(404, '{"error":"x","code":"x_y"}'),
  ],
]

for (const [what, rule, respond] of onSockets)
  t.test(`sockets: ${what} is found`, async t => {
    const rules = await broken(t, sockets as Target<never>, 'good', respond)
    t.ok(rules.includes(rule), rules.join('; '))
  })

t.test('sockets: a server that accepts two hosts is found', async t => {
  const rules = await broken(t, sockets as Target<never>, 'two hosts', () => answer(200, '{}'))
  t.ok(rules.includes('another status than HTTP and the contract demand'), rules.join('; '))
  const right = await broken(t, sockets as Target<never>, 'two hosts', () =>
    answer(400, '{"error":"x","code":"x_y"}', close),
  )
  t.strictSame(right, [], 'and one that refuses them is not')
})

t.test('pipelines: a request without an answer and answers in another order are found', async t => {
  const ids = (request: string) => [...request.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id ?? '')
  const inOrder = (all: string[]) => all.map(id => answer(200, '{}').replace('a-1', id)).join('')
  const rules = (respond: Respond) => broken(t, pipelines as Target<never>, 'then nothing', respond)
  t.ok((await rules(request => inOrder(ids(request).slice(1)))).includes('a request without an answer'))
  t.ok((await rules(request => inOrder(ids(request).toReversed()))).includes('answers out of order'))
})

t.test('parameters: a wrong status, another place and other weather are found', async t => {
  const rules = (shape: string, respond: Respond) => broken(t, parameters as Target<never>, shape, respond)
  t.ok(
    (await rules('other paths', () => answer(200, '{}'))).includes('another status than the contract says'),
  )
  const place = { location: { id: '1', type: 'district' } }
  t.ok((await rules('detail', () => answer(200, JSON.stringify(place)))).includes('not the requested place'))
  t.ok(
    (await rules('list', () => answer(200, '{"results":[],"total":1,"type":"division"}'))).includes(
      'a list that is not right',
    ),
  )
})

t.test('streams: no answer, another status and a failure without error are found', async t => {
  const found = (respond: Respond) => broken(t, streams as Target<never>, 'valid requests', respond)
  const latin = (...bytes: Buffer[]) => Buffer.concat(bytes).toString('latin1')
  const status = (indexed: number, flags = 4) => frame(frames.headers, flags, 1, Buffer.from([indexed]))
  const body = (text: string) => frame(0, 1, 1, Buffer.from(text))
  const settings = frame(frames.settings, 0, 0)
  t.strictSame(await found(() => latin(settings)), ['a complete request without an answer'])
  const wrong = await found(() => latin(settings, status(0x8d), body('{"error":"x","code":"x_y"}')))
  t.ok(wrong.includes('another status than HTTP and the contract demand'), wrong.join('; '))
  const silent = await found(() => latin(settings, status(0x8c), body('{"message":"x"}')))
  t.ok(silent.includes('a failure without error'), silent.join('; '))
  const bodiless = await found(() => latin(settings, status(0x88, 5)))
  t.ok(bodiless.includes('a body that is not one JSON object'), bodiless.join('; '))
})
