// A fail-fast connection to Redis Cluster: detects and reports the loss of a master, which ioredis leaves to its callers.
// Commands are never retried once they may have run, because counts would count twice; only MOVED and ASK are followed.

import { setTimeout as delay } from 'node:timers/promises'
import { Cluster, type Command, type Redis, ReplyError } from 'ioredis'
import {
  addressOf,
  type OutageObserver,
  outageReporter,
  redisReason,
  type ServerOptions,
  withOneWrite,
} from './server.ts'

const checkEveryMs = 200

const timeoutOf = ({ options }: Cluster): number => options.redisOptions?.commandTimeout ?? 0

export class FailFastCluster extends Cluster {
  /** The fault of the cluster: a master that does not answer or is not ok; undefined when all are. */
  async fault(): Promise<string | undefined> {
    const nodes = new Map(this.nodes('master').map(node => [addressOf(node), node]))
    if (isUnannounced(this)) return unannounced
    const faults = [...new Set(this.slots.map(([master = '']) => master))].map(async address => {
      try {
        const info = (await nodes.get(address)?.cluster('INFO')) ?? 'no connection'
        return info.includes('cluster_state:ok') ? undefined : `${address}: ${info.split('\r\n', 1)}`
      } catch (error) {
        return `${address}: ${redisReason(error, timeoutOf(this))}`
      }
    })
    if (faults.length === 0) return 'no node answers'
    return (await Promise.all(faults)).find(fault => fault !== undefined)
  }

  override sendCommand(
    command: Command,
    ...[stream, node]: [stream?: Parameters<Cluster['sendCommand']>[1], node?: unknown]
  ): unknown {
    // While the cluster is not ready only CLUSTER commands of the connection itself may pass; others would queue.
    if (this.status !== 'ready' && command.name !== 'cluster') {
      command.reject(new Error(`The cluster can't be reached (${this.status})`))
      return command.promise
    }
    return super.sendCommand(command, stream, node)
  }

  override handleError(...given: Parameters<Cluster['handleError']>): void {
    // A node that was taken out of the cluster does not say any more where its slots are.
    if (given[0].message.startsWith('CLUSTERDOWN')) this.refreshSlotsCache()
    super.handleError(...given)
  }
}

/** Whether the cluster names a master without an address, or with an empty name, which Redis writes as `?`. */
const isUnannounced = ({ slots }: Cluster): boolean =>
  slots.some(nodes => nodes?.[0] === undefined || nodes[0].startsWith('?:'))

const unannounced =
  'a node announces no address; set cluster-announce-ip on each node, or cluster-announce-hostname where names are preferred'

/** ioredis sends ASKING before a command that a moving slot redirects, and leaves its failure, which the command has too, unheard. */
const hearAsking = (node: Redis): void => {
  const ask = node.asking.bind(node)
  node.asking = (() => {
    const asked = ask()
    asked.catch(() => {})
    return asked
  }) as typeof node.asking
}

/** @param retryDelay ms to wait before the given attempt to reconnect, or null to give up */
export const openCluster = (
  seeds: { host: string; port: number }[],
  serverOptions: ServerOptions,
  retryDelay: (attempt: number) => number | null,
): FailFastCluster => {
  const cluster = new FailFastCluster(seeds, {
    lazyConnect: true,
    // Each command follows its own redirection; in a pipeline those for a moved slot would fail.
    enableAutoPipelining: false,
    clusterRetryStrategy: retryDelay,
    // No retry of a command whose connection broke, or that met a cluster in state fail.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: serverOptions.commandTimeout ?? 1_000,
    // Host names are not resolved here, because certificates name them.
    dnsLookup: (host, callback) => callback(null, host),
    redisOptions: serverOptions,
  })
  // Connected before the first command, so that its loss is detected.
  cluster.on('+node', (node: Redis) => {
    withOneWrite(node)
    hearAsking(node)
    if (!node.options.readOnly) node.connect().catch(() => {})
  })
  return cluster
}

/** Connects for the first time. @throws Error with the reason */
export const connectCluster = async (cluster: FailFastCluster): Promise<void> => {
  let last = "the cluster's state is not ok"
  cluster.on('error', () => {})
  cluster.on('node error', (error: Error, address: string) => {
    if (error.message !== 'Connection is closed.')
      last = `${address}: ${redisReason(error, timeoutOf(cluster))}`
  })
  // The promise of connect() never settles when the cluster is not ready.
  const ended = new Promise<never>((_, reject) =>
    cluster.once('end', () => reject(new Error(isUnannounced(cluster) ? unannounced : last))),
  )
  const connected = cluster.connect().catch(() => ended)
  await Promise.race([connected, ended])
  const fault = await cluster.fault()
  if (fault !== undefined) throw new Error(fault)
}

/** Reports once when a master with slots is lost, and once when every slot has a master again; polls in between. */
export const watchCluster = (cluster: FailFastCluster, observer: OutageObserver): void => {
  const reporter = outageReporter(observer)
  const lost = (reason: string): void => {
    if (reporter.isAway()) return
    reporter.away(reason)
    void recovered().then(back => {
      if (back) reporter.back()
    })
  }
  const recovered = async (): Promise<boolean> => {
    while (cluster.status !== 'end') {
      await delay(checkEveryMs, undefined, { ref: false })
      if (cluster.status !== 'ready') continue
      await new Promise(resolve => cluster.refreshSlotsCache(resolve))
      if ((await cluster.fault()) === undefined) return true
    }
    return false
  }
  const reasons = new Map<string, string>()
  cluster.on('node error', (error: Error, address: string) => {
    const reason = redisReason(error, timeoutOf(cluster))
    reasons.set(address, reason)
    // An error reply has another cause than the loss of the node that was reported.
    if (reporter.isAway() && error instanceof ReplyError) reporter.away(`${address}: ${reason}`)
  })
  cluster.on('-node', (node: Redis) => {
    const address = addressOf(node)
    const reason = reasons.get(address) ?? 'the connection was closed'
    reasons.delete(address)
    // Nodes without slots may leave, and all of them do when the connection is closed.
    if (cluster.status === 'ready' && cluster.slots.some(([master]) => master === address))
      lost(`${address}: ${reason}`)
  })
  // Later than ioredis's own listener, which sets the status: only the status tells an end from a loss.
  cluster.on('close', () =>
    setImmediate(() => {
      if (cluster.status !== 'end') lost('no node answers')
    }),
  )
}
