// A week of a fleet of two gateways on one Redis, whose operators change something live each day: limits of tiers, freshness,
// the budget, the provider's key, the cache, and settings that are wrong. Every request is answered, and every day is counted
// exactly, whichever gateway was asked and whenever a change arrived there. The clock is moved; Redis and the provider are real.

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { hourMs, utcDayMs } from '../../src/common/calendar.ts'
import { isoOf } from '../scenarios/set-up.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { testRedis } from '../support/redis-server.ts'
import { type Answer, sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

// Redis expires by its own clock, so the week begins today: at 06:00 UTC, noon in Dhaka.
const begin = Math.floor(Date.now() / utcDayMs) * utcDayMs + utcDayMs + 6 * hourMs
const places = ['district/3026', 'district/2015', 'coords/23.7/90.4', 'coords/22.3/91.8']

const provider = await startProvider(t, ['--runs', 'none'], null)
const clock = manualClock(begin)
const redis = await testRedis(t)
const token = 'operator-0123456789-abcdefghijklmnop'
const env = {
  ABOHAWA_REDIS__URL: redis.url,
  ABOHAWA_REDIS__PREFIX: redis.prefix,
  ABOHAWA_OPS__TOKEN: token,
  // These waits are of real time.
  ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '100ms',
  ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '100ms',
  ABOHAWA_QUOTA__TIERS__GOLD: '40',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
}
await provider.steer({ now: isoOf(begin) })
const start = () => startGateway(t, { providerUrl: provider.url, clock, env })
const one = await start()
const two = await start()
const fleet = [one, two]
// Each gateway of the test makes keys of its own; these are asked for at both.
const gold = one.keys.gold ?? ''
const goldId = one.keyIds.gold ?? ''

/** The same change at both, one after the other, with requests before, between and after. */
const change = async (given: Record<string, string>, outcome: string): Promise<void> => {
  for (const gateway of fleet) {
    t.equal(await gateway.set(given), outcome, JSON.stringify(given))
    await round()
  }
}

const asOperator = { authorization: `Bearer ${token}` }
const asJson = { method: 'POST', headers: { ...asOperator, 'content-type': 'application/json' } }

const answers: (Answer & { of: string })[] = []
/** Each place at each gateway, with the unlimited key. */
const round = async (): Promise<void> => {
  for (const gateway of fleet)
    for (const place of places)
      answers.push({
        of: `${gateway === one ? 'one' : 'two'} ${place} ${isoOf(clock.now())}`,
        ...(await gateway.get(`/weather/${place}`, { key: one.keys.enterprise ?? '' })),
      })
}
/** Requests with the key of the tier, at both in turn, until its day is over; how many were answered. */
const spend = async (most: number): Promise<number> => {
  let answered = 0
  for (let i = 0; i < most; i++) {
    const gateway = fleet[i % 2] as TestGateway
    const { status, headers } = await gateway.get('/locations?type=division&limit=1', { key: gold })
    if (status === 200) answered += 1
    else t.equal(status, 429)
    t.ok(Number(headers['x-ratelimit-remaining']) >= 0)
  }
  return answered
}
const toNextDay = async (): Promise<void> => {
  clock.advance(utcDayMs)
  await provider.steer({ now: isoOf(clock.now()) })
  // Heartbeats and polls follow the clock of the machine.
  await turn()
  await round()
}

t.test('the first day: a tier is raised, and the raise holds at both at once', async t => {
  await round()
  t.equal(await spend(44), 40)
  await change({ 'quota.tiers.gold': '50' }, 'applied')
  t.equal(await spend(20), 10, 'what was used stays used')
})

t.test('the second: a limit is lowered below what is used, and raised again', async t => {
  await toNextDay()
  t.equal(await spend(30), 30)
  await change({ 'quota.tiers.gold': '20' }, 'applied')
  t.equal(await spend(4), 0)
  await change({ 'quota.tiers.gold': '50' }, 'applied')
  t.equal(await spend(24), 20)
})

t.test('the third: a setting that is wrong changes nothing', async t => {
  await toNextDay()
  await change({ 'cache.freshFor': 'soon' }, 'refused')
  await change({ 'cache.freshFor': '30m' }, 'applied')
  t.equal(await spend(50), 50)
})

t.test('the fourth: the provider fails, and cached weather is served for longer by a live raise', async t => {
  await toNextDay()
  await provider.steer({ fault: 'internal-error' })
  clock.advance(13 * hourMs)
  t.equal((await one.get(`/weather/${places[0]}`)).status, 500, 'older than is allowed')
  for (const gateway of fleet) t.equal(await gateway.set({ 'cache.staleFor': '16h' }), 'applied')
  await round()
  await provider.steer({ fault: 'none' })
  for (const gateway of fleet) t.equal(await gateway.set({ 'cache.staleFor': '11h' }), 'applied')
  clock.advance(2 * hourMs)
  await provider.steer({ now: isoOf(clock.now()) })
  for (const gateway of fleet)
    for (const place of places)
      await until('weather is loaded again', async () => {
        const { status, headers } = await gateway.get(`/weather/${place}`)
        return status === 200 && !/fwd=stale/.test(headers['cache-status'] ?? '')
      })
})

t.test('the fifth: another limit of the budget', async t => {
  await toNextDay()
  await change({ 'provider.budget.perDay': '9000' }, 'applied')
  t.equal(await spend(60), 50)
})

t.test('the sixth: the cache is purged while requests go on', async t => {
  await toNextDay()
  const purge = await fetch(`${two.opsUrl}/cache/purge`, {
    ...asJson,
    body: JSON.stringify({ scope: 'all' }),
  })
  t.match(await purge.json(), { kind: 'soft', removed: 0 })
  await round()
})

t.test('the seventh: a key is revoked, and refused at both', async t => {
  await toNextDay()
  t.equal(await spend(6), 6)
  const revoked = await fetch(`${two.opsUrl}/keys/${goldId}/revoke`, { ...asJson, body: '{}' })
  t.equal(revoked.status, 200, await revoked.text())
  for (const gateway of fleet)
    await until('it is refused', async () => {
      const { status } = await gateway.get('/locations?type=division', { key: gold })
      return status === 401
    })
})

t.test('of all requests for weather each was answered, with the same configuration at the end', async t => {
  t.strictSame(
    answers.filter(({ status }) => status !== 200).map(({ of, status, body }) => [of, status, body]),
    [],
    `of ${answers.length}`,
  )
  t.ok(answers.length > 100)
  const hashes = await Promise.all(
    fleet.map(
      async ({ opsUrl }) => (await sendRequest(`${opsUrl}/status`, { headers: asOperator })).body.config.hash,
    ),
  )
  t.equal(hashes[0], hashes[1])
})
