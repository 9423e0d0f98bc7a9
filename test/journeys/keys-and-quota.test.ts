// Keys and quotas for a consumer: every kind of 401, the count, 429, which responses count and which do not.

import t from 'tap'
import { createKey } from '../../src/keys/key-form.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { type Answer, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { workedMs } from '../support/work-time.ts'

const clock = manualClock('2026-11-21T06:00:00.250Z')
// 2026-11-22T00:00 in Dhaka.
const reset = Date.parse('2026-11-21T18:00Z') / 1000
const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: { ABOHAWA_QUOTA__TIERS__TINY: '3', ABOHAWA_QUOTA__TIERS__LOW: '10' },
  })
})

const quotaOf = ({ headers }: Answer) => [
  Number(headers['x-ratelimit-limit']),
  Number(headers['x-ratelimit-remaining']),
  Number(headers['x-ratelimit-reset']),
]

t.test('a request without a valid key is 401 with a reason, zero rate-limit headers and no cost', async t => {
  const good = gateway.keys.free ?? ''
  const lastChanged = good.slice(0, -1) + (good.endsWith('a') ? 'b' : 'a')
  const ways: [string, string | null, string, string][] = [
    ['no key', null, 'the API key is missing: send it in the header x-api-key', 'key_missing'],
    ['an empty key', '', 'the API key is missing: send it in the header x-api-key', 'key_missing'],
    [
      'another prefix',
      'sk_live_abc',
      'the API key is invalid: a key begins with svc_live_',
      'key_wrong_prefix',
    ],
    ['the prefix alone', 'svc_live_', 'the API key is invalid: it is mistyped or cut off', 'key_malformed'],
    ['a typing error', lastChanged, 'the API key is invalid: it is mistyped or cut off', 'key_malformed'],
    [
      'a well-formed key that nobody issued',
      createKey(),
      'the API key is invalid: it is not known',
      'key_unknown',
    ],
  ]
  for (const [way, key, error, code] of ways)
    for (const path of [
      '/locations?type=division',
      '/weather/district/3026',
      '/nothing',
      '/locations?limit=x',
    ]) {
      const answer = await gateway.get(path, { key })
      t.equal(answer.status, 401, `${way} at ${path}`)
      t.strictSame(answer.body, { error, code })
      t.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      t.strictSame(quotaOf(answer), [0, 0, reset])
      t.match(answer.headers['x-request-id'], /./)
    }
  t.equal((await gateway.administration.usage(gateway.keyIds.free ?? '', 1)).days[0]?.used, 0)
})

t.test(
  'a key that came elsewhere than in its header is told where to send it, and never repeated',
  async t => {
    const key = gateway.keys.free ?? ''
    const basic = `Basic ${Buffer.from(`${key}:`).toString('base64')}`
    const ways: [string, string, Record<string, string>][] = [
      ['the header authorization', '', { authorization: `Bearer ${key}` }],
      ['the header authorization', '', { authorization: basic }],
      ['the URL', `&x-api-key=${key}`, {}],
    ]
    for (const [where, query, headers] of ways) {
      const { status, body, text } = await gateway.get(`/locations?type=division${query}`, {
        key: null,
        headers,
      })
      t.equal(status, 401)
      t.strictSame(body, {
        error: `the API key is missing: ${where} is not read; send it in the header x-api-key`,
        code: 'key_missing',
      })
      t.notMatch(text, 'svc_live_')
    }
  },
)

t.test(
  'a revoked key and a key of a revoked subscriber are 401 within a second, and work again when reinstated',
  async t => {
    const { administration, get } = gateway
    const { id, key } = await administration.createKey('Jamuna', 'enterprise')
    const send = () => get('/locations?type=division', { key })
    let answered = 0
    /** Sends requests until the error is this sentence, or there is none. */
    const becomes = async (error: string | undefined) => {
      const changedAt = workedMs()
      await until(`the sentence is ${error ?? 'none'}`, async () => {
        const { status, body } = await send()
        if (status === 200) answered += 1
        return body.error === error
      })
      t.ok(workedMs() - changedAt < 1_000, 'within a second')
    }
    t.equal((await send()).status, 200, 'a new key works at once')
    answered += 1
    await administration.revokeKey(id)
    await becomes('the API key is invalid: it was revoked')
    await administration.reinstateKey(id)
    await becomes(undefined)
    await administration.revokeSubscriber('Jamuna')
    await becomes('the API key is invalid: its subscriber was revoked')
    await administration.reinstateSubscriber('Jamuna')
    await becomes(undefined)
    t.equal((await administration.usage(id, 1)).days[0]?.used, answered, 'the refused ones cost nothing')
  },
)

t.test('every answer other than 401 and 429 consumes one unit and carries the remaining units', async t => {
  const key = gateway.keys.starter ?? ''
  let left = 1000
  const expectations: [string, number, Record<string, string>?, string?][] = [
    ['/locations?type=division', 200],
    ['/locations?type=division', 200, {}, 'HEAD'],
    ['/weather/district/3026', 200],
    ['/weather/district/9999', 404],
    ['/nothing', 404],
    ['/weather/planet/3026', 400],
    ['/locations?type=division&limit=0', 400],
    ['/weather/%', 400],
    ['/locations?type=division', 405, {}, 'POST'],
  ]
  for (const [path, status, headers = {}, method = 'GET'] of expectations) {
    const answer = await gateway.get(path, { key, headers, method })
    left -= 1
    t.equal(answer.status, status, path)
    t.strictSame(quotaOf(answer), [1000, left, reset], path)
  }
  const { headers } = await gateway.get('/locations?type=division', { key })
  const unchanged = await gateway.get('/locations?type=division', {
    key,
    headers: { 'if-none-match': headers.etag ?? '' },
  })
  t.equal(unchanged.status, 304)
  t.strictSame(quotaOf(unchanged), [1000, left - 2, reset])

  await provider.steer({ fault: 'internal-error' })
  const failed = await gateway.get('/weather/coords/21/89', { key })
  await provider.steer({ fault: 'none' })
  t.equal(failed.status, 500)
  t.strictSame(quotaOf(failed), [1000, left - 3, reset], 'a 500 counts as well')
})

t.test(
  'an exhausted quota is 429 with its body and headers for any request, and counts no further',
  async t => {
    const { key, id } = await gateway.administration.createKey('Surma', 'tiny')
    for (const remaining of [2, 1, 0])
      t.strictSame(quotaOf(await gateway.get('/locations?type=division', { key })), [3, remaining, reset])
    for (const path of [
      '/locations?type=division',
      '/weather/district/3026',
      '/nothing',
      '/locations?type=x',
    ]) {
      const answer = await gateway.get(path, { key })
      t.equal(answer.status, 429, path)
      t.strictSame(answer.body, {
        error: 'the daily quota of 3 requests of this key is exhausted',
        code: 'quota_exhausted',
        limit: 3,
        reset_at: '2026-11-21T18:00:00.000Z',
      })
      t.strictSame(quotaOf(answer), [3, 0, reset])
      t.equal(answer.headers['retry-after'], String(12 * 3600))
    }
    t.equal((await gateway.administration.usage(id, 1)).days[0]?.used, 3)

    t.teardown(() => clock.set('2026-11-21T06:00:00.250Z'))
    clock.set('2026-11-21T17:59:59.999Z')
    t.equal((await gateway.get('/locations?type=division', { key })).headers['retry-after'], '1')
    clock.set('2026-11-21T18:00:00.000Z')
    const nextDay = await gateway.get('/locations?type=division', { key })
    t.equal(nextDay.status, 200)
    t.strictSame(quotaOf(nextDay), [3, 2, reset + 86_400])
  },
)

t.test(
  'a key that runs low and one that is exhausted are reported once, in the log and as a metric',
  async t => {
    const { key, id } = await gateway.administration.createKey('Teesta', 'low')
    const passed = async (percent: number) => {
      const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text()
      return Number(
        new RegExp(`^abohawa_keys_near_limit_total\\{percent="${percent}"\\} (\\d+)`, 'm').exec(
          metrics,
        )?.[1] ?? 0,
      )
    }
    const [low, exhausted] = [await passed(80), await passed(100)]
    const lines = () => gateway.logged.filter(({ keyId, percent }) => keyId === id && percent !== undefined)
    for (let i = 0; i < 7; i++) await gateway.get('/locations?type=division', { key })
    t.strictSame(lines(), [])
    await gateway.get('/locations?type=division', { key })
    t.equal(await passed(80), low + 1)
    for (let i = 0; i < 5; i++) await gateway.get('/locations?type=division', { key })
    t.strictSame([await passed(80), await passed(100)], [low + 1, exhausted + 1])
    const line = { keyId: id, day: '2026-11-21', limit: 10 }
    t.match(lines(), [
      { ...line, msg: 'quota of a key runs low', used: 8, percent: 80 },
      { ...line, msg: 'quota of a key is exhausted', used: 10, percent: 100 },
    ])
    t.equal(lines().length, 2)
  },
)

t.test(
  'a key whose tier is not configured any more is 500 with a sentence, and the log names the key',
  async t => {
    const folder = t.testdir()
    const env = { ABOHAWA_STORE__PATH: `${folder}/store.db` }
    const before = await startGateway(t, {
      providerUrl: provider.url,
      clock,
      env: { ...env, ABOHAWA_QUOTA__TIERS__GONE: '5' },
    })
    const { key, id } = await before.administration.createKey('Karnaphuli', 'gone')
    const after = await startGateway(t, { providerUrl: provider.url, clock, env })
    const answer = await after.get('/locations?type=division', { key })
    t.equal(answer.status, 500)
    t.match(answer.body.error, /^the plan of this key is not configured on this gateway/)
    t.match(JSON.stringify(after.logged), `key ${id} is on tier`)
  },
)

t.test('keys are counted each for itself', async t => {
  const [a, b] = [
    await gateway.administration.createKey('Surma', 'tiny'),
    await gateway.administration.createKey('Surma', 'tiny'),
  ]
  await gateway.get('/locations?type=division', { key: a.key })
  t.equal(quotaOf(await gateway.get('/locations?type=division', { key: b.key }))[1], 2)
})

t.test('the log and the metrics never hold a key', async t => {
  const key = gateway.keys.free ?? ''
  await gateway.get('/locations?type=division', { key })
  const log = JSON.stringify(gateway.logged)
  t.notMatch(log, key.slice(0, 20))
  t.match(log, gateway.keyIds.free ?? '?')
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text()
  t.notMatch(metrics, /svc_live_|"key_/)
  t.match(metrics, /abohawa_admissions_total\{decision="exhausted"\} \d/)
})

t.test('a 401 carries the challenge that RFC 9110 demands, and no other answer does', async t => {
  for (const key of [null, 'svc_live_wrong', 'other'])
    t.equal(
      (await gateway.get('/locations?type=division', { key })).headers['www-authenticate'],
      'ApiKey realm="abohawa"',
    )
  t.equal((await gateway.get('/locations?type=division')).headers['www-authenticate'], undefined)
  t.equal((await gateway.get('/nothing')).headers['www-authenticate'], undefined)
})
