// Without it a fleet could exceed quotas, ask Redis too often, or trust a clock that was set wrongly.

import { Redis } from 'ioredis'
import t from 'tap'
import { createKey } from '../../src/keys/key-form.ts'
import { measureExactness, measureOn, mixedTiers, oneRedis, redisCluster } from '../scenarios/exact-quota.ts'
import { commandsSent, meterEnv, sendOn, startGateways } from '../scenarios/quota-load.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const skip = withoutOwnRedis
const statuses = (answers: readonly { status: number }[], status: number) =>
  answers.filter(answer => answer.status === status).length

// The keys of most tiers run out.
const tiers = mixedTiers.slice(0, 20)

for (const [where, place, size] of [
  ['one Redis', oneRedis, { processes: 3, connections: 96, requests: 2_400 }],
  ['a cluster', redisCluster, { processes: 2, connections: 64, requests: 2_400 }],
] as const)
  t.test(`processes on ${where} admit exactly the quota of each key, each unit once`, { skip }, async t => {
    const found = await measureExactness(t, await place(t), size, tiers)
    t.strictSame(found.faults, [])
    t.equal(statuses(found.answers, 429), 12 * 20)
  })

t.test('64 connections to one process cost Redis little', { skip }, async t => {
  const place = await oneRedis(t)
  const env = meterEnv({ ...patientRedisEnv, ...place })
  const { callers } = await startGateways(t, env, { processes: 1, connections: 64 })
  const redis = new Redis(place.ABOHAWA_REDIS__URL ?? '')
  t.teardown(() => redis.quit())

  await t.test('on one key a command for ten requests at most', async t => {
    const found = await measureOn({ env, callers, redis }, 3_000, ['enterprise'])
    t.strictSame(found.faults, [])
    t.comment(`${found.commandsEach.toFixed(4)} commands for each request`)
    t.ok(found.commandsEach <= 0.1, `${found.commandsEach}`)
  })

  await t.test('a flood of wrong keys is refused, mistyped ones without a command', async t => {
    const commandsFor = async (nextKey: () => string): Promise<number> => {
      const before = await commandsSent(redis)
      let left = 1_000
      t.equal(statuses(await sendOn(callers, () => (left-- > 0 ? nextKey() : undefined)), 401), 1_000)
      return (await commandsSent(redis)) - before
    }
    const mistyped = () => createKey().replace(/.$/, last => (last === '0' ? '1' : '0'))
    // The gateway's own polls continue, more of them on a machine that takes longer.
    const commands = [await commandsFor(mistyped), await commandsFor(createKey)] as const
    t.ok(commands[0] < 500, `${commands[0]} commands for 1,000 mistyped keys`)
    t.ok(commands[1] >= 1_000, `${commands[1]} commands for 1,000 unknown keys`)
  })
})

// Each counts the others as alive by the clock of Redis.
t.test('gateways with other clocks keep to a limit without Redis', { skip }, async t => {
  const redis = await startRedis(t)
  const provider = await startProvider(t)
  const now = Date.now()
  const clocks = [now, now + 30_000, now - 30_000].map(at => manualClock(at))
  const gateways = await Promise.all(
    clocks.map(clock =>
      startGateway(t, {
        providerUrl: provider.url,
        clock,
        env: { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url },
      }),
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
  await redis.kill()
  for (const gateway of gateways)
    for (let sent = 0; sent < limit + 20; sent += 20) {
      const statuses = await Promise.all(Array.from({ length: 20 }, () => send(gateway)))
      admitted += statuses.filter(status => status === 200).length
    }
  t.ok(admitted <= limit, `${admitted} of ${limit}`)
  t.ok(admitted > limit * 0.8, `${admitted}: a third of what was left for each`)
})

t.test("setting a gateway's clock gives a used-up key no second limit", { skip }, async t => {
  const redis = await startRedis(t)
  const provider = await startProvider(t)
  const clock = { ...manualClock(Date.now()), elapsed: () => performance.now() }
  const env = { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url, ABOHAWA_QUOTA__TIERS__FREE: '2' }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock, env })
  const key = gateway.keys.free ?? ''
  const send = () => gateway.get('/locations?type=division&limit=1', { key })
  for (const status of [200, 200, 429]) t.equal((await send()).status, status)
  const { 'x-ratelimit-reset': reset } = (await send()).headers
  for (const days of [1, 1, -5]) {
    clock.advance(days * 86_400_000)
    const answer = await send()
    t.equal(answer.status, 429, `${days} days`)
    t.equal(answer.headers['x-ratelimit-reset'], reset)
  }
  t.equal((await redis.admin.keys('*quota:{*')).length, 1, 'the counts of one day')
})
