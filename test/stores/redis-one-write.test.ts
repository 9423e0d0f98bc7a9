// Without it each command would cost Redis and the gateway a system call.

import t, { type Test } from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { instanceOn } from './usage-instance.ts'

// Servers of their own, whose reads are those of this test.
const places = {
  single: async (t: Test) => [await startRedis(t)],
  cluster: async (t: Test) => (await startCluster(t, 0)).nodes,
}

for (const mode of ['single', 'cluster'] as const)
  t.test(`what is asked in one turn reaches Redis in one piece (${mode})`, async t => {
    const servers = await places[mode](t)
    const store = await openRedisStore({ ...patient, mode, url: servers[0]?.url ?? '', prefix: 'a:' }, quiet)
    t.teardown(() => store.close())
    const reads = async () => {
      const stats = await Promise.all(servers.map(({ admin }) => admin.info('stats')))
      return stats.reduce((sum, text) => sum + Number(/total_reads_processed:(\d+)/.exec(text)?.[1]), 0)
    }
    const names = Array.from({ length: 300 }, (_, i) => `cell-${i}`)
    const inAnHour = Date.now() + 3_600_000
    await Promise.all(names.map(name => store.writeBytes(name, Buffer.from(`weather of ${name}`), inAnHour)))

    const before = await reads()
    const found = await Promise.all(names.map(name => store.readBytes(name)))
    const more = (await reads()) - before
    t.strictSame(
      found.map(bytes => bytes?.toString()),
      names.map(name => `weather of ${name}`),
    )
    // Apart from the question itself and what a gateway asks all the time. One for each command without it.
    t.ok(more < 40, `${more} reads of Redis for ${names.length} commands`)
  })

t.test('a batch of quotas is one command, which waits for no later turn of the event loop', async t => {
  const { url, admin: server } = await startRedis(t)
  const store = await openRedisStore({ ...patient, url, prefix: 'a:' }, quiet)
  t.teardown(() => store.close())
  const commit = instanceOn(store, 'one')
  await commit({ units: 1, limit: 9 })
  await server.config('RESETSTAT')
  const later: (() => void)[] = []
  const restore = t.intercept(globalThis, 'setImmediate', {
    value: (step: () => void) => later.push(step),
  }).restore
  t.match(await commit({ units: 1, limit: 9 }), [{ used: 2 }])
  restore()
  t.ok(later.length > 0, 'another command would wait for the turn')
  for (const step of later) step()
  const calls = [...(await server.info('commandstats')).matchAll(/cmdstat_(\w+):calls=(\d+)/g)]
  const ofBatch = calls.filter(([, name = '']) => /^(?:eval|evalsha|hget|hmget|hset|pexpireat)$/.test(name))
  t.strictSame(Object.fromEntries(ofBatch.map(([, name, count]) => [name, Number(count)])), {
    evalsha: 1,
    // Within the script: the counts of the day and the sums of the month.
    hmget: 2,
    hset: 2,
  })
})
