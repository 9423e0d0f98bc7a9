// Without it a fleet could exceed the provider's minute: in slow requests, after a suspension, or without Redis.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { hourMs, isoOf, minuteMs } from '../../src/common/calendar.ts'
import { pathFor } from '../../src/provider/open-meteo/request.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { horizonFor } from '../../src/weather/horizon.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import type { ProviderProcess } from '../support/provider-process.ts'
import { startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const limit = 60
const grid = createGrid(0.1)
// Redis expires keys by its own clock, so the test's clock stays near it: ten seconds before a minute ends.
const start = Math.floor(Date.now() / minuteMs) * minuteMs + 50_000

type World = { clock: ManualClock; provider: ProviderProcess }

const setUp = async (
  t: Test,
  { url, prefix }: { url: string; prefix: string },
  count: number,
  world?: World,
  env: Record<string, string> = {},
) => {
  const clock = world?.clock ?? manualClock(start)
  const provider = world?.provider ?? (await startProviderHere(t, undefined, isoOf(start)))
  const settings = {
    ABOHAWA_REDIS__URL: url,
    ABOHAWA_REDIS__PREFIX: prefix,
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: String(limit),
    ABOHAWA_PROVIDER__BUDGET__RESERVE: '0',
    ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '1',
    ABOHAWA_PROVIDER__MAX_CONCURRENT: '40',
    ABOHAWA_TEST_CACHE__WAIT_FOR: '1s',
    ...env,
  }
  const gateways: TestGateway[] = []
  for (let i = 0; i < count; i++)
    gateways.push(await startGateway(t, { providerUrl: provider.url, clock, env: settings }))
  const advance = async (ms: number) => {
    clock.advance(ms)
    await provider.steer({ now: isoOf(clock.now()) })
  }
  return { clock, provider, gateways, advance }
}
/** Requests so many cold cells. */
const loadMany = (gateway: TestGateway | undefined, cells: number, latitude: number) =>
  Promise.all(
    Array.from({ length: cells }, (_, i) => gateway?.get(`/weather/coords/${latitude}/${88.1 + i / 10}`)),
  )
/** Sends points to the provider through each ops listener, one per request, with the weight of the gateway's own requests. */
const passThrough = (gateways: readonly TestGateway[], times: number) =>
  Promise.all(
    gateways.map(async ({ opsUrl }, i) => {
      for (let n = 0; n < times; n++) {
        const cell = grid.cellOf(22 + i, 88.1 + n / 10)
        await sendRequest(`${opsUrl}/provider${pathFor([cell], horizonFor(13 * hourMs, 48), 'Asia/Dhaka')}`)
      }
    }),
  )
/** A TCP proxy that delays the next bytes that match until an action has completed. */
const startHeldConnections = async (t: Test, to: string) => {
  const { hostname, port } = new URL(to)
  let hold: { pattern: RegExp; act: () => Promise<void> } | undefined
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          client.destroy()
          upstream.destroy()
        })
    }
    upstream.pipe(client)
    client.on('data', bytes => {
      const { pattern, act } = hold ?? {}
      if (!pattern?.test(bytes.toString('latin1'))) return upstream.write(bytes)
      hold = undefined
      client.pause()
      void act?.().finally(() => {
        upstream.write(bytes)
        client.resume()
      })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: (pattern: RegExp, act: () => Promise<void>) =>
      new Promise<void>((resolve, reject) => {
        hold = { pattern, act: () => act().then(resolve, reject) }
      }),
  }
}
const metric =
  (name: string) =>
  ({ metric }: TestGateway): Promise<number | undefined> =>
    metric(name)

t.test('a request that is out while the minute turns is counted in both by every gateway', async t => {
  const { provider, gateways, advance } = await setUp(t, await testRedis(t), 2)
  const [one, two] = gateways
  await provider.steer({ hold: true })
  await loadMany(one, 2, 22)
  t.equal((await provider.state()).weight, 0, 'the provider counts a request when it ends')
  await advance(13_000)
  await loadMany(two, 30, 23)
  await provider.steer({ hold: false })
  await until('all requests ended', async () => (await provider.state()).inFlight === 0)
  const { weight } = await provider.state()
  t.ok(weight <= limit, `${weight} of ${limit} in one minute`)
  t.ok(weight > limit * 0.9, 'and what there is to spend is spent')
})

for (const [what, spend] of [
  ['a load', (gateways: readonly TestGateway[]) => loadMany(gateways[0], 1, 24)],
  ['the pass-through', (gateways: readonly TestGateway[]) => passThrough(gateways, 1)],
] as const)
  t.test(`${what} whose grant comes to a process that stood still is not sent by it`, async t => {
    const redis = await testRedis(t)
    const held = await startHeldConnections(t, redis.url)
    const { clock, provider, gateways, advance } = await setUp(t, redis, 1)
    const behind = await setUp(t, { ...redis, url: held.url }, 1, { clock, provider })
    // As if the process had been stopped for two minutes while its reservation was in flight, and others spent everything.
    const stood = held.next(/minute:\d+/, async () => {
      await advance(2 * minuteMs)
      await passThrough(gateways, 25)
    })
    await spend(behind.gateways)
    await stood
    const { weight } = await provider.state()
    t.ok(weight <= limit, `${weight} of ${limit} in one minute`)
    t.ok(weight > limit * 0.9, `${weight} was spent by the other`)
  })

t.test(
  'a fleet of three loads cold cells without Redis, and reports them',
  { skip: withoutOwnRedis },
  async t => {
    const first = await startRedis()
    const { provider, gateways, advance } = await setUp(t, { url: first.url, prefix: 'x:' }, 3, undefined, {
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
      ABOHAWA_PROVIDER__BUDGET__RESERVE: '0.1',
      ABOHAWA_PROVIDER__BUDGET__KEY_SHARE: '0.25',
      // A busy machine may need longer to find that Redis is away.
      ABOHAWA_TEST_CACHE__WAIT_FOR: '5s',
    })
    const admin = new Redis(first.url)
    for (let i = 0; i < 2; i++) {
      // By the clock of Redis.
      const [seconds, micros] = (await admin.time()).map(Number)
      const before = (seconds ?? 0) * 1_000 + Math.floor((micros ?? 0) / 1_000)
      await advance(6_000)
      await until('everyone gave a heartbeat', async () => {
        return (await admin.zcount('x:instances', before, '+inf')) === 3
      })
    }
    await until('everyone saw everyone', async () =>
      (await Promise.all(gateways.map(metric('abohawa_instances')))).every(seen => seen === 3),
    )
    admin.disconnect()
    // Without Redis the key has what was left of its quota.
    for (const gateway of gateways) t.equal((await gateway.get('/locations?type=division')).status, 200)
    await first.stop()
    const answers = await Promise.all(gateways.map((gateway, i) => loadMany(gateway, 3, 22 + i)))
    t.strictSame(
      answers.flat().map(answer => answer?.body.code ?? answer?.status),
      Array(9).fill(200),
    )
    t.equal((await provider.state()).weight, 27)
    for (const gateway of gateways) t.equal(await gateway.metric('abohawa_provider_budget_shared'), 0)
    t.match(await loadMany(gateways[0], 1, 25), [{ status: 500 }], 'and no more than its part of a minute')
    t.equal((await provider.state()).weight, 27)
    const redis = await startRedis(first.port)
    t.teardown(redis.stop)
    await until('what was spent is reported', async () => {
      await advance(1_000)
      const used = await Promise.all(gateways.map(metric('abohawa_provider_budget_used{window="day"}')))
      return used.every(amount => amount === 27)
    })
  },
)
