// Without it a request that is out while the minute turns could make a fleet exceed the provider's limit.

import t from 'tap'
import { isoOf, minuteMs } from '../../src/common/calendar.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const limit = 60
// Redis expires keys by its own clock, so the test's clock stays near it: ten seconds before a minute ends.
const start = Math.floor(Date.now() / minuteMs) * minuteMs + 50_000

t.test('a request that is out while the minute turns is counted in both by every gateway', async t => {
  const redis = await testRedis(t)
  const clock = manualClock(start)
  const provider = await startProviderHere(t, undefined, isoOf(start))
  const env = {
    ...redis.env,
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: String(limit),
    ABOHAWA_PROVIDER__BUDGET__RESERVE: '0',
    ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '1',
    ABOHAWA_PROVIDER__MAX_CONCURRENT: '40',
    ABOHAWA_TEST_CACHE__WAIT_FOR: '1s',
  }
  const open = () => startGateway(t, { providerUrl: provider.url, clock, env })
  const [one, two] = [await open(), await open()]
  const loadMany = ({ get }: TestGateway, cells: number, latitude: number) =>
    Promise.all(Array.from({ length: cells }, (_, i) => get(`/weather/coords/${latitude}/${88.1 + i / 10}`)))
  await provider.steer({ hold: true })
  await loadMany(one, 2, 22)
  t.equal((await provider.state()).weight, 0, 'the provider counts a request when it ends')
  clock.advance(13_000)
  await provider.steer({ now: isoOf(clock.now()) })
  await loadMany(two, 30, 23)
  await provider.steer({ hold: false })
  // Some may be sent only now.
  const { weight } = await until('what there is to spend is spent, and all requests ended', async () => {
    const state = await provider.state()
    return state.weight > limit * 0.9 && state.inFlight === 0 && state
  })
  t.ok(weight <= limit, `${weight} of ${limit} in one minute`)
})
