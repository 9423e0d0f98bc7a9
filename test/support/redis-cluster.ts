// A real Redis Cluster for a test: three masters, by default with a replica each, on free ports of loopback.
// It fails over within a few seconds.

import { freePort } from './listening.ts'
import { type RedisProcess, startRedis } from './redis-server.ts'
import type { Teardown } from './teardown.ts'
import { patienceMs, until } from './until.ts'

export type TestCluster = {
  /** The first node. */
  url: string
  nodes: RedisProcess[]
  /** The node that is master for a key. */
  masterOf(key: string): Promise<RedisProcess>
  /** Begins to move the slot of a key: what it does not hold is asked for at another master. `settle` ends that, moving nothing. */
  beginMoving(key: string): Promise<{ from: RedisProcess; to: RedisProcess; settle(): Promise<void> }>
  /** Moves the slot of a key, with all that is in it, to another master. */
  moveSlotOf(key: string): Promise<void>
  /** Hands all slots of a master, which are empty, to another one, and takes the node out of the cluster; it runs on. */
  remove(node: RedisProcess): Promise<void>
}

const slots = 16_384

// Another test may take a port for the cluster's bus before its node does.
const attempts = 3

export const startCluster = async (
  t: Teardown,
  replicas: 0 | 1 = 1,
  // A node of a busy machine is not down.
  downAfterMs = 2_500,
  attempt = 1,
): Promise<TestCluster> => {
  const nodes = await Promise.all(
    Array.from({ length: 3 * (1 + replicas) }, async () =>
      startRedis(t, {
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-node-timeout', '60000'],
          ...['--cluster-port', String(await freePort()), '--cluster-replica-validity-factor', '0'],
          ...['--repl-diskless-sync-delay', '0'],
        ],
      }),
    ),
  )
  const masters = nodes.slice(0, 3)
  const fault: unknown = await form(nodes, masters, downAfterMs).then(
    () => undefined,
    error => error,
  )
  if (fault) {
    await Promise.all(nodes.map(node => node.kill()))
    if (attempt < attempts) return startCluster(t, replicas, downAfterMs, attempt + 1)
    throw new Error('the cluster could not be formed', { cause: fault })
  }

  const masterOf = async (key: string): Promise<RedisProcess> => {
    for (const node of nodes) {
      if (node.admin.status !== 'ready') continue
      const slot = await node.admin.cluster('KEYSLOT', key)
      const found = (await node.admin.cluster('SLOTS')).find(([from, to]) => slot >= from && slot <= to)
      const master = nodes.find(({ port }) => port === found?.[2]?.[1])
      if (master) return master
    }
    throw new Error(`no node knows who is master for ${key}`)
  }
  const beginMoving = async (key: string) => {
    const from = await masterOf(key)
    const slot = await from.admin.cluster('KEYSLOT', key)
    const to = masters.find(node => node !== from) as RedisProcess
    const [fromId, toId] = await Promise.all([from, to].map(({ admin }) => admin.call('CLUSTER', 'MYID')))
    await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId))
    await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId))
    const settle = async (): Promise<void> => {
      for (const { admin } of [to, from]) await admin.call('CLUSTER', 'SETSLOT', slot, 'STABLE')
    }
    return { from, to, slot, toId, settle }
  }
  return {
    url: nodes[0]?.url ?? '',
    nodes,
    masterOf,
    beginMoving,
    moveSlotOf: async key => {
      const { from, to, slot, toId } = await beginMoving(key)
      for (const name of (await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, 1_000)) as string[])
        await from.admin.call('MIGRATE', '127.0.0.1', to.port, name, 0, patienceMs)
      for (const node of [to, from]) await node.admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(toId))
    },
    remove: async node => {
      const others = nodes.filter(other => other !== node)
      const to = masters.find(other => other !== node) as RedisProcess
      const id = String(await node.admin.call('CLUSTER', 'MYID'))
      const ranges = (await node.admin.cluster('SLOTS')).filter(([, , master]) => master?.[1] === node.port)
      for (const [first, last] of ranges) {
        for (const { admin } of nodes) await admin.call('CLUSTER', 'DELSLOTSRANGE', first, last)
        await to.admin.call('CLUSTER', 'ADDSLOTSRANGE', first, last)
      }
      await to.admin.call('CLUSTER', 'BUMPEPOCH')
      await until('all know whose slots they are', async () => {
        const known = await Promise.all(others.map(({ admin }) => admin.cluster('SLOTS')))
        return known.every(
          found =>
            found.reduce((sum, [first, last]) => sum + last - first + 1, 0) === slots &&
            found.every(([, , master]) => master?.[1] !== node.port),
        )
      })
      for (const { admin } of others) await admin.call('CLUSTER', 'FORGET', id)
      // Keys of slots that are another's now would keep it; it takes no new ones.
      await node.admin.flushall()
      await node.admin.call('CLUSTER', 'RESET', 'SOFT')
    },
  }
}

/** Makes one cluster of the nodes: slots to the masters, a replica of each from the others. */
const form = async (
  nodes: readonly RedisProcess[],
  masters: readonly RedisProcess[],
  downAfterMs: number,
): Promise<void> => {
  const share = Math.ceil(slots / 3)
  await Promise.all(
    masters.map(async ({ admin }, i) => {
      await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', i * share, Math.min(slots, (i + 1) * share) - 1)
    }),
  )
  const busOf = async ({ admin }: RedisProcess) =>
    String(await admin.config('GET', 'cluster-port')).split(',')[1]
  const meetings = nodes.flatMap((one, i) => nodes.slice(i + 1).map(other => [one, other] as const))
  await Promise.all(
    meetings.map(async ([one, other]) =>
      one.admin.call('CLUSTER', 'MEET', '127.0.0.1', other.port, (await busOf(other)) ?? ''),
    ),
  )
  // A node that is met but does not respond within its timeout is forgotten, so it is short only from here on.
  await until('the nodes know each other', async () => {
    const known = await Promise.all(nodes.map(async ({ admin }) => String(await admin.cluster('NODES'))))
    return known.every(text => text.trim().split('\n').length === nodes.length && !/handshake/.test(text))
  })
  await Promise.all(nodes.map(({ admin }) => admin.config('SET', 'cluster-node-timeout', downAfterMs)))
  const clusterInfo = async ({ admin }: RedisProcess) => String(await admin.cluster('INFO'))
  const ids = await Promise.all(masters.map(({ admin }) => admin.call('CLUSTER', 'MYID')))
  await Promise.all(
    nodes.slice(3).map(({ admin }, i) =>
      until('a replica finds its master', async () => {
        await admin.call('CLUSTER', 'REPLICATE', String(ids[i]))
        return true
      }),
    ),
  )
  await until('the cluster is whole', async () => {
    const infos = await Promise.all(nodes.map(clusterInfo))
    const linked = await Promise.all(nodes.slice(3).map(({ admin }) => admin.info('replication')))
    return (
      infos.every(text => text.includes('cluster_state:ok')) &&
      linked.every(text => text.includes('master_link_status:up'))
    )
  })
}
