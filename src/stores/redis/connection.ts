// A fail-fast connection to Redis (single server, Sentinel or Cluster): commands time out, nothing queues while Redis is
// unavailable, and the observer is called once per outage and once per recovery.

import { type AbstractConnector, Redis, ReplyError } from 'ioredis'
import { InputError } from '../../common/errors.ts'
import type { RecordObserver } from '../records.ts'
import type { Eviction, StoreSize } from '../store.ts'
import { connectCluster, FailFastCluster, openCluster, watchCluster } from './cluster.ts'
import type { RedisKeyNames } from './key-names.ts'
import { accountOf, addressesOf, type RedisOptions, tlsOf } from './place.ts'
import {
  addressOf,
  evictsKeys,
  infoOf,
  type OutageObserver,
  outageReporter,
  type RedisClient,
  type RedisInfo,
  redisReason,
  type ServerOptions,
  withOneWrite,
} from './server.ts'

export type RedisObserver = OutageObserver & {
  /** The connection for messages of others fails while that for commands works: each new reason, and null once it holds. */
  redisMessages?(fault: string | null): void
  /** Called for every request, which may be several commands. */
  redisRequest?(outcome: RedisOutcome, ms: number): void
}

/** `connection`: it could not be sent, or the connection broke. `reply`: Redis replied with an error. */
export type RedisOutcome = 'ok' | 'timeout' | 'connection' | 'reply'

/** The shared parts of all modules of the store. Their errors are those of the client. */
export type RedisParts = {
  readonly redis: RedisClient
  readonly names: RedisKeyNames
  readonly observer: RecordObserver
}

const longestRetryMs = 500

/** @throws InputError when Redis can't be reached at the start, or runs in another mode than configured */
export const connect = async (options: RedisOptions, observer: RedisObserver): Promise<RedisClient> => {
  const tls = tlsOf(options)
  // The socket times out later than a command, so that one slow reply does not break the connection.
  const serverOptions: ServerOptions = {
    connectTimeout: options.connectTimeoutMs,
    commandTimeout: options.commandTimeoutMs,
    socketTimeout: options.commandTimeoutMs * 2,
    // Redis overestimates how long it will load its file, and would be asked again after ten seconds.
    maxLoadingRetryTime: longestRetryMs,
    disableClientInfo: true,
    ...(tls && { tls }),
  }
  let started = false
  const retryDelay = (attempt: number): number | null =>
    started ? Math.min(50 * 2 ** attempt, longestRetryMs) : null
  const redis =
    options.mode === 'cluster'
      ? openCluster(addressesOf(options), { ...serverOptions, ...accountOf(options.url) }, retryDelay)
      : withOneWrite(openServer(options, serverOptions, retryDelay))
  try {
    await (redis instanceof FailFastCluster ? connectCluster(redis) : connectServer(redis, options))
  } catch (cause) {
    redis.disconnect()
    throw refusal(options, cause)
  }
  started = true
  if (redis instanceof FailFastCluster) watchCluster(redis, observer)
  else watchServer(redis, options.commandTimeoutMs, observer)
  return redis
}

/** The error of a start without Redis: the reason in the words of the client, and where an operator finds out more. */
const refusal = (
  { url, nodes = [], urlName, commandTimeoutMs }: RedisOptions,
  cause: unknown,
): InputError => {
  const hosts = [new URL(url).host, ...nodes].join(', ')
  const more = urlName === undefined ? '; `abohawa doctor` says what to do' : ''
  const reason = redisReason(cause, commandTimeoutMs)
  return new InputError(`${urlName ?? 'redis.url'} names ${hosts}, which can't be used: ${reason}${more}`, {
    cause,
  })
}

/** Resolves when every server that holds keys answers. @throws Error with the reason of the first that does not */
export const ping = async (redis: RedisClient): Promise<void> => {
  await redis.ping()
  const fault = redis instanceof FailFastCluster && (await redis.fault())
  if (fault) throw new Error(fault)
}

/** The memory of the server; on a cluster of the master with least room, with the evictions of all masters. */
export const memoryOf = async (redis: RedisClient): Promise<StoreSize> => {
  const nodes = 'nodes' in redis ? redis.nodes('master') : [redis]
  const infos = await Promise.all(nodes.map(async node => infoOf(await node.info('memory', 'stats'))))
  const [fullest] = infos
    .map(memoryIn)
    .toSorted((a, b) => shareOf(b) - shareOf(a) || b.usedBytes - a.usedBytes)
  if (!fullest) throw new Error('no node answers')
  return { ...fullest, eviction: evictionIn(infos) }
}

const shareOf = ({ usedBytes, maxBytes }: StoreSize): number => (maxBytes === 0 ? 0 : usedBytes / maxBytes)

const memoryIn = (info: RedisInfo): StoreSize => {
  const used = info.get('used_memory')
  if (used === undefined) throw new Error('INFO has no used_memory')
  return { usedBytes: Number(used), maxBytes: Number(info.get('maxmemory') ?? 0) }
}

const evictionIn = (infos: readonly RedisInfo[]): Eviction => {
  const policies = infos.map(info => info.get('maxmemory_policy') ?? 'unknown')
  const policy = policies.find(evictsKeys)
  return {
    policy: policy ?? policies[0] ?? 'unknown',
    takesKeys: policy !== undefined,
    evicted: infos.reduce((sum, info) => sum + Number(info.get('evicted_keys') ?? 0), 0),
  }
}

/** A connection for subscriptions: to the server, or to any master of a cluster; undefined while there is none. */
export const listenerOn = (redis: RedisClient): Redis | undefined => {
  const nodes = 'nodes' in redis ? redis.nodes('master') : [redis]
  const node = nodes[Math.floor(Math.random() * nodes.length)]
  return node?.duplicate({ lazyConnect: false, autoResubscribe: false, retryStrategy: () => null })
}

/** Whether the server of such a connection is still one of those that hold the keys; true while none is known. */
export const isOfStore = (redis: RedisClient, listener: Redis): boolean => {
  const nodes = 'nodes' in redis ? redis.nodes('master') : []
  return nodes.length === 0 || nodes.some(node => addressOf(node) === addressOf(listener))
}

const openServer = (
  { url, mode, nodes, sentinelMaster, sentinelPassword, commandTimeoutMs }: RedisOptions,
  serverOptions: ServerOptions,
  retryDelay: (attempt: number) => number | null,
): Redis =>
  new Redis(url, {
    ...serverOptions,
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: retryDelay,
    ...(mode === 'sentinel' && {
      sentinels: addressesOf({ url, mode, nodes: nodes ?? [] }),
      name: sentinelMaster ?? '',
      ...(sentinelPassword && { sentinelPassword }),
      ...(serverOptions.tls && { sentinelTLS: serverOptions.tls, enableTLSForSentinelMode: true }),
      sentinelCommandTimeout: commandTimeoutMs,
      sentinelRetryStrategy: retryDelay,
    }),
  })

const connectServer = async (
  redis: Redis,
  { mode = 'single', modeName = 'redis.mode' }: RedisOptions,
): Promise<void> => {
  let last: Error | undefined
  redis.on('error', error => {
    last = error
  })
  try {
    await redis.connect()
    // ioredis silently uses database 0 when the configured one does not exist.
    if (redis.options.db) await redis.select(redis.options.db)
  } catch (cause) {
    throw last ?? cause
  }
  const info = infoOf(await redis.info('server'))
  // Valkey names it server_mode.
  const found = info.get('redis_mode') ?? info.get('server_mode')
  if (mode === 'single' && (found === 'cluster' || found === 'sentinel'))
    throw new Error(`it runs in mode ${found}: set ${modeName} to ${found}`)
}

const reasonsAway = new WeakMap<RedisClient, string>()

/** Why commands can't be sent, which their own errors do not say; undefined while they can, and on a cluster. */
export const reasonAway = (redis: RedisClient): string | undefined => reasonsAway.get(redis)

const watchServer = (redis: Redis, commandTimeoutMs: number, observer: RedisObserver): void => {
  const reasonOf = (thrown: unknown): string => redisReason(thrown, commandTimeoutMs)
  const reporter = outageReporter(observer)
  let last: Error | undefined
  const note = (error: Error): void => {
    last = error
    // Before the connection closes: commands that come meanwhile can't be sent either.
    reasonsAway.set(redis, reasonOf(error))
  }
  leaveReplicas(redis, note)
  redis.on('error', error => {
    note(error)
    // An error reply has another cause than the loss of the connection that was reported.
    if (reporter.isAway() && error instanceof ReplyError) reporter.away(reasonOf(error))
  })
  redis.on('close', () => {
    if (reporter.isAway() || redis.status === 'end') return
    const reason = reasonOf(last ?? 'the connection was closed')
    reasonsAway.set(redis, reason)
    reporter.away(reason)
  })
  redis.on('ready', () => {
    reporter.back()
    last = undefined
    reasonsAway.delete(redis)
  })
}

const isReplica = 'it is a replica, which takes no writes'

/**
 * Leaves a server that became a replica: a new connection finds the new master at the same address, or through Sentinel.
 * Until there is one, the server counts as away.
 * @param onReplica called when the connection is about to be closed for it, with the reason
 */
const leaveReplicas = (redis: Redis, onReplica: (reason: Error) => void): void => {
  let left: unknown
  // ioredis asks for each refused command, and would close the connection for each.
  redis.options.reconnectOnError = error => {
    if (!error.message.startsWith('READONLY') || redis.stream === left) return false
    left = redis.stream
    onReplica(new Error(isReplica))
    return true
  }
  // Sentinel names a master, and ioredis checks there that it is one.
  if (redis.options.sentinels) return
  const { connector } = redis as unknown as { connector: AbstractConnector }
  // Before a connection is ready: Redis is not reported as back, and the pauses between the tries grow.
  connector.check = ({ role } = {}) => {
    if (role !== 'slave') return true
    onReplica(new Error(isReplica))
    return false
  }
}
