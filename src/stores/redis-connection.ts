// A connection to Redis that fails fast: commands have a timeout, nothing queues up while Redis is away, and whoever
// listens hears once when it goes and once when it is back. Knows no keys.

import { Redis } from 'ioredis'
import { InputError, messageOf } from '../errors.ts'

export type RedisOptions = {
  /** `redis://` or `rediss://`. */
  readonly url: string
  readonly prefix: string
  readonly connectTimeoutMs: number
  readonly commandTimeoutMs: number
}

/** Hears once when the connection is lost, with the reason, and once when it is there again. */
export type RedisObserver = { redisAway(reason: string): void; redisBack(): void }

/** @throws InputError when Redis can't be reached at the start */
export const connect = async (options: RedisOptions, observer: RedisObserver): Promise<Redis> => {
  const redis = new Redis(options.url, {
    lazyConnect: true,
    connectTimeout: options.connectTimeoutMs,
    commandTimeout: options.commandTimeoutMs,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    retryStrategy: attempt => Math.min(50 * 2 ** attempt, 2_000),
  })
  let last: Error | undefined
  let away = false
  redis.on('error', error => {
    last = error
  })
  redis.on('close', () => {
    if (!away && redis.status !== 'end') observer.redisAway(messageOf(last ?? 'the connection was closed'))
    away = true
  })
  redis.on('ready', () => {
    if (away) observer.redisBack()
    away = false
  })
  try {
    await redis.connect()
    // On its own the client goes on in database 0 when the one it was told does not exist.
    await redis.select(redis.options.db ?? 0)
    return redis
  } catch (cause) {
    redis.disconnect()
    const { host } = new URL(options.url)
    throw new InputError(`redis.url names ${host}, which can't be used: ${messageOf(last ?? cause)}`, {
      cause,
    })
  }
}
