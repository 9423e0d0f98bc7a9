// Without it an error that a test key requests could differ from the real one in its status, its headers or the figures of the quota.

import t, { type Test } from 'tap'
import type { Client } from '../../src/keys/authentication.ts'
import { goodClient, goodKey, startApp } from './api-app.ts'

const weather = '/api/v1/weather/district/3026'
const list = '/api/v1/weather?places=district/3026,coords/23.8/90.4,coords/23.9/90.4'

/** Asks with a test key for an error. */
const start = async (t: Test, more: Partial<Client> = {}) => {
  const client = { ...goodClient, isTest: true, ...more }
  const app = await startApp(t, { authenticate: () => ({ client }) })
  const ask = (code: string, url = weather) => app.inject(url, { 'x-api-key': goodKey, 'x-test-error': code })
  return { ...app, ask }
}
const ofTest = { 'x-test-data': 'fixed', vary: 'x-test-error' }
const unknown = { 'x-ratelimit-limit': '0', 'x-ratelimit-remaining': '0', ratelimit: undefined }
const counted = {
  'x-ratelimit-limit': '10',
  'x-ratelimit-remaining': /^[1-9]$/,
  ratelimit: /^"daily";r=[1-9];t=42900/,
}

t.test('the error has the status, the headers and the figures of the real one', async t => {
  const { ask, failures, answered } = await start(t)
  for (const [code, status, headers] of [
    ['place_not_found', 404, counted],
    ['method_not_allowed', 405, { ...counted, allow: 'GET, HEAD' }],
    ['provider_failing', 500, { ...counted, 'retry-after': '10' }],
    ['store_unavailable', 500, { ...unknown, 'retry-after': '10' }],
    ['host_invalid', 400, unknown],
    ['key_revoked', 401, { ...unknown, 'www-authenticate': 'ApiKey realm="abohawa"' }],
    ['key_endpoint_not_allowed', 403, counted],
    ['origin_not_allowed', 403, unknown],
    ['reference_busy', 400, counted],
  ] as const) {
    const answer = await ask(code)
    t.match(answer, { status, headers: { ...headers, ...ofTest } }, code)
    t.equal(answer.body.code, code === 'reference_busy' ? 'test_error_unknown' : code)
    t.match(answer.body, { error: / /, doc_url: `/docs#error-${answer.body.code}` })
    t.equal(answer.headers['retry-after'] !== undefined, status === 500)
  }
  t.strictSame(failures, [], 'none is a failure of the gateway')
  t.strictSame(
    answered.filter(({ reason }) => reason !== undefined),
    [],
  )
  t.hasStrict(await ask('place_not_found', '/nowhere'), { status: 404, body: { code: 'place_not_found' } })
})

t.test('a day that is used up, and one with too little left, have the figures of their bodies', async t => {
  const { ask } = await start(t)
  t.hasStrict(await ask('quota_exhausted'), {
    status: 429,
    headers: {
      ...ofTest,
      'x-ratelimit-remaining': '0',
      'retry-after': '42900',
      ratelimit: '"daily";r=0;t=42900',
    },
    body: { limit: 10, cost: undefined, reset_at: '2026-11-21T18:00:00.000Z' },
  })
  for (const [url, cost] of [
    [list, 3],
    ['/api/v1/weather?places=district/3026', 2],
    [weather, 2],
  ] as const)
    t.hasStrict(await ask('quota_insufficient', url), {
      status: 429,
      headers: { 'x-ratelimit-cost': `${cost}`, 'x-ratelimit-remaining': '1' },
      body: { code: 'quota_insufficient', limit: 10, cost, remaining: 1 },
    })
  t.hasStrict((await ask('quota_exhausted', list)).body, { code: 'quota_exhausted', cost: 3, remaining: 0 })
  const next = await start(t)
  t.hasStrict((await next.ask('key_endpoint_not_allowed', list)).headers, { 'x-ratelimit-cost': '0' })
  t.equal((await next.ask('key_revoked', list)).headers['x-ratelimit-cost'], undefined)
})

t.test('too many requests are those of the limits of the key, or of one a second', async t => {
  for (const [rates, policy, limit, wait] of [
    [undefined, 'second', 1, 1],
    [{ perSecond: 4, burst: 9, perMinute: 30 }, 'second', 4, 1],
    [{ perSecond: null, burst: null, perMinute: 30 }, 'minute', 30, 2],
  ] as const) {
    const { ask } = await start(t, { rates })
    const { status, body, headers } = await ask('rate_limited')
    t.hasStrict({ status, body }, { status: 429, body: { code: 'rate_limited', policy, limit } })
    t.equal(headers['retry-after'], `${wait}`)
    t.match(headers.ratelimit, new RegExp(`, "${policy}";r=0;t=${wait}(,|$)`))
    t.match(headers['ratelimit-policy'], `, "${policy}";q=${limit};w=${policy === 'second' ? 1 : 60}`)
    const ofWait = { second: 1_000 / limit, minute: 60_000 / limit }[policy]
    t.equal(Date.parse(body.reset_at), Date.parse('2026-11-21T06:05:00Z') + ofWait)
  }
})

t.test('an empty header asks for nothing, and neither does that of another key', async t => {
  const { ask } = await start(t)
  t.match(await ask(''), { status: 200, headers: ofTest })
  const live = await startApp(t)
  const headers = { 'x-api-key': goodKey, 'x-test-error': 'key_revoked' }
  t.match(await live.inject(weather, headers), { status: 200, headers: { 'x-test-data': undefined } })
})
