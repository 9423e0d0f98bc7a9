// A Redis with replicas, behind Sentinel or as a cluster, that is kept from history to history, and its faults. A failover is
// over once the replica is master and the old master follows it.

import { startCluster } from '../../test/support/redis-cluster.ts'
import { masterName, startSentinel } from '../../test/support/redis-sentinel.ts'
import type { RedisProcess } from '../../test/support/redis-server.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { until } from '../../test/support/until.ts'
import type { Settings } from '../steps.ts'
import { emptyBut, type LaneRedis } from './redis.ts'

type Replicated = {
  readonly settings: Settings
  readonly servers: readonly RedisProcess[]
  /** Whether whoever gateways ask for the master names this one. */
  isNamed(master: RedisProcess): Promise<boolean>
  /** Asks for one in order, with all that was written. It may be refused, or be begun and given up. */
  failOver(master: RedisProcess): Promise<unknown>
  /** The arguments of a former master that is started again. */
  follow(master: RedisProcess): readonly string[]
}

const behindSentinel = async (scope: Teardown): Promise<Replicated> => {
  const { url, others, servers, sentinels } = await startSentinel(scope)
  return {
    settings: {
      'redis.url': url,
      'redis.mode': 'sentinel',
      'redis.nodes': others.join(','),
      'redis.sentinelMaster': masterName,
    },
    servers,
    // Each sentinel learns of a failover by itself, and a gateway that begins may ask any of them.
    isNamed: async ({ port }) => {
      const named = await Promise.all(
        sentinels.map(({ admin }) => admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)),
      )
      return named.every(found => (found as string[] | null)?.[1] === String(port))
    },
    failOver: async () => sentinels[0]?.admin.call('SENTINEL', 'FAILOVER', masterName),
    follow: ({ port }) => ['--replicaof', '127.0.0.1', String(port)],
  }
}

const asCluster = async (scope: Teardown): Promise<Replicated> => {
  const { url, nodes } = await startCluster(scope)
  return {
    settings: {
      'redis.url': url,
      'redis.mode': 'cluster',
      'redis.nodes': nodes
        .slice(1)
        .map(({ address }) => address)
        .join(','),
    },
    servers: nodes,
    isNamed: async () => true,
    failOver: async master => {
      const [, , replicas] = (await master.admin.call('ROLE')) as [string, number, [string, string][]]
      const replica = nodes.find(({ port }) => port === Number(replicas[0]?.[1]))
      await replica?.admin.call('CLUSTER', 'FAILOVER')
    },
    // A node finds its place in its own file.
    follow: () => [],
  }
}

const isMaster = async ({ admin }: RedisProcess): Promise<boolean> =>
  admin.status === 'ready' && ((await admin.call('ROLE').catch(() => [])) as unknown[])[0] === 'master'

const mostReplicationMs = 10_000
const askAgainMs = 6_000

export const openReplicatedRedis = async (
  kind: 'sentinel' | 'cluster',
  scope: Teardown,
): Promise<LaneRedis> => {
  const { settings, servers, isNamed, failOver, follow } = await (kind === 'sentinel'
    ? behindSentinel
    : asCluster)(scope)
  let isMoving = false
  let next = 0
  const masters = async (): Promise<RedisProcess[]> => {
    const are = await Promise.all(servers.map(isMaster))
    return servers.filter((_, i) => are[i])
  }
  const wanted = (await masters()).length
  /** As many masters as there should be, named as such, and each other server follows one that is there. */
  const isWhole = async (): Promise<boolean> => {
    const present = await masters()
    if (present.length !== wanted) return false
    if (!(await Promise.all(present.map(isNamed))).every(Boolean)) return false
    const roles = await Promise.all(
      servers.map(({ admin }) => admin.call('ROLE').catch(() => []) as Promise<unknown[]>),
    )
    return roles.every(([role, , , link]) => role === 'master' || (role === 'slave' && link === 'connected'))
  }
  const whole = () => until('every server has its place', isWhole)

  return {
    settings,
    clear: async () => {
      await whole()
      await Promise.all((await masters()).map(({ admin }) => admin.flushall()))
    },
    empty: async () => {
      await Promise.all((await masters()).map(({ admin }) => emptyBut(admin)))
    },
    dropMessages: async () => {
      await Promise.all(servers.map(({ admin }) => admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')))
    },
    ping: () => (isMoving ? undefined : servers[0]?.admin.ping().catch(() => {})),
    failOver: async isKilled => {
      await whole()
      const all = await masters()
      const former = all[next++ % all.length]
      if (!former) return
      isMoving = true
      try {
        // What was answered before is with the replica; what is under way may be lost.
        await former.admin.call('WAIT', 1, mostReplicationMs)
        if (isKilled) await former.kill()
        const others = () => masters().then(found => found.filter(server => server !== former))
        let askedAt = Number.NEGATIVE_INFINITY
        const hasMoved = async (): Promise<boolean> => {
          if ((await others()).length === wanted) return true
          if (!isKilled && performance.now() - askedAt > askAgainMs) {
            const isTaken = await failOver(former).then(
              () => true,
              () => false,
            )
            if (isTaken) askedAt = performance.now()
          }
          return false
        }
        await until('a replica took over', hasMoved, { everyMs: 20 })
        const [successor] = (await others()).filter(server => !all.includes(server))
        if (isKilled && successor) await former.start(follow(successor))
        await whole()
      } finally {
        isMoving = false
      }
    },
  }
}
