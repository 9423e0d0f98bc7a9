// The guarantees of a fleet's cache on a small scale: one provider request for a cell that everybody requests, even if a
// process or Redis dies meanwhile, and right weather through an outage. bench/cache.ts measures the same on a large scale.

import t from 'tap'
import { measureProviderOutage } from '../scenarios/provider-outage.ts'
import { killLeaseHolder, killRedis, measureStampede, startFleet } from '../scenarios/stampede.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const size = { processes: 3, callersEach: 40 }
const path = '/api/v1/weather/coords/23.7/90.4'
const answered = (answers: readonly { status: number }[]) =>
  answers.filter(({ status }) => status === 200).length
const skip = withoutOwnRedis
// Long timeouts: a busy machine must not look like an outage of Redis or the provider, or a dead process.
const patient = {
  ABOHAWA_REDIS__COMMAND_TIMEOUT: '10s',
  ABOHAWA_TEST_CACHE__LEASE_FOR: '5s',
  ABOHAWA_PROVIDER__TIMEOUT: '100s',
  ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '100s',
}

// For both, since the first one leaves it as it was.
const fleet = skip ? undefined : await startFleet(t, size, patient)

t.test('a cell that all processes need at once is one provider request', { skip }, async t => {
  if (!fleet) return
  const { calls, answers } = await measureStampede(fleet, path)
  t.equal(calls, 1)
  t.equal(answered(answers), 120)
})

t.test(
  'when the process that fetches is killed another fetches, and all callers of the others are answered',
  {
    skip,
  },
  async t => {
    if (!fleet) return
    const { calls, answers } = await killLeaseHolder(fleet, '/api/v1/weather/coords/22.3/91.8')
    t.equal(calls, 2)
    t.equal(answered(answers), 80)
  },
)

t.test(
  'when Redis ends while everybody waits, each process fetches for itself at most once',
  {
    skip,
  },
  async t => {
    const { calls, answers } = await killRedis(await startFleet(t, size, patient), path)
    t.ok(calls >= 1 && calls <= size.processes, `${calls} requests`)
    t.equal(answered(answers), 120)
  },
)

t.test('what one gateway has refreshed, the others answer fresh and not stale', async t => {
  // About now, since Redis goes by its own clock.
  const [provider, redis, clock] = [await startProvider(t), await testRedis(t), manualClock(Date.now())]
  const follow = () => provider.steer({ now: new Date(clock.now()).toISOString() })
  await follow()
  const env = {
    ABOHAWA_REDIS__URL: redis.url,
    ABOHAWA_REDIS__PREFIX: redis.prefix,
    ABOHAWA_CACHE__FRESH_FOR: '1h',
    ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0',
  }
  const start = () => startGateway(t, { providerUrl: provider.url, clock, env })
  const [first, ...others] = [await start(), await start(), await start(), await start()] as const
  const cacheStatus = async ({ get }: typeof first) =>
    (await get('/weather/district/3026')).headers['cache-status'] ?? ''
  for (const gateway of [first, ...others]) await cacheStatus(gateway)
  clock.advance(3 * 3_600_000)
  await follow()
  t.match(await cacheStatus(first), /fwd=stale/)
  await until('its refresh is over', async () => /; hit; ttl=\d/.test(await cacheStatus(first)))
  const { calls } = await provider.state()
  const answers = await Promise.all(others.map(cacheStatus))
  for (const answer of answers) t.match(answer, /; hit; ttl=\d.*detail=redis/, 'fresh from the shared tier')
  for (const gateway of others) t.match(await cacheStatus(gateway), /; hit; ttl=\d.*detail=memory/)
  t.equal((await provider.state()).calls, calls, 'nothing is loaded anew')
})

t.test(
  'through an outage every cell answers for the right time, and the provider is left in peace',
  async t => {
    const found = await measureProviderOutage(t, {
      cells: 20,
      hours: 6,
      stepMinutes: 120,
      tickMs: 0,
      // The cells are loaded again as soon as this allows, in real time.
      retryAfter: '1s',
    })
    t.equal(found.requests, 60)
    t.equal(found.failed, 0)
    t.equal(found.wrong, 0)
    t.ok(found.calls <= found.allowed, `${found.calls} requests, ${found.allowed} allowed`)
    t.equal(found.notBack, 0, 'all are fresh again')
  },
)
