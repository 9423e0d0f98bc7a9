// Quotas over a fleet on a small scale: each unit counts once, few Redis commands, cheap refusal of wrong keys. Midnights
// of gateways whose clocks are off are in histories of the proof. `npm run bench` measures the same on a large scale.

import { Redis } from 'ioredis'
import t from 'tap'
import { measureExactness, measureOn, mixedTiers, oneRedis, redisCluster } from '../scenarios/exact-quota.ts'
import { meterEnv, patient, startGateways } from '../scenarios/quota-load.ts'
import { floodOn } from '../scenarios/wrong-keys.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

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
  const env = meterEnv({ ...patient, ...place })
  const { callers, processes } = await startGateways(t, env, { processes: 1, connections: 64 })
  const redis = new Redis(place.ABOHAWA_REDIS__URL ?? '')
  t.teardown(() => redis.quit())

  await t.test('on one key a command for ten requests at most', async t => {
    const found = await measureOn({ env, callers, redis }, 3_000, ['enterprise'])
    t.strictSame(found.faults, [])
    t.comment(`${found.commandsEach.toFixed(4)} commands for each request`)
    t.ok(found.commandsEach <= 0.1, `${found.commandsEach}`)
  })

  await t.test('a flood of wrong keys is refused, mistyped ones without a command', async t => {
    const pid = processes[0]?.child.pid ?? 0
    const found = await floodOn({ callers, pid, raw: redis }, 2_000)
    t.equal(found.refused, 2_000)
    // The gateway's own polls continue, more of them on a machine that takes longer.
    t.ok(found.commandsForMistyped < 500, `${found.commandsForMistyped} commands for 1,000 mistyped keys`)
    t.ok(found.commandsForUnknown >= 1_000, `${found.commandsForUnknown} commands for 1,000 unknown keys`)
  })
})
