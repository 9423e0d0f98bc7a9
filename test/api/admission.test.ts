// Without it what a refused, limited or failed request did could be told wrongly to its client, to metrics, to usage and to the log.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import type { ApiParts } from '../../src/api/api.ts'
import { badRequest, createDocUrl, Problem, problemOf } from '../../src/api/problem.ts'
import { createTransport, methodProblem, quotaProblem, rateProblem } from '../../src/api/refusals.ts'
import type { Access } from '../../src/api/request-state.ts'
import { sentences } from '../../src/api/sentences.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { restrictedBy } from '../../src/keys/restrictions.ts'
import { goodClient, goodKey, startApp } from './api-app.ts'

const weather = '/api/v1/weather/district/3026'
const testClient = { ...goodClient, isTest: true }
const now = Date.parse('2026-11-21T06:05:00Z')

/** The API with what it tells its observer. */
const startTold = async (t: Test, parts: Partial<ApiParts> = {}, options = {}) => {
  const told: unknown[][] = []
  const accesses: Access[] = []
  const tell =
    (name: string) =>
    (...given: readonly unknown[]): void =>
      void told.push([name, ...given])
  const observer: ApiParts['observer'] = {
    ...{ admission: tell('admission'), rateLimited: tell('limited'), refused: tell('refused') },
    ...{ failed: tell('failed'), connectionClosed: tell('closed'), writerFellBack: tell('fell back') },
    responded: (endpoint, status, seconds) => told.push(['responded', endpoint, status, seconds]),
    respondedToTest: tell('responded to test'),
    used: ({ endpoint, status, keyId }) => told.push(['used', endpoint, status, keyId]),
    access: access => accesses.push(access),
  }
  const app = await startApp(t, { observer, ...parts }, options)
  return {
    ...{ ...app, accesses },
    /** What was told since the last call. */
    told: () => told.splice(0).map(each => (each[0] === 'responded' ? each.slice(0, 3) : each)),
    seconds: () => told.find(([name]) => name === 'responded')?.[3],
  }
}

t.test('each request of a key is counted once, but not what asks for the key itself', async t => {
  const { inject, told } = await startTold(t)
  await inject(weather)
  const allowed = ['admission', 'allowed']
  t.strictSame(told(), [allowed, ['responded', 'weather', 200], ['used', 'weather', 200, 'key_1']])
  await inject('/api/v1/key')
  t.strictSame(told(), [allowed, ['responded', 'key', 200]])
  await inject('/nowhere')
  t.strictSame(told(), [
    ...[allowed, ['refused', 'key_1', 'path_not_found']],
    ...[
      ['responded', 'other', 404],
      ['used', 'other', 404, 'key_1'],
    ],
  ])
  await inject(weather, { 'x-api-key': 'svc_live_other' })
  const used = ['used', 'weather', 401, undefined]
  t.strictSame(told(), [['admission', 'unknown'], ['responded', 'weather', 401], used])
})

t.test('a refused key that is known is named to alerts and to the log', async t => {
  const authenticate = () => ({ refusal: 'key-expired' as const, keyId: 'key_9' })
  const { inject, told, accesses } = await startTold(t, { authenticate })
  t.hasStrict(await inject(weather), { status: 401, body: { code: 'key_expired' } })
  t.strictSame(told()[1], ['refused', 'key_9', 'key_expired'])
  t.hasStrict(accesses, [{ keyId: 'key_9', keyNumber: undefined, tier: undefined, reason: 'key-expired' }])
})

t.test('requests of test keys are no admissions, however they end', async t => {
  const quota = {
    ...{ now: () => now, resetAfter: () => now + 1, refund: () => 0, isExact: () => true },
    consume: ((_client, _at, _units, callback) => {
      if (failure) callback(failure)
      else callback(undefined, decision)
    }) as ApiParts['quota']['consume'],
  }
  let failure: AbohawaError | undefined
  let decision: { allowed: boolean; remaining: number; tooSoon?: typeof tooSoon } = {
    allowed: true,
    remaining: 1,
  }
  const tooSoon = { policy: 'minute', limit: 5, waitMs: 1_500 } as const
  let client = testClient
  const { inject, told } = await startTold(t, { quota, authenticate: () => ({ client }) })
  const tell = async () => {
    const { status } = await inject(weather)
    return [
      status,
      ...told().filter(([name]) => name === 'admission' || name === 'limited' || /test/.test(`${name}`)),
    ]
  }
  t.strictSame(await tell(), [200, ['responded to test', 200]])
  decision = { allowed: false, remaining: 0 }
  t.strictSame(await tell(), [429, ['responded to test', 429]])
  decision = { ...decision, tooSoon }
  t.strictSame(await tell(), [429, ['responded to test', 429]])
  failure = new AbohawaError('store_unavailable', 'away')
  t.strictSame(await tell(), [500, ['responded to test', 500]])
  client = goodClient
  t.strictSame(await tell(), [500, ['admission', 'unavailable']])
  failure = undefined
  t.strictSame(await tell(), [429, ['admission', 'rate_limited'], ['limited', 'minute']])
})

t.test('the time of a request is told in microseconds, and in seconds to metrics', async t => {
  const { now } = performance
  t.teardown(() => {
    performance.now = now
  })
  let at = 500
  performance.now = () => at
  const failing = () => {
    at += 1_234.567_8
    return Promise.reject(new AbohawaError('provider_failing', 'down'))
  }
  const { inject, accesses, seconds } = await startTold(t, { timelines: { read: failing } })
  await inject(weather)
  t.equal(accesses[0]?.ms, 1_234.568)
  t.equal(seconds(), 1_234.568 / 1_000)
})

t.test('weather that can not be loaded is 500, with its cause, its cell and when to try again', async t => {
  const failure = Object.assign(new AbohawaError('provider_failing', 'down'), { retryAt: now + 30_001 })
  const app = await startApp(t, { timelines: { read: () => Promise.reject(failure) } })
  t.hasStrict(await app.inject(weather), {
    status: 500,
    headers: { 'retry-after': '31', 'x-ratelimit-remaining': '9', 'cache-control': 'no-store' },
    body: { code: 'provider_failing', doc_url: '/docs#error-provider_failing' },
  })
  t.match(app.answered, [
    { reason: 'provider_failing', cell: /^23\.\d,90\.\d$/, status: 500, keyId: 'key_1' },
  ])
  t.strictSame([app.decisions, app.failures], [['allowed'], [failure]], 'it was admitted')
})

t.test('a failure says in whole seconds when to try again, ten where nobody knows', async t => {
  const failing = (more: object) => Object.assign(new AbohawaError('provider_busy', 'busy'), more)
  for (const [error, after] of [
    [failing({ retryAt: now + 1_000 }), '1'],
    [failing({ retryAt: now + 1_001 }), '2'],
    [failing({ retryAt: now - 5_000 }), '1'],
    [failing({}), '10'],
    [failing({ retryAt: undefined }), '10'],
    [Object.assign(new Error(), { retryAt: now + 2_000 }), '2'],
    ['thrown', '10'],
  ] as const) {
    const { status, code, headers } = problemOf(error, now)
    t.strictSame([status, headers['retry-after']], [500, after])
    t.equal(code, error instanceof AbohawaError ? 'provider_busy' : 'internal_error')
  }
  const refusal = badRequest(sentences.http.plain)
  t.equal(problemOf(refusal, now), refusal)
  t.equal(refusal.name, 'Problem')
  t.equal(createDocUrl('https://weather.example')('x'), 'https://weather.example/docs#error-x')
})

t.test('a key whose look-up takes time is admitted as any other, and fails with its store', async t => {
  const good = await startApp(t, { authenticate: async () => ({ client: goodClient }) })
  t.hasStrict(await good.inject(weather), { status: 200, headers: { 'x-ratelimit-remaining': '9' } })
  const away = await startApp(t, {
    authenticate: () => Promise.reject(new AbohawaError('store_unavailable', 'away')),
  })
  t.hasStrict(await away.inject(weather), { status: 500, body: { code: 'store_unavailable' } })
  t.strictSame(away.decisions, ['unavailable'])
})

t.test(
  'a list takes a unit for each place; one that is too long for the day is told what is left',
  async t => {
    const app = await startApp(t)
    const list = (count: number) =>
      app.inject(
        `/api/v1/weather?places=${Array.from({ length: count }, (_, i) => `coords/23.${i + 10}/90.4`)}`,
      )
    const { status, headers, body } = await list(11)
    t.hasStrict(
      { status, headers },
      { status: 429, headers: { 'x-ratelimit-cost': '11', 'retry-after': '42900' } },
    )
    t.hasStrict(body, { code: 'quota_insufficient', limit: 10, remaining: 10, cost: 11 })
    t.hasStrict(app.answered.at(-1), { cost: 11, reason: 'quota_insufficient' })
    t.hasStrict((await list(2)).headers, { 'x-ratelimit-cost': '2', 'x-ratelimit-remaining': '8' })
    t.hasStrict(await app.inject('/api/v1/weather?lang=en'), {
      status: 404,
      headers: { 'x-ratelimit-cost': undefined, 'x-ratelimit-remaining': '7' },
    })
    t.hasStrict(app.answered.at(-1), { endpoint: 'other', cost: undefined })
    t.hasStrict(await app.inject('/api/v1/weather?places=x&lang=fr'), {
      status: 400,
      headers: { 'x-ratelimit-cost': '1', 'x-ratelimit-remaining': '6' },
    })
  },
)

t.test('a bound key that comes too soon is told so, and not what it is bound to', async t => {
  const restrictions = { origins: ['https://a.example'], addresses: null, endpoints: null }
  const client = { ...goodClient, restrictedBy: restrictedBy(restrictions) }
  let tooSoon: object | undefined = { policy: 'second', limit: 3, waitMs: 200 }
  const consume: ApiParts['quota']['consume'] = (_client, _at, units, callback) =>
    callback(undefined, { allowed: units === 0, remaining: 4, ...(tooSoon && { tooSoon }) } as never)
  const quota = { now: () => now, resetAfter: () => now + 1, refund: () => 0, isExact: () => true, consume }
  const { inject, told, accesses } = await startTold(t, { authenticate: () => ({ client }), quota })
  t.match(await inject(weather), {
    status: 429,
    headers: { 'x-ratelimit-remaining': '4', 'retry-after': '1', ratelimit: /^"daily";r=4;/ },
    body: { code: 'rate_limited', policy: 'second', limit: 3, reset_at: '2026-11-21T06:05:00.200Z' },
  })
  t.hasStrict(accesses.at(-1), { reason: 'rate_limited' })
  t.strictSame(told().slice(0, 2), [
    ['admission', 'rate_limited'],
    ['limited', 'second'],
  ])
  tooSoon = undefined
  t.match(await inject(weather), { status: 403, body: { error: / must be https:\/\/a\.example, got none$/ } })
  t.match(await inject(weather, { origin: 'https://b.example' }), {
    body: { error: /, got "https:\/\/b\.example"$/ },
  })
})

t.test(
  'an address is the client’s own behind a trusted proxy, and logged as far as the settings allow',
  async t => {
    const restrictions = { origins: null, addresses: ['203.0.113.0/24'], endpoints: null }
    const client = { ...goodClient, restrictedBy: restrictedBy(restrictions) }
    const proxied = { trustedProxies: ['127.0.0.1'], clientAddress: 'prefix' as const }
    const app = await startApp(t, { authenticate: () => ({ client }) }, proxied)
    const from = (address: string) =>
      app.inject(weather, { 'x-forwarded-proto': 'https', 'x-forwarded-for': address })
    t.equal((await from('203.0.113.9')).status, 200)
    t.match(await from('198.51.100.1'), { status: 403, body: { error: / the address "198\.51\.100\.1"; / } })
    t.strictSame(
      app.answered.map(({ address }) => address),
      ['203.0.113.0/24', '198.51.100.0/24'],
    )
    const plain = { status: 400, body: { code: 'https_required' } }
    t.hasStrict(await app.inject(weather, { 'x-api-key': goodKey }), plain, 'with a host that was good')
    t.equal(app.decisions.length, 2, 'no key is read before')
  },
)

t.test('a trace continues that of the client, and ends with the request', async t => {
  const parents: unknown[] = []
  const ended: Access[] = []
  const trace: ApiParts['trace'] = (parent, next) => {
    parents.push(parent)
    next()
    return { traceId: 'mine', end: access => ended.push(access as Access) }
  }
  const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  const traceparent = `00-${traceId}-${spanId}-01`
  const traced = await startTold(t, { trace })
  await traced.inject(weather, { 'x-api-key': goodKey, traceparent })
  await traced.inject('/nowhere')
  t.strictSame(parents, [{ traceId, spanId, isSampled: true }, undefined])
  t.hasStrict(ended, [
    { traceId: 'mine', status: 200, address: '127.0.0.1' },
    { traceId: 'mine', status: 404 },
  ])
  t.equal(traced.accesses[0], ended[0], 'the record of the log')
  const proxied = await startApp(t, { trace }, { trustedProxies: ['127.0.0.1'] })
  await proxied.inject(weather, { 'x-api-key': goodKey })
  t.hasStrict(ended.at(-1), { traceId: 'mine', status: 400 }, 'also of one that is refused at once')
  const app = await startApp(t)
  await app.inject(weather, { 'x-api-key': goodKey, traceparent })
  await app.inject(weather)
  t.strictSame(
    app.answered.map(each => each.traceId),
    [traceId, undefined],
  )
})

const requestOf = (headers: IncomingHttpHeaders, more: object = {}, httpVersion = '1.1') =>
  ({ headers, httpVersion, socket: { remoteAddress: '10.0.0.1', ...more } }) as unknown as IncomingMessage

t.test('what is no valid HTTP/1.1 or 1.0 ends its connection', async t => {
  const { transportProblem, isHttpsRequired } = createTransport(undefined)
  t.equal(isHttpsRequired, false)
  const chunked = 'transfer-encoding'
  for (const [headers, version, code] of [
    [{ host: 'x' }, '1.1', undefined],
    [{ host: 'x:8080' }, '1.1', undefined],
    [{ host: '[::1]:' }, '1.1', undefined],
    [{ host: 'x', 'x-forwarded-proto': 'http' }, '1.1', undefined],
    [{}, '1.0', undefined],
    [{}, '1.1', 'host_missing'],
    [{ host: '' }, '1.1', 'host_missing'],
    [{ host: 'x, y' }, '1.1', 'host_invalid'],
    [{ host: 'x:123456' }, '1.0', 'host_invalid'],
    [{ host: 'x' }, '1.2', 'http_version_not_supported'],
    [{ host: 'x', [chunked]: 'Chunked' }, '1.1', undefined],
    [{ host: 'x', [chunked]: 'gzip, chunked' }, '1.1', 'transfer_encoding_not_supported'],
    [{ host: 'x', [chunked]: 'chunked' }, '1.0', 'transfer_encoding_in_http_1_0'],
  ] as [IncomingHttpHeaders, string, string | undefined][]) {
    const problem = transportProblem(requestOf(headers, {}, version))
    t.equal(problem?.code, code, JSON.stringify([headers, version]))
    if (problem) t.strictSame([problem.status, problem.endsConnection], [400, true])
  }
})

t.test('plain HTTP is what no trusted proxy calls HTTPS on every hop, unless TLS ends here', async t => {
  const { transportProblem, originOf, isHttpsRequired } = createTransport(address => address === '10.0.0.1')
  t.equal(isHttpsRequired, true)
  const [other, encrypted] = [{ remoteAddress: '10.0.0.2' }, { encrypted: true }]
  for (const [proto, more, isPlain] of [
    ['https', {}, false],
    ['HTTPS', {}, false],
    [' https , https', {}, false],
    ['https, http', {}, true],
    ['http, https', encrypted, true],
    ['', {}, true],
    [undefined, {}, true],
    [undefined, encrypted, false],
    ['https', other, true],
    ['http', { ...other, ...encrypted }, false],
  ] as const) {
    const headers = { host: 'x', ...(proto === undefined ? {} : { 'x-forwarded-proto': proto }) }
    const problem = transportProblem(requestOf(headers, more))
    t.equal(problem?.code, isPlain ? 'https_required' : undefined, JSON.stringify([proto, more]))
    if (problem) t.equal(problem.endsConnection, false)
  }
  const forwarded = { host: 'inner', 'x-forwarded-host': 'outer:8443, other' }
  t.equal(originOf(requestOf(forwarded)), 'https://outer:8443')
  t.equal(originOf(requestOf(forwarded, other)), 'https://inner')
  t.equal(originOf(requestOf({ host: 'inner' })), 'https://inner')
  const alone = createTransport(undefined)
  t.equal(alone.originOf(requestOf(forwarded)), 'http://inner')
  t.equal(alone.originOf(requestOf(forwarded, encrypted)), 'https://inner')
  t.equal(alone.originOf(requestOf({})), undefined)
})

t.test('a limit says in whole seconds when it ends, and with which figures', async t => {
  const seconds = (ms: number) => quotaProblem(10, now + ms, now).headers['retry-after']
  t.strictSame([-5, 1, 1_000, 1_001].map(seconds), ['1', '1', '1', '2'])
  const resetAt = '2026-11-21T06:05:01.000Z'
  for (const [cost, remaining, code, fields] of [
    [undefined, 3, 'quota_exhausted', {}],
    [2, 0, 'quota_exhausted', { remaining: 0, cost: 2 }],
    [2, undefined, 'quota_exhausted', { remaining: 0, cost: 2 }],
    [2, 1, 'quota_insufficient', { remaining: 1, cost: 2 }],
  ] as const) {
    const problem = quotaProblem(10, now + 1_000, now, cost, remaining)
    t.strictSame([problem.status, problem.code], [429, code])
    t.strictSame(problem.fields, { limit: 10, reset_at: resetAt, ...fields })
  }
  const rate = (waitMs: number) => rateProblem({ policy: 'minute', limit: 7, waitMs }, now)
  t.strictSame(
    [0, 1_000, 1_000.5].map(ms => rate(ms).headers['retry-after']),
    ['1', '1', '2'],
  )
  t.strictSame(rate(999.5).fields, { policy: 'minute', limit: 7, reset_at: resetAt })
  const method = methodProblem({ method: 'POST', headers: {} })
  t.match(method, { status: 405, headers: { allow: 'GET, HEAD' }, message: / got POST$/ })
  t.ok(method instanceof Problem)
})
