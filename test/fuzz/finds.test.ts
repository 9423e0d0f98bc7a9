// Without it the fuzzer could pass over a planted fault.

import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import fc from 'fast-check'
import t from 'tap'
import type { Fault } from '../../fuzz/fault.ts'
import { marker } from '../../fuzz/http/request-text.ts'
import type { System } from '../../fuzz/system/system.ts'
import { parts, type Target } from '../../fuzz/target.ts'
import { parameters } from '../../fuzz/targets/parameters.ts'
import { sockets } from '../../fuzz/targets/sockets.ts'
import { streams } from '../../fuzz/targets/streams.ts'
import { checkCount, openTraffic, traffic } from '../../fuzz/targets/traffic.ts'
import { frame, frames, localCertificate } from '../support/http2-client.ts'
import { listenOn } from '../support/listening.ts'
import { runShared } from '../support/process.ts'
import type { Teardown } from '../support/teardown.ts'

type Respond = (request: string) => string

const quietMs = 25
const midnightInDhaka = Math.ceil((Date.now() / 1000 + 21_600) / 86_400) * 86_400 - 21_600
const answer = (status: number, body: string, more = ''): string =>
  `HTTP/1.1 ${status} Any\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-ratelimit-limit: 9\r\nx-ratelimit-remaining: 8\r\nx-ratelimit-reset: ${midnightInDhaka}\r\nx-request-id: a-1\r\n${more}\r\n${body}`
const certificate = { cert: readFileSync(localCertificate.cert), key: readFileSync(localCertificate.key) }

/** A server that sends one fixed response to whatever comes, and closes. */
const serve = async (t: Teardown, respond: Respond, isTls: boolean): Promise<System> => {
  const onConnection = (socket: Socket): void => {
    let text = ''
    let timer: NodeJS.Timeout | undefined
    // Requests come in chunks; they are complete when no more come.
    socket.on('error', () => {}).setEncoding('latin1')
    socket.on('data', piece => {
      text += piece
      clearTimeout(timer)
      timer = setTimeout(() => socket.end(Buffer.from(respond(text), 'latin1')), quietMs)
    })
  }
  const server: Server = isTls
    ? createTlsServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }, onConnection)
    : createServer({ allowHalfOpen: true }, onConnection)
  const apiUrl = `http${isTls ? 's' : ''}://127.0.0.1:${await listenOn(t, server)}`
  const gateway = { apiUrl, isAlive: () => true, residentMiB: () => 0 }
  return {
    gateway: () => gateway,
    key: `svc_live_${'0'.repeat(38)}`,
  } as unknown as System
}

const casesOf = <Case>({ batches }: Target<Case>, numRuns: number): Case[] =>
  fc.sample(batches, { seed: 7, numRuns, unbiased: true }).flat()

/** The rules that the cases of one kind report as broken. */
const broken = async <Case>(
  t: Teardown,
  target: Target<Case>,
  kind: string,
  respond: Respond,
  most = 3,
): Promise<string[]> => {
  const session = await target.open(await serve(t, respond, target.name === 'streams'))
  const cases = casesOf(target, 8).filter(one => target.kindOf(one) === kind)
  const rules = new Set<string>()
  for (const one of cases.slice(0, most))
    await session.run(one).catch((fault: Fault) => rules.add(fault.rule ?? fault))
  return cases.length === 0 ? ['no case'] : [...rules]
}

const close = 'connection: close\r\n'
const failure = '{"error":"x","code":"x_y","doc_url":"/docs#error-x_y"}'
const ok = (more = '') => answer(200, '{}', more)
const notHttp = parts(`garbage|HTTP/1.0 200 OK\r\ncontent-length: 2|HTTP/1.1 200 OK\r\nx : 1|HTTP/1.1 200 OK|
  HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2|HTTP/1.1 200 OK\r\ncontent-length: +2|
  HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked|HTTP/1.1 200 OK\r\ntransfer-encoding: gzip|
  HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz|HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc`).map(
  head => `${head}\r\n\r\n{}`,
)
const onSockets: Readonly<Record<string, string[]>> = {
  'more answers than requests': [ok() + answer(400, failure)],
  'the answer is not HTTP/1.1': [ok(close) + ok(), ok('x: a\nset-cookie: b\r\n'), ...notHttp],
  'a status that the contract does not have': [answer(503, failure)],
  '5xx although nothing failed': [answer(500, failure, 'retry-after: 1\r\n')],
  'a body that is not one JSON object': [answer(200, 'hello')],
  'a failure without error': [answer(400, '{"message":"x"}')],
  'a failure without code': [answer(400, '{"error":"x"}')],
  'a failure that leads nowhere': [answer(400, '{"error":"x","code":"x_y","doc_url":"/docs#error-x_z"}')],
  'an error with control characters': [answer(400, failure.replace('x', '\\u001b[2J'))],
  'a header holds bytes of the request': [ok(`x: ${marker}\r\n`)],
  'a head of more than 8 KiB': [ok(`x: ${'y'.repeat(9_000)}\r\n`)],
  'rate-limit headers': [
    ok().replace('limit: 9', 'limit: -1'),
    ok().replace('remaining: 8', 'remaining: 10'),
  ],
  '401 with another www-authenticate': [answer(401, failure)],
  'an age': [ok('age: 1\r\n')],
  'content-type': [ok().replace('application/json', 'text/html')],
  'an answer breaks off': [ok().slice(0, -1)],
  'another status than HTTP and the contract demand': [answer(404, failure)],
}
for (const [rule, sent] of Object.entries(onSockets))
  t.test(`sockets: ${rule}: it is found`, async t => {
    for (const one of sent) t.strictSame(await broken(t, sockets, 'good', () => one), [rule])
  })

t.test('sockets: a server that accepts two hosts is found, and one that refuses them is not', async t => {
  const rules = await broken(t, sockets, 'two hosts', () => ok())
  t.strictSame(rules, ['another status than HTTP and the contract demand'])
  t.strictSame(await broken(t, sockets, 'two hosts', () => answer(400, failure, close)), [])
})

t.test('sockets: in a pipeline a missing answer and answers in another order are found', async t => {
  const ids = (request: string) => [...request.matchAll(/x-request-id: (fuzz\S+)/g)].map(([, id]) => id ?? '')
  const inOrder = (all: string[]) => all.map(id => ok().replace('a-1', id)).join('')
  const rules = (respond: Respond) => broken(t, sockets, 'pipeline, then nothing', respond, 8)
  t.ok((await rules(request => inOrder(ids(request).slice(1)))).includes('a request without an answer'))
  t.ok((await rules(request => inOrder(ids(request).toReversed()))).includes('answers out of order'))
})

t.test('parameters: a wrong status, another place and other weather are found', async t => {
  const finds = async (kind: string, respond: Respond, rule: string) =>
    t.ok((await broken(t, parameters, kind, respond, 8)).includes(rule), rule)
  await finds('other paths', () => answer(200, '{}'), 'another status than the contract says')
  const place = JSON.stringify({ location: { id: '1', type: 'district' } })
  await finds('detail', () => answer(200, place), 'not the requested place')
  await finds(
    'list',
    () => answer(200, '{"results":[],"total":1,"type":"division"}'),
    'a list that is not right',
  )
})

t.test('streams: no answer, another status and a failure without error are found', async t => {
  const found = (respond: Respond) => broken(t, streams, 'valid requests', respond)
  const latin = (...bytes: Buffer[]) => Buffer.concat(bytes).toString('latin1')
  const status = (indexed: number, flags = 4) => frame(frames.headers, flags, 1, Buffer.from([indexed]))
  const body = (text: string) => frame(0, 1, 1, Buffer.from(text))
  const settings = frame(frames.settings, 0, 0)
  t.strictSame(await found(() => latin(settings)), ['a complete request without an answer'])
  const silent = await found(() => latin(settings, status(0x8c), body('{"message":"x"}')))
  t.strictSame(silent, ['a failure without error'])
  const bodiless = await found(() => latin(settings, status(0x88, 5)))
  t.strictSame(bodiless, ['a body that is not one JSON object'])
})

t.test('traffic: every command says how many lines are faulty', async t => {
  // One counted case of each command and format, with some faulty lines.
  const isSmall = ({ isCounted, text }: { isCounted: boolean; text: string }) =>
    isCounted && text.length < 8_000
  const cases = new Map(
    casesOf(traffic, 400)
      .filter(isSmall)
      .map(one => [traffic.kindOf(one), one]),
  )
  t.equal(cases.size, 20)
  const system = await serve(t, () => answer(200, '{}'), false)
  const { run, close } = await openTraffic(system, async args => {
    return { ...(await runShared(args)), signal: null, isLate: false }
  })
  t.teardown(() => close?.())
  for (const [, one] of cases) await run(one)
})

t.test('traffic: another number is found, and so is a command that fails', async t => {
  const ended = { code: 0, signal: null, isLate: false, stdout: 'faulty  2 lines, left out\n', stderr: '' }
  const given = { command: 'stats', format: 'ndjson', text: '{"at":\nnull\n' } as const
  checkCount(given, ended, 'file')
  t.throws(() => checkCount({ ...given, text: 'null\n' }, ended, 'file'), {
    message: '2 reported, 1 in the file',
  })
  t.throws(() => checkCount(given, { ...ended, stdout: '' }, 'file'), {
    message: '0 reported, 2 in the file',
  })
  t.throws(() => checkCount(given, { ...ended, code: 1 }, 'file'), {
    message: /^faulty lines do not end a command/,
  })
})
