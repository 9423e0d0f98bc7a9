// The pub/sub connection for messages about counts is lost while Redis is healthy: no request is refused, not even with a
// key that was not used that day, and the counts stay exact.

import t from 'tap'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { startRedisFor, withoutOwnRedis } from '../support/redis-server.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

t.test(
  'a key unused that day is served after CLIENT KILL TYPE pubsub',
  { skip: withoutOwnRedis },
  async t => {
    const { url, raw } = await startRedisFor(t)
    const provider = await startProvider(t)
    // A manual clock, so that reconciling lasts for as long as the test needs.
    const clock = manualClock(Date.now())
    // A long timeout: a busy machine must not look like an outage of Redis.
    const env = { ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__COMMAND_TIMEOUT: '10s' }
    const gateways = [
      await startGateway(t, { providerUrl: provider.url, clock, env }),
      await startGateway(t, { providerUrl: provider.url, clock, env }),
    ]
    const [one, other] = gateways
    if (!one || !other) return
    // Each gateway learns the number of instances from its second heartbeat, six seconds after its first.
    const heartbeats = async () =>
      (await raw.zrange(`${one.config.redis.prefix}instances`, '0', '-1', 'WITHSCORES'))
        .filter((_, i) => i % 2 === 1)
        .map(Number)
    await until('both have sent a heartbeat', async () => (await heartbeats()).length === 2)
    const first = Math.max(...(await heartbeats()))
    clock.advance(7_000)
    await until('both have sent another one', async () => (await heartbeats()).every(at => at > first))
    const key = one.keys.enterprise ?? ''
    for (const gateway of gateways)
      t.equal((await gateway.get('/locations?type=division', { key })).status, 200)

    const killed = await raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    t.ok(Number(killed) >= 2, `${killed} connections were ended`)
    for (const gateway of gateways)
      await until('the loss is noticed', () => gateway.metric('abohawa_quota_counting{state="reconciling"}'))
    const statuses: number[] = []
    for (let i = 0; i < 20; i++)
      for (const gateway of gateways)
        for (const tier of ['starter', 'business'])
          statuses.push((await gateway.get('/locations?type=division', { key: one.keys[tier] ?? '' })).status)
    t.strictSame(new Set(statuses), new Set([200]))
    const { days } = await one.administration.usage(one.keyIds.starter ?? '', 1)
    t.match(days, [{ used: 40 }])
  },
)
