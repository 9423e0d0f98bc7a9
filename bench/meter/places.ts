// The ways to run Redis that the rows measure, each with what can befall it.

import { usageTag } from '../../src/stores/redis-key-names.ts'
import { startDurableRedis } from '../../test/support/durable-redis.ts'
import { startCluster } from '../../test/support/redis-cluster.ts'
import { masterName, startSentinel } from '../../test/support/redis-sentinel.ts'
import type { Scope } from '../row.ts'
import type { Env } from '../set-up.ts'

export type Place = {
  readonly env: Env
  /** @param keyId of the key whose count it is about */
  strike(keyId: string): Promise<void>
  /** Ends it; nothing where the servers see to that themselves. */
  mend?(): Promise<void>
}

export type PlaceName = 'frozen' | 'killed' | 'sentinel' | 'cluster'

export const places: Record<PlaceName, (scope: Scope) => Promise<Place>> = {
  frozen: async scope => {
    const redis = await startDurableRedis(scope)
    return {
      env: { ABOHAWA_REDIS__URL: redis.url },
      strike: async () => redis.freeze(),
      mend: async () => redis.thaw(),
    }
  },
  killed: async scope => {
    const redis = await startDurableRedis(scope)
    return { env: { ABOHAWA_REDIS__URL: redis.url }, strike: redis.kill, mend: redis.start }
  },
  sentinel: async scope => {
    const sentinel = await startSentinel()
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
    const cluster = await startCluster()
    scope.teardown(cluster.stop)
    return {
      env: {
        ABOHAWA_REDIS__URL: cluster.url,
        ABOHAWA_REDIS__MODE: 'cluster',
        // The first node may be the one that is killed, and commands start afterwards.
        ABOHAWA_REDIS__NODES: cluster.nodes
          .slice(1)
          .map(({ address }) => address)
          .join(','),
      },
      strike: async keyId => (await cluster.masterOf(`abohawa:quota:${usageTag(keyId)}`)).kill(),
    }
  },
}
