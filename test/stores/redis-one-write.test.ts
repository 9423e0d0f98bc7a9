// Without it each command would cost Redis and the gateway a system call.

import { Redis } from 'ioredis'
import t from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { instanceOn } from '../support/usage-instance.ts'

// Servers of their own, whose reads are those of this test.
const places = {
  single: async () => {
    const { url, stop } = await startRedis()
    return { urls: [url], stop }
  },
  cluster: async () => {
    const { nodes, stop } = await startCluster(0)
    return { urls: nodes.map(({ address }) => `redis://${address}`), stop }
  },
}

for (const mode of ['single', 'cluster'] as const)
  t.test(`what is asked in one turn reaches Redis in one piece (${mode})`, async t => {
    const { urls, stop } = await places[mode]()
    t.teardown(stop)
    const store = await openRedisStore({ ...patient, mode, url: urls[0] ?? '', prefix: 'a:' }, quiet)
    const servers = urls.map(url => new Redis(url))
    t.teardown(async () => {
      for (const server of servers) await server.quit()
      await store.close()
    })
    const reads = async () => {
      const stats = await Promise.all(servers.map(server => server.info('stats')))
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
  const { url, stop } = await startRedis()
  t.teardown(stop)
  const store = await openRedisStore({ ...patient, url, prefix: 'a:' }, quiet)
  const server = new Redis(url)
  t.teardown(async () => {
    await server.quit()
    await store.close()
  })
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
