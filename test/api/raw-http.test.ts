// Without it a client that speaks HTTP wrongly could get no reason, or have the rest of its bytes read as a request.

import type { AddressInfo } from 'node:net'
import t from 'tap'
import { openRaw } from '../support/raw-connection.ts'
import { goodKey, startApp } from './api-app.ts'

const path = '/api/v1/locations?type=union&limit=1'
const good = `GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${goodKey}\r\n\r\n`
const head = (line: string, ...headers: string[]) =>
  `${line}\r\n${[`x-api-key: ${goodKey}`, ...headers].join('\r\n')}\r\n\r\n`

/** What is sent, and the statuses and codes of all answers until the connection is closed. */
const cases: [what: string, bytes: string, answers: readonly [status: number, code?: string][]][] = [
  ['a body', `${head(`GET ${path} HTTP/1.1`, 'host: x', 'content-length: 4')}body${good}`, [[200]]],
  [
    'a chunked body',
    `${head(`GET ${path} HTTP/1.1`, 'host: x', 'transfer-encoding: chunked')}0\r\n\r\n${good}`,
    [[200]],
  ],
  [
    'an upgrade',
    `${head(`GET ${path} HTTP/1.1`, 'host: x', 'connection: upgrade', 'upgrade: h2c')}${good}`,
    [[200]],
  ],
  ['no host', `${good}${head(`GET ${path} HTTP/1.1`)}${good}`, [[200], [400, 'host_missing']]],
  ['no host in HTTP/1.0', head(`GET ${path} HTTP/1.0`), [[200]]],
  [
    'no host behind one without it in HTTP/1.0',
    `${head(`GET ${path} HTTP/1.0`, 'connection: keep-alive')}${head(`GET ${path} HTTP/1.1`)}`,
    [[200], [400, 'host_missing']],
  ],
  [
    'a coding in HTTP/1.0',
    `${good}${head(`GET ${path} HTTP/1.0`, 'host: x', 'transfer-encoding: chunked')}`,
    [[200], [400, 'transfer_encoding_in_http_1_0']],
  ],
  [
    'another coding',
    `${good}${head(`GET ${path} HTTP/1.1`, 'host: x', 'transfer-encoding: gzip, chunked')}`,
    [[200], [400, 'transfer_encoding_not_supported']],
  ],
  ['two hosts', head(`GET ${path} HTTP/1.1`, 'host: a b'), [[400, 'host_invalid']]],
  [
    'a huge head',
    head(`GET ${path} HTTP/1.1`, 'host: x', `x: ${'y'.repeat(20_000)}`),
    [[400, 'head_too_large']],
  ],
  ['no HTTP', `${good}nonsense\r\n\r\n${good}`, [[200], [400, 'http_invalid']]],
  ['a letter in the URL', `GET /\u00e9 HTTP/1.1\r\nhost: x\r\n\r\n`, [[400, 'url_not_encoded']]],
  ['CONNECT', `CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n`, [[405, 'method_not_allowed']]],
  ['CONNECT behind a request', `${good}CONNECT x:80 HTTP/1.1\r\n\r\n`, [[200], [405, 'method_not_allowed']]],
  ['half of a request', `GET ${path} HTTP/1.1\r\nhost`, [[400, 'request_timeout']]],
]
for (const [what, bytes, answers] of cases)
  t.test(`${what}: ${answers.map(([status]) => status)}, and the connection ends`, async t => {
    const isLate = answers.some(([, code]) => code === 'request_timeout')
    const cors = { origins: ['https://a.example'] }
    const app = await startApp(t, {}, { cors, ...(isLate && { requestTimeoutMs: 400 }) })
    await app.listen({ host: '127.0.0.1', port: 0 })
    t.teardown(app.close)
    const { port } = app.server.address() as AddressInfo
    const connection = await openRaw(t, `http://127.0.0.1:${port}`)
    connection.send(bytes)
    const all = await connection.answersToTheEnd()
    t.strictSame(
      all.map(({ status, body }) => [status, ...(status === 200 ? [] : [JSON.parse(body).code])]),
      answers,
    )
    const headers = Object.fromEntries(all.at(-1)?.headers ?? [])
    const [status] = answers.at(-1) ?? []
    const refusal = { 'x-ratelimit-limit': '0', 'x-ratelimit-remaining': '0', 'cache-control': 'no-store' }
    t.match(headers, { connection: 'close', 'x-request-id': /^.{20}$/, ...(status === 200 ? {} : refusal) })
    t.match(headers, { vary: /origin$/, 'content-type': 'application/json; charset=utf-8' })
    t.equal(headers['x-ratelimit-reset'], String(Date.parse('2026-11-21T18:00:00Z') / 1_000))
  })
