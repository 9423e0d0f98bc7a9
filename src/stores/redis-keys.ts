// API keys and subscribers in Redis: a hash each, found by id, by the key's own hash and by the subscriber's name.

import type { RedisClient } from './redis-connection.ts'
import type { KeyRecord, KeyStore, Subscriber } from './store.ts'

type Attempt = <Value>(step: () => Promise<Value>) => Promise<Value>

export const redisKeys = (
  redis: RedisClient,
  key: (...parts: string[]) => string,
  attempt: Attempt,
): KeyStore => {
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
