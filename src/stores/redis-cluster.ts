// A connection to Redis Cluster that fails fast: what ioredis does not do by itself so that an outage of one master is
// seen, told and over soon. Commands are never repeated once they may have been carried out, because counts would count
// twice; only those that a node refused because it is not theirs are sent on.

import { setTimeout as delay } from 'node:timers/promises'
import { Cluster, type Command, type Redis, type RedisOptions } from 'ioredis'
import { messageOf } from '../errors.ts'

/** What holds for the connection to each server. */
export type ServerOptions = Pick<
  RedisOptions,
  | 'connectTimeout'
  | 'commandTimeout'
  | 'socketTimeout'
  | 'disableClientInfo'
  | 'tls'
  | 'username'
  | 'password'
  | 'family'
>

const checkEveryMs = 200

/** The address of a node, as the map of slots has it. */
const addressOf = ({ options }: Redis): string => `${options.host}:${options.port}`

export class FailFastCluster extends Cluster {
  /** Names a master that is away, or nothing when all of them are there and the cluster is whole. */
  async fault(): Promise<string | undefined> {
    const nodes = new Map(this.nodes('master').map(node => [addressOf(node), node]))
    const faults = [...new Set(this.slots.map(([master = '']) => master))].map(async address => {
      try {
        const told = (await nodes.get(address)?.cluster('INFO')) ?? 'no connection'
        return told.includes('cluster_state:ok') ? undefined : `${address}: ${told.split('\r\n', 1)}`
      } catch (error) {
        return `${address}: ${messageOf(error)}`
      }
    })
    if (faults.length === 0) return 'no node answers'
    return (await Promise.all(faults)).find(fault => fault !== undefined)
  }

  override sendCommand(
    command: Command,
    ...[stream, node]: [stream?: Parameters<Cluster['sendCommand']>[1], node?: unknown]
  ): unknown {
    // Only the connecting itself talks to a cluster that is not there; else commands would queue up.
    if (this.status !== 'ready' && command.name !== 'cluster') {
      command.reject(new Error(`The cluster can't be reached (${this.status})`))
      return command.promise
    }
    return super.sendCommand(command, stream, node)
  }
}

/** @param retryDelay how long to wait before the given attempt to reach the cluster again, or null to give it up */
export const openCluster = (
  seeds: { host: string; port: number }[],
  serverOptions: ServerOptions,
  retryDelay: (attempt: number) => number | null,
): FailFastCluster => {
  const cluster = new FailFastCluster(seeds, {
    lazyConnect: true,
    // Every command finds its own way: of those that travel together, the ones for a slot that has moved would fail.
    enableAutoPipelining: false,
    clusterRetryStrategy: retryDelay,
    // No second try of a command whose connection broke, or which met a cluster without all of its masters.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: serverOptions.commandTimeout ?? 1_000,
    // Names stay names, because certificates are made out to them.
    dnsLookup: (host, callback) => callback(null, host),
    redisOptions: serverOptions,
  })
  // A connection that is there before its first command is missed when it breaks.
  cluster.on('+node', (node: Redis) => {
    if (!node.options.readOnly) node.connect().catch(() => {})
  })
  return cluster
}

/** Connects for the first time. @throws Error that says why not */
export const connectCluster = async (cluster: FailFastCluster): Promise<void> => {
  let last = "the cluster's state is not ok"
  cluster.on('error', () => {})
  cluster.on('node error', (error: Error, address: string) => {
    if (error.message !== 'Connection is closed.') last = `${address}: ${messageOf(error)}`
  })
  // The promise of connect() is never kept when the cluster turns out not to be ready.
  const ended = new Promise<never>((_, reject) => cluster.once('end', () => reject(new Error(last))))
  const connected = cluster.connect().catch(() => ended)
  await Promise.race([connected, ended])
  const fault = await cluster.fault()
  if (fault !== undefined) throw new Error(fault)
}

/** Tells once when a master of some slots is lost, and once when every slot has one again; until then it looks for it. */
export const watchCluster = (
  cluster: FailFastCluster,
  observer: { redisAway(reason: string): void; redisBack(): void },
): void => {
  let away = false
  const lost = (reason: string): void => {
    if (away) return
    away = true
    observer.redisAway(reason)
    void recovered().then(back => {
      away = false
      if (back) observer.redisBack()
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
  cluster.on('node error', (error: Error, address: string) => reasons.set(address, messageOf(error)))
  cluster.on('-node', (node: Redis) => {
    const address = addressOf(node)
    const reason = reasons.get(address) ?? 'the connection was closed'
    reasons.delete(address)
    // Nodes without slots of their own may go, and all of them do when the connection is closed.
    if (cluster.status === 'ready' && cluster.slots.some(([master]) => master === address))
      lost(`${address}: ${reason}`)
  })
  cluster.on('close', () => {
    if (cluster.status !== 'end' && cluster.status !== 'disconnecting') lost('no node answers')
  })
}
