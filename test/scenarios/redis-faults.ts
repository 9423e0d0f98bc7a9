// Redis deployments, each with a fault: a server that is frozen or killed, a master that is killed behind Sentinel or in a
// cluster. redis-outage.ts puts load on them.

import { usageTag } from '../../src/stores/redis/key-names.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startDurableRedis } from '../support/redis-process.ts'
import { masterName, startSentinel } from '../support/redis-sentinel.ts'
import type { Teardown } from '../support/teardown.ts'
import type { Env } from './set-up.ts'

export type FaultyRedis = {
  readonly env: Env
  /** Injects the fault. @param keyId key whose count it must hit */
  strike(keyId: string): Promise<void>
  /** Ends the fault; absent where the servers recover by themselves. */
  recover?(): Promise<void>
}

export type RedisFault = 'frozen' | 'killed' | 'sentinel' | 'cluster'

/** Part of how long a failover takes. */
const downAfterMs = 1_000

export const redisFaults: Record<RedisFault, (scope: Teardown) => Promise<FaultyRedis>> = {
  frozen: async scope => {
    const redis = await startDurableRedis(scope)
    return {
      env: { ABOHAWA_REDIS__URL: redis.url },
      strike: async () => redis.freeze(),
      recover: async () => redis.thaw(),
    }
  },
  killed: async scope => {
    const redis = await startDurableRedis(scope)
    return { env: { ABOHAWA_REDIS__URL: redis.url }, strike: redis.kill, recover: redis.start }
  },
  sentinel: async scope => {
    const sentinel = await startSentinel(undefined, { downAfterMs })
    scope.teardown(sentinel.stop)
    return {
      env: {
        ABOHAWA_REDIS__URL: sentinel.url,
        ABOHAWA_REDIS__MODE: 'sentinel',
        ABOHAWA_REDIS__NODES: sentinel.others.join(','),
        ABOHAWA_REDIS__SENTINEL_MASTER: masterName,
      },
      strike: async () => (await sentinel.master()).kill(),
    }
  },
  cluster: async scope => {
    const cluster = await startCluster(1, downAfterMs)
    scope.teardown(cluster.stop)
    return {
      env: {
        ABOHAWA_REDIS__URL: cluster.url,
        ABOHAWA_REDIS__MODE: 'cluster',
        // Another node than the first, which may be the killed one when commands start.
        ABOHAWA_REDIS__NODES: cluster.nodes
          .slice(1)
          .map(({ address }) => address)
          .join(','),
      },
      strike: async keyId => (await cluster.masterOf(`abohawa:quota:${usageTag(keyId)}`)).kill(),
    }
  },
}
