// Without it a wrong key could be admitted, or a unit be counted twice, not at all, or past the quota.

import t from 'tap'
import { createKey } from '../../src/keys/key-form.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { type Answer, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const start = '2026-11-21T06:00:00.250Z'
const clock = manualClock(start)
// 2026-11-22T00:00 in Dhaka.
const reset = Date.parse('2026-11-21T18:00Z') / 1000
const provider = await startProviderHere(t)
const env = { ABOHAWA_QUOTA__TIERS__TINY: '3', ABOHAWA_QUOTA__TIERS__LOW: '10' }
const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
const list = '/locations?type=division'

const quotaOf = ({ headers }: Answer) =>
  ['limit', 'remaining', 'reset'].map(name => Number(headers[`x-ratelimit-${name}`]))

t.test('without a valid key it is 401 with a reason and its challenge, zeros, and no cost', async t => {
  const good = gateway.keys.free ?? ''
  const lastChanged = good.slice(0, -1) + (good.endsWith('a') ? 'b' : 'a')
  const basic = `Basic ${Buffer.from(`${good}:`).toString('base64')}`
  const missing = 'the API key is missing: send it in the header x-api-key'
  const elsewhere = (where: string) =>
    `the API key is missing: send it in the header x-api-key, not in ${where}`
  const mistyped = 'the API key is invalid: it is mistyped or cut off'
  const ways: [string | null, string, string, query?: string, headers?: Record<string, string>][] = [
    [null, missing, 'key_missing'],
    ['', missing, 'key_missing'],
    [null, elsewhere('the header authorization'), 'key_missing', '', { authorization: `Bearer ${good}` }],
    [null, elsewhere('the header authorization'), 'key_missing', '', { authorization: basic }],
    [null, elsewhere('the URL'), 'key_missing', `x-api-key=${good}`],
    [
      'sk_live_abc',
      'the API key is invalid: it must begin with svc_live_, or with svc_test_ for tests',
      'key_wrong_prefix',
    ],
    ['svc_live_', mistyped, 'key_malformed'],
    [lastChanged, mistyped, 'key_malformed'],
    [createKey(), 'the API key is invalid: it is not known', 'key_unknown'],
  ]
  for (const [key, error, code, query = '', headers = {}] of ways)
    for (const path of [`${list}&`, '/weather/district/3026?', '/nothing?', '/locations?limit=x&']) {
      const answer = await gateway.get(path + query, { key, headers })
      const body = { error, code, parameter: 'x-api-key', doc_url: `/docs#error-${code}` }
      t.strictSame([answer.status, answer.body], [401, body], `${path} with ${key}`)
      t.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      t.equal(answer.headers['www-authenticate'], 'ApiKey realm="abohawa"')
      t.strictSame(quotaOf(answer), [0, 0, reset])
      t.match(answer.headers['x-request-id'], /./)
    }
  t.equal((await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used, 0)
})

t.test('every answer other than 401 and 429 consumes one unit and carries the remaining units', async t => {
  const key = gateway.keys.starter ?? ''
  const { etag = '' } = (await gateway.get(list)).headers
  let left = 1000
  const expectations: [string, number, Record<string, string>?, string?][] = [
    [list, 200],
    [list, 200, {}, 'HEAD'],
    [list, 304, { 'if-none-match': etag }],
    ['/weather/district/3026', 200],
    ['/weather/district/9999', 404],
    ['/nothing', 404],
    ['/weather/planet/3026', 400],
    [`${list}&limit=0`, 400],
    ['/weather/%', 400],
    [list, 405, {}, 'POST'],
    ['/weather/coords/21/89', 500],
  ]
  for (const [path, status, headers = {}, method = 'GET'] of expectations) {
    await provider.steer({ fault: status === 500 ? 'internal-error' : 'none' })
    const answer = await gateway.get(path, { key, headers, method })
    left -= 1
    t.equal(answer.status, status, path)
    t.strictSame(quotaOf(answer), [1000, left, reset], path)
    t.equal(answer.headers['www-authenticate'], undefined)
  }
  await provider.steer({ fault: 'none' })
})

t.test('an exhausted quota is 429 for any request, counts no further, and ends at midnight', async t => {
  const { key, id } = await gateway.administration.createKey('Surma', 'tiny')
  for (const remaining of [2, 1, 0])
    t.strictSame(quotaOf(await gateway.get(list, { key })), [3, remaining, reset])
  for (const path of [list, '/weather/district/3026', '/nothing', '/locations?type=x']) {
    const answer = await gateway.get(path, { key })
    t.equal(answer.status, 429, path)
    t.strictSame(answer.body, {
      error: 'the daily quota of 3 requests of this key is exhausted',
      code: 'quota_exhausted',
      doc_url: '/docs#error-quota_exhausted',
      limit: 3,
      reset_at: '2026-11-21T18:00:00.000Z',
    })
    t.strictSame(quotaOf(answer), [3, 0, reset])
    t.equal(answer.headers['retry-after'], String(12 * 3600))
  }
  t.equal((await gateway.administration.usage(id, 1)).days[0]?.used, 3)

  t.teardown(() => clock.set(start))
  clock.set('2026-11-21T17:59:59.999Z')
  t.equal((await gateway.get(list, { key })).headers['retry-after'], '1')
  clock.set('2026-11-21T18:00:00.000Z')
  const nextDay = await gateway.get(list, { key })
  t.equal(nextDay.status, 200)
  t.strictSame(quotaOf(nextDay), [3, 2, reset + 86_400])
})

t.test('a key that runs low and one that is exhausted are reported once, in log and metrics', async t => {
  const { key, id } = await gateway.administration.createKey('Teesta', 'low')
  const passed = async () => {
    const of = (percent: number) => gateway.metric(`abohawa_keys_near_limit_total{percent="${percent}"}`)
    return [(await of(80)) ?? 0, (await of(100)) ?? 0]
  }
  const [low = 0, exhausted = 0] = await passed()
  const lines = () => gateway.logged.filter(({ keyId, percent }) => keyId === id && percent !== undefined)
  for (let i = 0; i < 7; i++) await gateway.get(list, { key })
  t.strictSame(lines(), [])
  await gateway.get(list, { key })
  t.strictSame(await passed(), [low + 1, exhausted])
  for (let i = 0; i < 5; i++) await gateway.get(list, { key })
  t.strictSame(await passed(), [low + 1, exhausted + 1])
  const line = { keyId: id, day: '2026-11-21', limit: 10 }
  t.hasStrict(lines(), [
    { ...line, msg: 'key quota running low', used: 8, percent: 80 },
    { ...line, msg: 'key quota exhausted', used: 10, percent: 100 },
  ])
  t.equal(lines().length, 2)
})

t.test('a key whose tier is not configured any more is 500, and the log names the key', async t => {
  const env = { ABOHAWA_STORE__PATH: `${t.testdir()}/store.db` }
  const withTier = { ...env, ABOHAWA_QUOTA__TIERS__GONE: '5' }
  const before = await startGateway(t, { providerUrl: provider.url, clock, env: withTier })
  const { key, id } = await before.administration.createKey('Karnaphuli', 'gone')
  const after = await startGateway(t, { providerUrl: provider.url, clock, env })
  const answer = await after.get(list, { key })
  t.equal(answer.status, 500)
  t.match(answer.body.error, /^the plan of this key is not configured on this gateway/)
  t.match(JSON.stringify(after.logged), `key ${id} is on tier`)
})

t.test('an expired key is 401 from its instant on, and costs no unit', async t => {
  const clock = manualClock()
  const gateway = await startGateway(t, { providerUrl: provider.url, clock })
  const { administration } = gateway
  const { id, key } = await administration.createKey('Padma', 'free', { expires: '2h' })
  const get = () => gateway.get(list, { key })
  t.hasStrict(await get(), { status: 200, headers: { 'x-ratelimit-remaining': '99' } })
  clock.advance(2 * 3_600_000 - 1)
  t.equal((await get()).status, 200, 'the last millisecond')
  clock.advance(1)
  const refused = await get()
  t.hasStrict(refused, {
    status: 401,
    headers: { 'x-ratelimit-limit': '0', 'www-authenticate': 'ApiKey realm="abohawa"' },
    body: { error: 'the API key is invalid: it has expired' },
  })
  t.equal(await gateway.metric('abohawa_admissions_total{decision="key-expired"}'), 1)
  t.hasStrict(
    gateway.logged.filter(({ status }) => status === 401),
    [{ reason: 'key-expired' }],
  )
  t.match(await administration.showKey(id), {
    status: 'expired',
    usedToday: 2,
    lastUsedOn: /^\d{4}-\d\d-\d\d$/,
  })
  await administration.setKey(id, { expires: '90d' })
  await until('the key is valid again', async () => (await get()).status === 200)
  t.hasStrict(await administration.setKey(id, { expires: 'never' }), { status: 'active', expiresAt: null })
  t.equal((await get()).status, 200)
})
