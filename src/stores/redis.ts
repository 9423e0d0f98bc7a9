// The store for a fleet: Redis through ioredis. Every step touches one slot, so it is atomic on a single server and on
// a cluster alike. All keys begin with the configured prefix; counts and bytes carry an expiry. Fails fast: commands
// have a timeout and nothing queues up while Redis is away.

import { Redis, type Result } from 'ioredis'
import { InputError, messageOf } from '../errors.ts'
import { redisFleet } from './redis-fleet.ts'
import { redisFlights } from './redis-flights.ts'
import { redisSpending } from './redis-spending.ts'
import { type KeyRecord, type Store, StoreError, type Subscriber } from './store.ts'

export type RedisOptions = {
  /** `redis://` or `rediss://`. */
  readonly url: string
  readonly prefix: string
  readonly connectTimeoutMs: number
  readonly commandTimeoutMs: number
}

/** Hears once when the connection is lost, with the reason, and once when it is there again. */
export type RedisObserver = { redisAway(reason: string): void; redisBack(): void }

// Takes what is left up to the units asked for, counts it and sets the expiry in one step, so that no counter is ever
// without one. A refused request changes nothing.
const takeScript = `
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
local taken = math.max(0, math.min(tonumber(ARGV[1]), tonumber(ARGV[2]) - used))
if taken > 0 then
  used = redis.call('INCRBY', KEYS[1], taken)
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return { taken, used }`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaTake(
      key: string,
      units: number,
      limit: number,
      keepUntil: number,
    ): Result<[number, number], Context>
  }
}

/** Connects. @throws InputError when Redis can't be reached at the start */
export const openRedisStore = async (options: RedisOptions, observer: RedisObserver): Promise<Store> => {
  const redis = await connect(options, observer)
  const key = (...parts: string[]) => options.prefix + parts.join(':')
  const attempt = async <Value>(step: () => Promise<Value>): Promise<Value> => {
    try {
      return await step()
    } catch (cause) {
      throw new StoreError(`Redis failed: ${messageOf(cause)}`, { cause })
    }
  }

  // Bytes and the flight that loads them are written in one step, so on a cluster they lie in one slot.
  const bytesKey = (name: string) => key('bytes', `{${name}}`)
  const { writeFenced, stopHearing, ...flights } = redisFlights(
    redis,
    {
      flightKey: name => key('flight', `{${name}}`),
      bytesKey,
      channel: key('flights'),
    },
    attempt,
  )

  const readKey = async (hash: string) => keyOf(hash, await redis.hgetall(key('key', hash)))
  const readKeyById = async (id: string) => {
    const hash = await redis.get(key('key-hash', id))
    return hash === null ? undefined : readKey(hash)
  }
  const readSubscriber = async (id: string) => subscriberOf(id, await redis.hgetall(key('subscriber', id)))
  // An absent revocation is an empty field, because a Redis hash holds strings only.
  const setRevoked = async (name: string, at: number | null) => {
    await redis.hset(name, 'revokedAt', String(at ?? ''))
    return true
  }

  return {
    kind: 'redis',
    addKey: record =>
      attempt(async () => {
        const { id, hash, subscriberId, tier, createdAt, revokedAt } = record
        // The record first: a crash in between leaves a key that works but is not listed, never a listed one that fails.
        await redis.hset(key('key', hash), { id, subscriberId, tier, createdAt, revokedAt: revokedAt ?? '' })
        await redis.set(key('key-hash', id), hash)
        await redis.zadd(key('keys'), String(createdAt), id)
      }),
    findKey: id => attempt(() => readKeyById(id)),
    findByHash: hash =>
      attempt(async () => {
        const found = await readKey(hash)
        const subscriber = found && (await readSubscriber(found.subscriberId))
        return found && subscriber ? { key: found, subscriber } : undefined
      }),
    listKeys: () =>
      attempt(async () => {
        const ids = await redis.zrange(key('keys'), '0', '-1')
        return (await Promise.all(ids.map(readKeyById))).flatMap(record => record ?? [])
      }),
    setKeyRevoked: (id, at) =>
      attempt(async () => {
        const hash = await redis.get(key('key-hash', id))
        return hash !== null && setRevoked(key('key', hash), at)
      }),
    ensureSubscriber: subscriber =>
      attempt(async () => {
        const { id, name, createdAt, revokedAt } = subscriber
        const nameKey = key('subscriber-name', name)
        const taken = await redis.get(nameKey)
        if (taken !== null) return (await readSubscriber(taken)) ?? subscriber
        // The record stands before its name points to it; who loses the race for the name removes its own record.
        await redis.hset(key('subscriber', id), { name, createdAt, revokedAt: revokedAt ?? '' })
        if ((await redis.setnx(nameKey, id)) === 1) {
          await redis.zadd(key('subscribers'), String(createdAt), id)
          return subscriber
        }
        await redis.del(key('subscriber', id))
        return (await readSubscriber((await redis.get(nameKey)) ?? '')) ?? subscriber
      }),
    findSubscriber: idOrName =>
      attempt(async () => {
        const byId = await readSubscriber(idOrName)
        if (byId) return byId
        const id = await redis.get(key('subscriber-name', idOrName))
        return id === null ? undefined : readSubscriber(id)
      }),
    listSubscribers: () =>
      attempt(async () => {
        const ids = await redis.zrange(key('subscribers'), '0', '-1')
        return (await Promise.all(ids.map(readSubscriber))).flatMap(subscriber => subscriber ?? [])
      }),
    setSubscriberRevoked: (id, at) =>
      attempt(async () => {
        const name = key('subscriber', id)
        return (await redis.exists(name)) === 1 && setRevoked(name, at)
      }),
    take: ({ keyId, day, units, limit, keepUntil }) =>
      attempt(async () => {
        const [taken, used] = await redis.abohawaTake(
          key('usage', `{${keyId}}`, day),
          units,
          limit,
          keepUntil,
        )
        return { taken, used }
      }),
    usedOn: (keyId, days) =>
      attempt(async () => {
        if (days.length === 0) return []
        const counts = await redis.mget(days.map(day => key('usage', `{${keyId}}`, day)))
        return counts.map(count => Number(count ?? 0))
      }),
    readBytes: name => attempt(async () => (await redis.getBuffer(bytesKey(name))) ?? undefined),
    writeBytes: async (name, bytes, expiresAt, token) =>
      token !== undefined
        ? writeFenced(name, bytes, expiresAt, token)
        : attempt(async () => {
            await redis.set(bytesKey(name), bytes, 'PXAT', expiresAt)
            return true
          }),
    deleteBytes: names =>
      attempt(async () => {
        // One by one, because on a cluster they lie in different slots; they travel together all the same.
        const removed = await Promise.all(names.map(name => redis.unlink(bytesKey(name))))
        return removed.reduce((sum, count) => sum + count, 0)
      }),
    ...flights,
    ...redisFleet(redis, key, attempt),
    ...redisSpending(redis, options.prefix, attempt),
    ping: () =>
      attempt(async () => {
        await redis.ping()
      }),
    close: async () => {
      stopHearing()
      // Waits for replies that are under way; a connection that is down is simply dropped.
      await redis.quit().catch(() => redis.disconnect())
    },
  }
}

const connect = async (options: RedisOptions, observer: RedisObserver): Promise<Redis> => {
  const redis = new Redis(options.url, {
    lazyConnect: true,
    connectTimeout: options.connectTimeoutMs,
    commandTimeout: options.commandTimeoutMs,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    enableAutoPipelining: true,
    retryStrategy: attempt => Math.min(50 * 2 ** attempt, 2_000),
  })
  redis.defineCommand('abohawaTake', { numberOfKeys: 1, lua: takeScript })
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

type Fields = Record<string, string>

const instantOrNull = (field: string | undefined): number | null => (field ? Number(field) : null)

const keyOf = (hash: string, fields: Fields): KeyRecord | undefined =>
  fields.id === undefined
    ? undefined
    : {
        id: fields.id,
        hash,
        subscriberId: fields.subscriberId ?? '',
        tier: fields.tier ?? '',
        createdAt: Number(fields.createdAt),
        revokedAt: instantOrNull(fields.revokedAt),
      }

const subscriberOf = (id: string, fields: Fields): Subscriber | undefined =>
  fields.name === undefined
    ? undefined
    : {
        id,
        name: fields.name,
        createdAt: Number(fields.createdAt),
        revokedAt: instantOrNull(fields.revokedAt),
      }
