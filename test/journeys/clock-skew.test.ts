// Gateways whose machines' clocks differ share one Redis: each counts the others as alive by the clock of Redis, so that without
// Redis they together keep to the limit of a key.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

t.test('gateways with other clocks keep to a limit without Redis', { skip: withoutOwnRedis }, async t => {
  const redis = await startRedis()
  t.teardown(redis.stop)
  const provider = await startProvider(t)
  const now = Date.now()
  const clocks = [now, now + 30_000, now - 30_000].map(at => manualClock(at))
  const gateways = await Promise.all(
    clocks.map(clock =>
      startGateway(t, { providerUrl: provider.url, clock, env: { ABOHAWA_REDIS__URL: redis.url } }),
    ),
  )
  const each = async (name: string) => Promise.all(gateways.map(gateway => gateway.metric(name)))
  await until('all know how many they are', async () => {
    for (const clock of clocks) clock.advance(7_000)
    return (await each('abohawa_quota_allowance_instances')).every(Boolean)
  })
  t.strictSame(await each('abohawa_quota_allowance_instances'), [3, 3, 3])
  t.strictSame(await each('abohawa_config_variants'), [1, 1, 1])
  for (const { opsUrl } of gateways)
    t.equal((await sendRequest(`${opsUrl}/status`)).body.instances.length, 3, 'each sees the others')

  const key = gateways[0]?.keys.free ?? ''
  const limit = gateways[0]?.config.quota.tiers.free ?? 0
  const send = async (gateway: TestGateway) =>
    (await gateway.get('/locations?type=division&limit=1', { key })).status
  let admitted = 0
  for (const gateway of gateways) if ((await send(gateway)) === 200) admitted += 1
  await redis.stop()
  for (const gateway of gateways)
    for (let sent = 0; sent < limit + 20; sent += 20) {
      const statuses = await Promise.all(Array.from({ length: 20 }, () => send(gateway)))
      admitted += statuses.filter(status => status === 200).length
    }
  t.ok(admitted <= limit, `${admitted} of ${limit}`)
  t.ok(admitted > limit * 0.8, `${admitted}: a third of what was left for each`)
})
