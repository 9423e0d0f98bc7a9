// A replica takes over from a master that is killed under load, behind Sentinel and on a cluster: no key gets more than its
// quota plus the writes that were not replicated, and the counts equal the admitted requests.

import t from 'tap'
import { measureRedisOutage } from '../scenarios/redis-outage.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

// Most of each is waiting.
t.jobs = 2

for (const kind of ['sentinel', 'cluster'] as const)
  t.test(`quotas through a failover: ${kind}`, { skip: withoutOwnRedis }, async t => {
    const size = { processes: 2, connections: 16, pauseMs: 40, beforeMs: 1_000, outageMs: 0, limit: 500 }
    const { bySecond, ...found } = await measureRedisOutage(t, kind, size)
    t.comment(JSON.stringify(found))
    t.ok(bySecond.length > 5)
    const afterwards = bySecond.slice(Math.ceil(found.beganAtSecond))
    t.ok(
      afterwards.some(({ admitted }) => admitted > 0),
      'the scarce key had not run out before',
    )
    // At most sixteen requests are in flight, so at most sixteen confirmed writes can be missing on the replica.
    t.ok(found.admitted <= found.limit + 16, `${found.admitted} of ${found.limit}`)
    t.equal(found.miscounted, 0)
    t.equal(found.failed, 0, 'a key with enough left goes on')
    t.ok(found.recoveryMs <= 30_000, `normal counting after ${found.recoveryMs} ms`)
  })
