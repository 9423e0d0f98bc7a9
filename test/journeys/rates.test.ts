// Without it limits by second and minute could refuse too early, cost units, or count apart on two gateways.

import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { patientRedisEnv, startRedis } from '../support/redis-server.ts'
import { type Answer, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const list = '/locations?type=division'
const reset = '1795284000'

const gatewayWith = async (t: Test, rates: Record<string, string>, env: Record<string, string> = {}) => {
  const clock = manualClock()
  const limits = Object.entries(rates).map(([tier, text]) => [
    `ABOHAWA_QUOTA__RATES__${tier.toUpperCase()}`,
    text,
  ])
  const gateway = await startGateway(t, {
    ...{ providerUrl: provider.url, clock },
    env: { ...Object.fromEntries(limits), ...env },
  })
  return { ...gateway, clock }
}
const usedBy = async ({ administration, keyIds }: TestGateway, tier: string) =>
  (await administration.usage(keyIds[tier] ?? '', 1)).days[0]?.used
const ratelimit = ({ headers }: Answer) => [headers['ratelimit-policy'], headers.ratelimit]

t.test(
  'a key that sends too fast is 429 with its limit, takes no unit, and goes on when it slows down',
  async t => {
    const gateway = await gatewayWith(t, { free: '{ perSecond: 2, perMinute: 3 }' })
    const key = gateway.keys.free ?? ''
    const first = await gateway.get(list, { key })
    t.equal(first.status, 200)
    t.strictSame(ratelimit(first), [
      '"daily";q=100;w=86400, "second";q=2;w=1, "minute";q=3;w=60',
      '"daily";r=99;t=43200, "second";r=1;t=1, "minute";r=2;t=20',
    ])
    await gateway.get(list, { key })
    const refused = await gateway.get('/nothing', { key })
    t.equal(refused.status, 429)
    t.hasStrict(refused.body, {
      error: 'this key may send at most 2 requests a second',
      code: 'rate_limited',
      ...{ policy: 'second', limit: 2, reset_at: '2026-11-21T06:00:00.500Z' },
    })
    t.hasStrict(refused.headers, {
      'retry-after': '1',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '98',
      'x-ratelimit-reset': reset,
      'cache-control': 'no-store',
      ratelimit: '"daily";r=98;t=43200, "second";r=0;t=1, "minute";r=1;t=40',
    })
    gateway.clock.advance(500)
    t.equal((await gateway.get(list, { key })).status, 200)
    gateway.clock.advance(1_000)
    const byMinute = await gateway.get(list, { key })
    t.has(byMinute, { status: 429, headers: { 'retry-after': '19' }, body: { policy: 'minute', limit: 3 } })
    t.match(ratelimit(byMinute)[1], /, "minute";r=0;t=19$/, 'as retry-after')
    t.equal(await usedBy(gateway, 'free'), 3)
    t.equal(await gateway.metric('abohawa_rate_limited_total{policy="second"}'), 1)
    t.equal(await gateway.metric('abohawa_rate_limited_total{policy="minute"}'), 1)
    t.equal(await gateway.metric('abohawa_admissions_total{decision="rate_limited"}'), 2)
    t.strictSame(
      gateway.logged.filter(({ status }) => status === 429).map(({ reason }) => reason),
      ['rate_limited', 'rate_limited'],
    )
  },
)

t.test('a key without such limits has the headers of its day alone', async t => {
  const gateway = await gatewayWith(t, { free: '{ perSecond: 2 }' })
  for (let i = 0; i < 5; i++) {
    const answer = await gateway.get(list, { key: gateway.keys.starter ?? '' })
    t.equal(answer.status, 200)
    t.strictSame(ratelimit(answer), ['"daily";q=1000;w=86400', `"daily";r=${999 - i};t=43200`])
  }
})

t.test('a refused request comes before the day, the method and the path, and behind the key', async t => {
  const gateway = await gatewayWith(t, { tiny: '{ perSecond: 1 }' }, { ABOHAWA_QUOTA__TIERS__TINY: '1' })
  const key = gateway.keys.tiny ?? ''
  await gateway.get(list, { key })
  t.hasStrict(await gateway.get('/nothing', { key, method: 'POST' }), {
    status: 429,
    body: { code: 'rate_limited' },
  })
  gateway.clock.advance(1_000)
  t.hasStrict(await gateway.get('/nothing', { key }), { status: 429, body: { code: 'quota_exhausted' } })
  t.hasStrict(await gateway.get(list, { key }), { status: 429, body: { code: 'rate_limited' } })
})

t.test('a burst, and a change of the limits while the gateway runs', async t => {
  const gateway = await gatewayWith(t, { free: '{ perSecond: 1, burst: 4 }' })
  const get = async () => (await gateway.get(list, { key: gateway.keys.free ?? '' })).status
  const statuses = async (times: number) => {
    const all = []
    for (let i = 0; i < times; i++) all.push(await get())
    return all
  }
  t.strictSame(await statuses(5), [200, 200, 200, 200, 429])
  t.equal(await gateway.set({ 'quota.rates.free': '{ perSecond: 2 }' }), 'applied')
  gateway.clock.advance(1_000)
  t.strictSame(await statuses(3), [200, 200, 429])
  t.equal(await gateway.set({ 'quota.rates.free': '{ perMinute: null }' }), 'applied')
  t.strictSame(await statuses(5), [200, 200, 200, 200, 200])
  t.equal(await gateway.set({ 'quota.rates.free': '{ burst: 5 }' }), 'refused')
  t.equal(
    gateway.logged.at(-1)?.reason,
    'ABOHAWA_QUOTA__RATES__FREE: quota.rates has an invalid setting',
    'config/rules has the sentence of the terminal',
  )
})

t.test("a key's own limits replace those of its tier", async t => {
  const gateway = await gatewayWith(
    t,
    { free: '{ perSecond: 1 }' },
    { ABOHAWA_STORE__PATH: `${t.testdir()}/s.db` },
  )
  const store = await openStore(gateway.config, gateway.clock, { redisAway: () => {}, redisBack: () => {} })
  t.teardown(() => store.close())
  await store.changeKey(gateway.keyIds.free ?? '', { rates: { perSecond: 3, burst: null, perMinute: null } })
  await store.changeKey(gateway.keyIds.starter ?? '', {
    rates: { perSecond: null, burst: null, perMinute: 1 },
  })
  const policy = async (tier: string) =>
    (await gateway.get(list, { key: gateway.keys[tier] ?? '' })).headers['ratelimit-policy']
  t.equal(await policy('free'), '"daily";q=100;w=86400, "second";q=3;w=1')
  t.equal(await policy('starter'), '"daily";q=1000;w=86400, "minute";q=1;w=60')
})

/** Gateways on one Redis, by the machine's clock, with one key. */
const twoOnRedis = async (t: Test, rates: string) => {
  const { url, admin: raw } = await startRedis(t)
  const env = {
    ...{
      ...patientRedisEnv,
      ABOHAWA_REDIS__URL: url,
      ABOHAWA_QUOTA__TIERS__FAST: '1000000',
      ABOHAWA_LOG__ACCESS: 'false',
    },
    ABOHAWA_QUOTA__RATES__FAST: rates,
  }
  const gateways = await Promise.all(
    [1, 2].map(() => startGateway(t, { providerUrl: provider.url, clock: systemClock, env })),
  )
  const key = gateways[0]?.keys.fast ?? ''
  return { gateways, key, raw }
}

t.test('two gateways on one Redis together admit what one may, and one alone gets all', async t => {
  const { raw, gateways, key } = await twoOnRedis(t, '{ perSecond: 40, burst: 20 }')
  const redisNow = async () => {
    const [seconds, micros] = await raw.time()
    return Number(seconds) + Number(micros) / 1e6
  }
  let admitted = 0
  /** Four clients of each gateway send without a pause. Returns the share that was used of what the time allows. */
  const flood = async (which: readonly number[]): Promise<number> => {
    const from = await redisNow()
    let granted = 0
    const client = async (at: number) => {
      for (let i = 0; i < 60; i++) if ((await gateways[at]?.get(list, { key }))?.status === 200) granted += 1
    }
    await Promise.all([...which, ...which, ...which, ...which].map(client))
    const refilled = 40 * ((await redisNow()) - from)
    t.ok(granted <= 20 + refilled, `${granted} were admitted, while ${refilled} tokens came`)
    admitted += granted
    return granted / refilled
  }
  // On a busy machine clients may be too slow to use it all.
  await until('two use nearly all of it', async () => (await flood([0, 1])) >= 0.9)
  await until('one alone uses nearly all of it', async () => (await flood([1])) >= 0.9)
  t.strictSame(await raw.keys('abohawa:tokens:*'), [`abohawa:tokens:{q0}:${gateways[0]?.keyIds.fast}`])
  t.equal(await usedBy(gateways[0] as TestGateway, 'fast'), admitted, 'refused requests take no unit')
  t.match((await gateways[0]?.get(list, { key }))?.headers['ratelimit-policy'], '"second";q=40;w=1')
})

t.test('a 429 by the second says what is left of the day over the fleet', async t => {
  const { gateways, key } = await twoOnRedis(t, '{ perSecond: 4 }')
  let admitted = 0
  const send = async (which: number) => {
    const answer = await gateways[which]?.get(list, { key })
    if (answer?.status === 200) admitted += 1
    return answer
  }
  // A machine that is busy may be so slow that there is a token again: then it tries again.
  await until('a gateway refuses what another has admitted since', async () => {
    await until('this one refuses', async () => (await send(1))?.status === 429)
    await until('the other admits', async () => (await send(0))?.status === 200)
    const answer = await send(1)
    if (answer?.status !== 429) return false
    t.equal(answer.headers['x-ratelimit-remaining'], String(1_000_000 - admitted))
    return true
  })
})
