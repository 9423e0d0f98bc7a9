// Without it a gateway that stopped could keep its share of limits from the one that takes its place.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { startProvider } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t, undefined, null)
const dhaka = '/weather/district/3026'

const stores = {
  redis: async (t: Test) => (await testRedis(t)).env,
  // Two processes at least, as far as the configuration says: so a part is set aside.
  embedded: async (t: Test) => ({
    ABOHAWA_STORE__PATH: join(t.testdir(), 'store.db'),
    ABOHAWA_SERVER__REUSE_PORT: 'true',
  }),
}

for (const [kind, share] of Object.entries(stores))
  t.test(`on ${kind} a gateway that takes the place of one that stopped is no further one`, async t => {
    const env = { ...(await share(t)), ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000' }
    let fails = false
    // Spending alone fails: what was granted meanwhile is the gateway's own part.
    const open: typeof openStore = async (...given) => {
      const store = await openStore(...given)
      const spend: Store['spend'] = spending =>
        fails ? Promise.reject(new StoreError('not reached')) : store.spend(spending)
      return { ...store, spend }
    }
    const start = () => startGateway(t, { providerUrl: provider.url, clock: systemClock, env, open })
    const alive = (gateway: Awaited<ReturnType<typeof start>>) => gateway.metric('abohawa_instances')
    let [one, two] = [await start(), await start()]
    await until('each knows of the other', async () => (await alive(two)) === 2)
    for (let i = 0; i < 3; i++) {
      await one.close()
      ;[one, two] = [two, await start()]
      await until('it has sent a heartbeat', async () => (await alive(two)) ?? 0)
      t.equal(await alive(two), 2)
    }

    // Here how many share is known from the start.
    if (kind !== 'embedded') return
    fails = true
    t.match(await one.get(dhaka), { status: 200 }, 'from its own part')
    fails = false
    await until('the store is back', async () => (await one.metric('abohawa_provider_budget_shared')) !== 0)
    await one.close()
    const next = await start()
    await until('it has sent a heartbeat', async () => (await alive(next)) ?? 0)
    t.equal(await alive(next), 3)
  })
