// Redis behind Sentinel for a test: a master, two replicas and three sentinels on free ports of loopback. It fails over within a few
// seconds, twice.

import { freePort } from './listening.ts'
import { type RedisProcess, startRedis } from './redis-server.ts'
import type { Teardown } from './teardown.ts'
import { until } from './until.ts'

export type TestSentinel = {
  /** The first sentinel. */
  url: string
  /** The other sentinels, `host:port`. */
  others: string[]
  /** What a gateway needs to find the master; the password of sentinels beside it. */
  env: Record<string, string>
  servers: RedisProcess[]
  sentinels: RedisProcess[]
  /** The current master according to the sentinels. */
  master(): Promise<RedisProcess>
}

export const masterName = 'weather'

/** @param password of the sentinels; the servers have none */
export const startSentinel = async (
  t: Teardown,
  password?: string,
  // A server of a busy machine is not down.
  downAfterMs = 2_500,
): Promise<TestSentinel> => {
  const first = await startRedis(t, { args: ['--repl-diskless-sync-delay', '0'] })
  const replicas = await Promise.all(
    [1, 2].map(() =>
      startRedis(t, {
        args: ['--replicaof', '127.0.0.1', String(first.port), '--repl-diskless-sync-delay', '0'],
      }),
    ),
  )
  const servers = [first, ...replicas]
  await until('the replicas follow their master', async () =>
    (await Promise.all(replicas.map(({ admin }) => admin.info('replication')))).every(text =>
      text.includes('master_link_status:up'),
    ),
  )
  // They are introduced to each other, because their own discovery takes ten seconds.
  const places: [port: number, id: string][] = []
  for (let i = 1; i <= 3; i++) places.push([await freePort(), String(i).repeat(40)])
  const sentinels = await Promise.all(
    places.map(([port, id]) =>
      startRedis(t, {
        port,
        ...(password && { password }),
        config: [
          `sentinel myid ${id}`,
          `sentinel monitor ${masterName} 127.0.0.1 ${first.port} 2`,
          `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
          `sentinel failover-timeout ${masterName} 5000`,
          ...replicas.map(({ port }) => `sentinel known-replica ${masterName} 127.0.0.1 ${port}`),
          ...places
            .filter(([other]) => other !== port)
            .map(([other, otherId]) => `sentinel known-sentinel ${masterName} 127.0.0.1 ${other} ${otherId}`),
          ...(password ? [`requirepass ${password}`, `sentinel sentinel-pass ${password}`] : []),
        ],
      }),
    ),
  )
  await until('the sentinels know each other and the replicas', async () => {
    const known = await Promise.all(
      sentinels.map(async ({ admin }) => String(await admin.call('SENTINEL', 'MASTER', masterName))),
    )
    return known.every(text => /flags,master,.*num-slaves,2,num-other-sentinels,2,/.test(text))
  })
  const [url = '', ...others] = sentinels.map(({ address }) => address)
  return {
    url: `redis://${url}`,
    others,
    env: {
      ABOHAWA_REDIS__URL: `redis://${url}`,
      ABOHAWA_REDIS__MODE: 'sentinel',
      ABOHAWA_REDIS__NODES: others.join(','),
      ABOHAWA_REDIS__SENTINEL_MASTER: masterName,
    },
    servers,
    sentinels,
    master: async () => {
      const call = sentinels[0]?.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)
      const address = (await call) as string[]
      return servers.find(({ port }) => port === Number(address[1])) as RedisProcess
    },
  }
}
