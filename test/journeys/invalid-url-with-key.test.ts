// A URL that no parser accepts, with a key: raw UTF-8, or too long. It is a 400 like any other, counted, with the real
// figures of the key: a client that throttles itself would stop for the day at zeros.

import t, { type Test } from 'tap'
import { startProviderHere } from '../support/provider-here.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway } from '../support/start-gateway.ts'

const provider = await startProviderHere(t)
const env = { ABOHAWA_QUOTA__TIERS__FREE: '3' }
const gateway = await startGateway(t, { providerUrl: provider.url, env })

const good = 'GET /api/v1/locations?type=division HTTP/1.1'
const bengali = 'GET /api/v1/locations?type=district&q=ঢাকা HTTP/1.1'
const tooLong = `GET /api/v1/locations?type=district&q=${'x'.repeat(40_000)} HTTP/1.1`
const lines: [string, string, RegExp][] = [
  ['raw UTF-8', bengali, /must be percent-encoded/],
  ['an over-long URL', tooLong, /too large; allowed: 16 KiB together/],
]
const request = (line: string, headers: Record<string, string>) =>
  [line, 'host: x', ...Object.entries(headers).map(pair => pair.join(': ')), '', ''].join('\r\n')
const figures = (headers: ReadonlyMap<string, string>) =>
  ['limit', 'remaining'].map(name => Number(headers.get(`x-ratelimit-${name}`)))

const send = async (t: Test, bytes: string, pieces = 1, before = '', { apiUrl } = gateway) => {
  const connection = await openRaw(t, apiUrl)
  if (before) {
    connection.send(before)
    t.equal((await connection.answer()).status, 200)
  }
  const all = Buffer.from(bytes)
  const size = Math.ceil(all.length / pieces)
  for (let at = 0; at < all.length; at += size) {
    connection.send(all.subarray(at, at + size))
    await new Promise(resolve => setImmediate(resolve))
  }
  const answers = await connection.answersToTheEnd()
  t.equal(answers.length, 1)
  const [answer] = answers
  if (!answer) throw new Error('no answer')
  return answer
}

for (const [name, line, sentence] of lines)
  t.test(`${name} with a good key`, async t => {
    const key = gateway.keys.enterprise ?? ''
    const left = async () =>
      Number((await gateway.get('/locations?type=division')).headers['x-ratelimit-remaining'])
    const before = request(good, { 'x-api-key': key })
    let units = await left()
    for (const [spelling, pieces, first] of [
      ['x-api-key', 1, ''],
      ['X-API-Key', 7, ''],
      ['x-api-key', 1, before],
      ['x-api-key', 7, before],
    ] as const) {
      const answer = await send(t, request(line, { accept: '*/*', [spelling]: key }), pieces, first)
      t.equal(answer.status, 400)
      t.match(JSON.parse(answer.body), { error: sentence })
      units -= first ? 2 : 1
      t.strictSame(figures(answer.headers), [100_000, units])
      units -= 1
      t.equal(await left(), units, 'it is counted')
    }
    // If the request line came in a packet of its own, its method is no longer known.
    const logged = gateway.logged.find(each => each.status === 400 && each.method)
    t.match(logged, { msg: 'answered', method: 'GET', keyId: gateway.keyIds.enterprise, endpoint: 'other' })
  })

t.test('without a good key it is 400 with zeros, as before', async t => {
  for (const [, line] of lines)
    for (const headers of [{}, { 'x-api-key': 'svc_live_wrong' }]) {
      const answer = await send(t, request(line, headers))
      t.equal(answer.status, 400)
      t.strictSame(figures(answer.headers), [0, 0])
    }
})

t.test('over plain HTTP, where HTTPS is required, it is not counted and shows no figures', async t => {
  const proxies = { ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.1' }
  const behind = await startGateway(t, { providerUrl: provider.url, env: proxies })
  const key = behind.keys.enterprise ?? ''
  const sendThroughProxy = async (headers: Record<string, string>) => {
    const answer = await send(t, request(bengali, { 'x-api-key': key, ...headers }), 1, '', behind)
    return { ...answer, error: JSON.parse(answer.body).error }
  }
  for (const headers of [{}, { 'x-forwarded-proto': 'http' }]) {
    const plain = await sendThroughProxy(headers)
    t.match(plain, { status: 400, error: /HTTPS is required/ })
    t.strictSame(figures(plain.headers), [0, 0])
    t.equal(plain.headers.get('ratelimit'), undefined)
  }
  const secure = await sendThroughProxy({ 'x-forwarded-proto': 'https', 'x-request-id': 'mine' })
  t.match(secure, { status: 400, error: /must be percent-encoded/ })
  t.strictSame(figures(secure.headers), [100_000, 99_999], 'the first that is counted')
  t.match(secure.headers.get('ratelimit'), /^"daily";r=99999;t=\d+$/)
  t.equal(secure.headers.get('x-request-id'), 'mine')
})

t.test('once the quota is exhausted it is 429', async t => {
  const headers = { 'x-api-key': gateway.keys.free ?? '' }
  for (const remaining of [2, 1, 0]) {
    const answer = await send(t, request(bengali, headers))
    t.equal(answer.status, 400)
    t.strictSame(figures(answer.headers), [3, remaining])
  }
  const answer = await send(t, request(bengali, headers))
  t.equal(answer.status, 429)
  t.strictSame(figures(answer.headers), [3, 0])
  t.match(answer.headers.get('retry-after'), /^\d+$/)
  t.match(JSON.parse(answer.body), { limit: 3, reset_at: /Z$/ })
})

t.test('an endless head gets its response at the timeout, and only a bounded part of it is read', async t => {
  const connection = await openRaw(t, gateway.apiUrl)
  connection.send(`${bengali}\r\n`)
  connection.send(`a: ${'x'.repeat(300_000)}`)
  const [answer] = await connection.answersToTheEnd()
  t.equal(answer?.status, 400)
})
