// Without it, bytes of one client's body could become the request of another on the ops listener.

import t from 'tap'
import { createKey, processEnv } from '../scenarios/set-up.ts'
import { startCommand } from '../support/process.ts'
import { openRaw } from '../support/raw-connection.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { refusedFor } from './ops-requests.ts'

const token = '0123456789-abcdefghijklmnopqrstuv'
const authorization = `Bearer ${token}`
const bodiless = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'] as const

const startGateway = async () => {
  const redis = await testRedis(t)
  const env = processEnv('http://127.0.0.1:9', {
    ...redis.env,
    ABOHAWA_OPS__TOKEN: token,
  })
  await createKey(env)
  const { urls } = await startCommand(t, ['serve'], ['api', 'ops'], env)
  const ops = urls.ops ?? ''
  const { body } = await sendRequest(`${ops}/keys`, { headers: { authorization } })
  const [{ id }] = body.keys
  const operator = () => sendRequest(`${ops}/keys/${id}`, { headers: { authorization } })
  return { ops, id: id as string, operator }
}

// One gateway for the whole file: no test leaves anything on it that another one looks at.
const gateway = await startGateway()

const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, 'host: 127.0.0.1', ...headers, '', ''].join('\r\n')
/** A request that lacks its end: what comes next, with its token, would be a part of it. */
const begun = (id: string): string => `POST /keys/${id}/revoke HTTP/1.1\r\nx: `
const sentenceFor = (method: string): string => `a request with ${method} must have no body`

t.test('a stranger’s body never runs as the request of an operator', async t => {
  const { ops, id, operator } = gateway
  const before = await refusedFor(ops, 'body')
  for (const method of bodiless)
    for (const [framing, bytes] of [
      ['chunked', head(`${method} /status`, 'transfer-encoding: chunked') + chunked(begun(id))],
      ['content-length', head(`${method} /status`, `content-length: ${begun(id).length}`) + begun(id)],
    ] as const) {
      const stranger = await openRaw(t, ops)
      stranger.send(bytes + head('GET /livez'))
      const refused = await stranger.answer(method)
      t.equal(refused.status, 400, `${method}, ${framing}`)
      if (method !== 'HEAD') t.equal(JSON.parse(refused.body).error, sentenceFor(method))
      t.strictSame(await stranger.answersToTheEnd(), [], 'nothing behind it is a request')
      const { status, body } = await operator()
      t.hasStrict({ status, body }, { status: 200, body: { id, status: 'active' } }, `${method}, ${framing}`)
    }
  t.equal((await refusedFor(ops, 'body')) - before, 2 * bodiless.length)
})

t.test('an empty body belongs everywhere, and another is taken whole where one belongs', async t => {
  const { ops, id, operator } = gateway
  for (const method of bodiless) {
    const empty = await openRaw(t, ops)
    empty.send(head(`${method} /livez`, 'content-length: 0'))
    t.equal((await empty.answer(method)).status, method === 'GET' || method === 'HEAD' ? 200 : 401)
  }

  const raw = await openRaw(t, ops)
  const post = (path: string, more: readonly string[], body: string) => {
    raw.send(head(`POST ${path}`, `authorization: ${authorization}`, ...more) + body)
    return raw.answer()
  }
  const json = 'content-type: application/json'
  const limit = (value: number) => JSON.stringify({ limit: value })
  const limitOf = async (answer: Promise<{ status: number; body: string }>) => {
    const { status, body } = await answer
    return status === 200 ? JSON.parse(body).limit : `${status} ${body}`
  }
  const path = `/keys/${id}/limit`
  t.equal(await limitOf(post(path, [json, 'content-length: 12'], limit(11))), 11)
  t.equal(await limitOf(post(path, [json, 'transfer-encoding: chunked'], chunked(limit(12)))), 12)
  const trailed = chunked(limit(13)).replace(/\r\n$/, 'x: y\r\n\r\n')
  const trailer = [json, 'transfer-encoding: chunked', 'trailer: x']
  t.equal(await limitOf(post(path, trailer, trailed)), 13, 'trailers')
  t.match(await post(`/keys/${id}/revoke`, [], ''), { status: 200 }, 'no body, and no length')
  t.match(await post(`/keys/${id}/reinstate`, ['content-length: 0'], ''), { status: 200 })
  t.hasStrict((await operator()).body, { id, status: 'active', limit: 13 })
})

t.test('behind a body that is not taken the connection ends, and behind one that is, it goes on', async t => {
  const { ops } = gateway
  const short = 'x'.repeat(10_000)
  const long = 'x'.repeat(100_000)
  for (const [status, type, body, goesOn] of [
    [400, 'text/csv', short, false],
    [400, 'application/json', '{', false],
    [201, 'application/json', '{"subscriber":"a","tier":"starter"}', true],
    [413, 'application/json', long, false],
  ] as const)
    for (const [framing, bytes] of [
      [`content-length: ${body.length}`, body],
      ['transfer-encoding: chunked', chunked(body)],
    ] as const) {
      const raw = await openRaw(t, ops)
      const fields = [`authorization: ${authorization}`, `content-type: ${type}`, framing]
      const next = head('GET /livez', 'connection: close')
      raw.send(head('POST /keys', ...fields) + bytes + next)
      const [first, ...rest] = await raw.answersToTheEnd()
      t.equal(first?.status, status, `${status}, ${framing}`)
      t.strictSame(
        rest.map(({ body }) => body),
        goesOn ? ['{"status":"live"}'] : [],
        `${status}, ${framing}: nothing of the body is a request`,
      )
    }
})

t.test('nothing behind a CONNECT runs as a request, because its connection ends', async t => {
  const { ops, id, operator } = gateway
  for (const fields of [['content-length: 1000'], ['transfer-encoding: chunked'], []]) {
    const stranger = await openRaw(t, ops)
    const revoke = head(`POST /keys/${id}/revoke`, `authorization: ${authorization}`)
    stranger.send(head('CONNECT 127.0.0.1:80', ...fields) + revoke)
    const answers = await stranger.answersToTheEnd()
    t.strictSame(answers, [])
    t.hasStrict((await operator()).body, { id, status: 'active' })
  }
})
