// The stores of systems under attack: a Redis that is one server, behind Sentinel or a cluster, or the embedded store. Of a
// Redis it gives a connection that sees all records, wherever they are.

import { Cluster, type Redis } from 'ioredis'
import { startCluster } from '../../test/support/redis-cluster.ts'
import { startRedisProcess } from '../../test/support/redis-process.ts'
import { masterName, startSentinel } from '../../test/support/redis-sentinel.ts'

export type StoreKind = 'redis' | 'sentinel' | 'cluster' | 'embedded'

export type SystemStore = {
  readonly env: Readonly<Record<string, string>>
  /** Undefined for the embedded store. */
  readonly redis: Redis | undefined
}

type Opening = Pick<AsyncDisposableStack, 'defer'>

/** @param folder for the files of the embedded store */
export const openSystemStore = async (
  kind: StoreKind,
  folder: string,
  opening: Opening,
): Promise<SystemStore> => {
  switch (kind) {
    case 'redis': {
      const { address, admin, stop } = await startRedisProcess()
      opening.defer(stop)
      return { env: { ABOHAWA_REDIS__URL: `redis://${address}` }, redis: admin }
    }
    case 'sentinel': {
      const { url, others, master, stop } = await startSentinel()
      opening.defer(stop)
      return {
        env: {
          ABOHAWA_REDIS__URL: url,
          ABOHAWA_REDIS__MODE: 'sentinel',
          ABOHAWA_REDIS__NODES: others.join(','),
          ABOHAWA_REDIS__SENTINEL_MASTER: masterName,
        },
        redis: (await master()).admin,
      }
    }
    case 'cluster': {
      const { url, nodes, stop } = await startCluster()
      opening.defer(stop)
      const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
      opening.defer(async () => cluster.disconnect())
      const keys = async (pattern: string): Promise<string[]> =>
        (await Promise.all(cluster.nodes('master').map(node => node.keys(pattern)))).flat()
      return {
        env: { ABOHAWA_REDIS__URL: url, ABOHAWA_REDIS__MODE: 'cluster' },
        // It has the same commands, each of which goes to the node of its key.
        redis: Object.assign(cluster, { keys }) as unknown as Redis,
      }
    }
    case 'embedded':
      return { env: { ABOHAWA_STORE__PATH: `${folder}/store.db` }, redis: undefined }
  }
}
