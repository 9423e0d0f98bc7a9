// Redis freezes, or is killed and comes back on its file, under load: no request waits long, no key gets more than its
// quota, and the counts are right afterwards.

import t from 'tap'
import { measureRedisOutage } from '../scenarios/redis-outage.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

// Most of each is waiting.
t.jobs = 2

for (const kind of ['frozen', 'killed'] as const)
  t.test(`quotas while Redis is ${kind}`, { skip: withoutOwnRedis }, async t => {
    // The scarce key has units for two and a half seconds of the load, so that it runs out during the outage.
    const size = {
      processes: 2,
      connections: 8,
      pauseMs: 40,
      beforeMs: 1_000,
      outageMs: 3_000,
      lookEveryMs: 200,
      limit: 250,
    }
    const { bySecond, ...found } = await measureRedisOutage(t, kind, size)
    t.comment(JSON.stringify(found))
    t.ok(bySecond.length > 5)
    const afterwards = bySecond.slice(Math.ceil(found.beganAtSecond))
    t.ok(
      afterwards.some(({ admitted }) => admitted > 0),
      'the scarce key had not run out before',
    )
    t.ok(found.admitted <= found.limit, `${found.admitted} of ${found.limit}`)
    t.equal(found.miscounted, 0)
    t.equal(found.failed, 0, 'a key with enough left goes on')
    t.ok(found.recoveryMs <= 10_000, `normal counting after ${found.recoveryMs} ms`)
  })
