// Without it a key could read wrong figures of itself, pay for reading them, or not learn of its end.

import t, { type Test } from 'tap'
import { openStore } from '../../src/stores/open-store.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)
const list = '/locations?type=division'
const dayMs = 86_400_000

/** A gateway at 12:00 in Dhaka, with the number of its reads of former days. */
const start = async (t: Test, env: Record<string, string> = {}) => {
  const clock = manualClock('2026-11-21T06:00:00Z')
  const reads: (readonly string[])[] = []
  const state = { isAway: false }
  const orAway = <Value>(run: () => Promise<Value>): Promise<Value> =>
    state.isAway ? Promise.reject(new StoreError('away')) : run()
  const open: typeof openStore = async (...given) => {
    const store = await openStore(...given)
    return {
      ...store,
      usedOn: (keyId, days) => {
        reads.push(days)
        return orAway(() => store.usedOn(keyId, days))
      },
      commit: batch => orAway(() => store.commit(batch)),
    }
  }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env, open })
  const { starter: key = '' } = gateway.keys
  const { starter: id = '' } = gateway.keyIds
  const ask = (given = key, headers = {}) => gateway.get('/key', { key: given, headers })
  return { gateway, clock, reads, key, id, ask, state }
}

t.test('a key reads what it is and what it used, which costs it nothing', async t => {
  const { gateway, clock, key, id, ask, reads } = await start(t)
  for (let i = 0; i < 3; i++) await gateway.get(list, { key })
  await gateway.administration.setKey(id, {
    expires: '30d',
    rates: { perMinute: 600 },
    restrictions: { endpoints: ['locations'] },
  })
  await until('the key has its terms', async () => (await ask()).body.rates !== null)
  const { status, headers, body } = await ask()
  const { days, ...others } = body
  t.strictSame(others, {
    id,
    ...{
      tier: 'starter',
      limit: 1_000,
      used: 3,
      remaining: 997,
      reason: null,
      reset_at: '2026-11-21T18:00:00.000Z',
    },
    rates: { per_second: null, burst: null, per_minute: 600 },
    restrictions: { origins: null, addresses: null, endpoints: ['locations'] },
    created_at: '2026-11-21T06:00:00.000Z',
    expires_at: '2026-12-21T06:00:00.000Z',
  })
  t.strictSame([status, days.length], [200, 30])
  t.hasStrict(days, [
    { day: '2026-11-21', used: 3 },
    { day: '2026-11-20', used: 0 },
  ])
  t.hasStrict(headers, {
    ...{ 'cache-control': 'private, no-store', 'content-type': 'application/json; charset=utf-8' },
    ...{ 'x-ratelimit-limit': '1000', 'x-ratelimit-remaining': '997', etag: undefined },
  })
  t.notMatch(JSON.stringify(body), /svc_live_|hash|Test/)
  const head = await gateway.get('/key', { key, method: 'HEAD' })
  t.hasStrict(head, { status: 200, text: '', headers: { 'content-length': headers['content-length'] } })

  const usage = await gateway.administration.usage(id, 1)
  t.match(usage, { days: [{ used: 3 }] })
  await until('the responses are counted', async () => {
    const { today } = await gateway.administration.usage(id, 1)
    return today.some(({ count }) => count === 3)
  })
  t.strictSame((await gateway.administration.usage(id, 1)).today, [
    { endpoint: 'locations', statusClass: '2xx', count: 3 },
  ])
  t.ok(
    ((await gateway.metric('http_server_request_duration_seconds_count{endpoint="key",status="200"}')) ?? 0) >
      2,
  )
  t.hasStrict(
    gateway.logged.findLast(({ endpoint }) => endpoint === 'key'),
    { keyId: id, status: 200 },
  )

  const before = reads.length
  for (let i = 0; i < 50; i++) await ask()
  t.equal(reads.length, before, 'former days are read once a minute')
  clock.advance(dayMs)
  await gateway.get(list, { key })
  const next = (await ask()).body
  t.hasStrict(next, {
    used: 1,
    remaining: 999,
    days: [
      { day: '2026-11-22', used: 1 },
      { day: '2026-11-21', used: 3 },
    ],
  })
  t.equal(reads.length, before + 1)
})

t.test(
  'it needs a key, and is for those that are used up, bound to endpoints, or have less than they used',
  async t => {
    const { gateway, key, id, ask } = await start(t)
    t.hasStrict(await gateway.get('/key', { key: null }), { status: 401, body: { code: 'key_missing' } })
    const ofTests = await gateway.administration.createKey('Tests', 'test_key')
    const fixed = { status: 200, headers: { 'x-test-data': 'fixed' }, body: { tier: 'test_key', used: 0 } }
    t.hasStrict(await ask(ofTests.key), fixed)
    for (let i = 0; i < 3; i++) await gateway.get(list, { key })
    t.match(await gateway.get('/key', { key, method: 'POST' }), { status: 405 })
    t.match((await ask()).body, { used: 4 }, 'what is no question counts')
    await gateway.administration.setKey(id, { limit: 2, restrictions: { endpoints: ['forecast'] } })
    await until('the limit is in force', async () => (await ask()).body.limit === 2)
    t.equal((await gateway.get('/forecast/district/3026', { key })).status, 429)
    t.match(await ask(), { status: 200, body: { limit: 2, used: 4, remaining: 0, days: [{ used: 4 }] } })
    await gateway.administration.setKey(id, { restrictions: { addresses: ['192.0.2.1'], endpoints: null } })
    await until('it is asked from elsewhere', async () => (await ask()).status === 403)
    t.equal((await gateway.administration.usage(id, 1)).days[0]?.used, 4)
  },
)

t.test('from seven days before its end on, every response to a key says so', async t => {
  const { gateway, clock, key, id, ask } = await start(t)
  await gateway.administration.setKey(id, { expires: '8d', limit: 6 })
  const expires = '2026-11-29T06:00:00.000Z'
  await until('the expiry is known', async () => (await ask()).body.expires_at === expires)
  t.equal((await gateway.get(list, { key })).headers['x-key-expires'], undefined)
  clock.advance(dayMs)
  const good = await gateway.get(list, { key })
  t.hasStrict(good, { status: 200, headers: { 'x-key-expires': expires } })
  const statuses = []
  for (const [path, headers, method] of [
    [list, { 'if-none-match': good.headers.etag ?? '' }],
    ['/nowhere', {}],
    [list, {}, 'POST'],
    ['/key', {}],
    [list, {}, 'HEAD'],
    [list, {}],
    [list, {}],
  ] as const) {
    const answer = await gateway.get(path, { key, headers, ...(method && { method }) })
    t.equal(answer.headers['x-key-expires'], expires, `${answer.status}`)
    statuses.push(answer.status)
  }
  t.strictSame(statuses, [304, 404, 405, 200, 200, 200, 429])
  t.equal((await gateway.get(list)).headers['x-key-expires'], undefined, 'another key')
  clock.advance(7 * dayMs)
  t.match(await gateway.get(list, { key }), { status: 401, headers: { 'x-key-expires': undefined } })
})

t.test('a key that a newer one replaces says until when it works', async t => {
  const { gateway, clock, key, id, ask } = await start(t)
  await ask()
  const rotated = await gateway.administration.rotateKey(id, 2 * dayMs)
  const until2 = '2026-11-23T06:00:00.000Z'
  await until('the former key says so', async () => (await ask()).headers['x-key-expires'] === until2)
  t.hasStrict((await ask()).body, { id, expires_at: until2 })
  const newer = await ask(rotated.key)
  t.hasStrict(newer, { status: 200, headers: { 'x-key-expires': undefined }, body: { id, expires_at: null } })
  await gateway.administration.setKey(id, { expires: '1d' })
  const sooner = '2026-11-22T06:00:00.000Z'
  for (const each of [key, rotated.key])
    await until('the expiry is known', async () => (await ask(each)).headers['x-key-expires'] === sooner)
  clock.advance(3 * dayMs)
  t.equal((await ask()).status, 401)
})

t.test('gateways of a fleet say the same of a key, exactly', async t => {
  const { env } = await testRedis(t)
  const first = await startGateway(t, { providerUrl: provider.url, env })
  const second = await startGateway(t, { providerUrl: provider.url, env })
  const { business: key = '' } = first.keys
  const ask = async (url: string) => (await sendRequest(`${url}/api/v1/key`, { key })).body
  for (let i = 1; i <= 6; i++) {
    const { apiUrl } = i % 2 ? first : second
    await sendRequest(`${apiUrl}/api/v1${list}`, { key })
    for (const each of [first.apiUrl, second.apiUrl])
      t.match(await ask(each), { used: i, remaining: 10_000 - i, days: [{ used: i }] }, `${i} requests`)
  }
})

t.test(
  'while the store is away the counts of a key are null, with the reason, and never those of an allowance',
  async t => {
    const { gateway, clock, key, ask, state } = await start(t)
    for (let i = 0; i < 5; i++) await gateway.get(list, { key })
    const exact = await ask()
    t.match(exact.body, { used: 5, remaining: 995, reason: null, days: [{ used: 5 }] })
    state.isAway = true
    await gateway.get(list, { key })
    const unknown = {
      used: null,
      remaining: null,
      reason: 'store_unavailable',
      days: [{ used: null }, { used: null }],
    }
    t.hasStrict(
      await ask(),
      { status: 200, body: { ...unknown, limit: 1_000 } },
      'former days were read a moment ago',
    )
    clock.advance(61_000)
    t.hasStrict(await ask(), { status: 200, body: unknown })
    state.isAway = false
    await until('all is counted', async () => {
      clock.advance(1_000)
      return (await ask()).body.reason === null
    })
    t.hasStrict(await ask(), { body: { days: [{ used: (await ask()).body.used }] } })
  },
)

t.test('while the store is away a key whose count of the day is not known can be asked too', async t => {
  const { gateway, clock, ask, state } = await start(t)
  await ask()
  clock.advance(dayMs)
  await gateway.get(list)
  state.isAway = true
  await gateway.get(list)
  const { status, headers, body } = await ask()
  t.hasStrict([status, body], [200, { used: null, remaining: null, reason: 'store_unavailable' }])
  t.equal(headers.ratelimit, undefined, 'what is left is not known')
})
