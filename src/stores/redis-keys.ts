// API keys and subscribers in Redis. `key:<id>` is the record of a key with its present and former hashes, and
// `key-of:<hash>` names the id that a hash belongs to; subscribers are found by id and by name. Whether a hash works is
// told by the record alone, so each change of a key is one step on one slot, and a pointer without its record, or to one
// that does not know the hash, is nothing.

import type { Result } from 'ioredis'
import type { RedisClient } from './redis-connection.ts'
import type { KeyRecord, KeyStore, Subscriber } from './store.ts'

// Former hashes are fields `former:<hash>` of the record; none works longer than the one replaced last.
const replaceScript = `
local record = redis.call('HGETALL', KEYS[1])
local change = { 'hash', ARGV[1] }
for i = 1, #record, 2 do
  if record[i] == 'hash' and record[i + 1] ~= ARGV[1] then
    table.insert(change, 'former:' .. record[i + 1])
    table.insert(change, ARGV[2])
  elseif string.sub(record[i], 1, 7) == 'former:' and tonumber(record[i + 1]) > tonumber(ARGV[2]) then
    table.insert(change, record[i])
    table.insert(change, ARGV[2])
  end
end
if #record == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(change))
return 1`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaReplaceHash(key: string, hash: string, formerValidUntil: number): Result<number, Context>
  }
}

type Attempt = <Value>(step: () => Promise<Value>) => Promise<Value>
type KeyName = (...parts: string[]) => string

export const redisKeys = (redis: RedisClient, key: KeyName, attempt: Attempt): KeyStore => {
  redis.defineCommand('abohawaReplaceHash', { numberOfKeys: 1, lua: replaceScript })
  const readKey = async (id: string) => keyOf(id, await redis.hgetall(key('key', id)))
  const readSubscriber = async (id: string) => subscriberOf(id, await redis.hgetall(key('subscriber', id)))
  /** False when there is nothing of this name; nothing is ever removed, so a look before the change is enough. */
  const change = async (name: string, fields: Fields) => {
    if ((await redis.exists(name)) === 0) return false
    if (Object.keys(fields).length > 0) await redis.hset(name, fields)
    return true
  }

  return {
    addKey: record => attempt(() => writeKey(redis, key, record)),
    findKey: id => attempt(() => readKey(id)),
    findByHash: hash =>
      attempt(async () => {
        const id = await redis.get(key('key-of', hash))
        const found = id === null ? undefined : await readKey(id)
        const validUntil =
          found?.hash === hash ? null : found?.formers.find(former => former.hash === hash)?.validUntil
        if (!found || validUntil === undefined) return undefined
        const subscriber = await readSubscriber(found.subscriberId)
        return subscriber && { key: found, subscriber, validUntil }
      }),
    listKeys: () =>
      attempt(async () => {
        const ids = await redis.zrange(key('keys'), '0', '-1')
        return (await Promise.all(ids.map(readKey))).flatMap(record => record ?? [])
      }),
    changeKey: (id, { tier, limit, revokedAt }) =>
      attempt(() =>
        change(key('key', id), {
          ...(tier === undefined ? {} : { tier }),
          ...(limit === undefined ? {} : { limit: fieldOf(limit) }),
          ...(revokedAt === undefined ? {} : { revokedAt: fieldOf(revokedAt) }),
        }),
      ),
    replaceHash: (id, hash, formerValidUntil) =>
      attempt(async () => {
        if ((await redis.exists(key('key', id))) === 0) return false
        // The pointer first: until the record knows the hash too, it leads to a record that does not, and so nowhere.
        await redis.set(key('key-of', hash), id)
        return (await redis.abohawaReplaceHash(key('key', id), hash, formerValidUntil)) === 1
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
      attempt(() => change(key('subscriber', id), { revokedAt: fieldOf(at) })),
  }
}

// The record, then the way to it, then the list: a crash in between leaves a key that nobody was shown yet and that is
// not listed, never a listed one that fails.
const writeKey = async (redis: RedisClient, key: KeyName, record: KeyRecord): Promise<void> => {
  const { id, hash, subscriberId, tier, limit, createdAt, revokedAt, formers } = record
  await redis.hset(key('key', id), {
    hash,
    subscriberId,
    tier,
    limit: fieldOf(limit),
    createdAt,
    revokedAt: fieldOf(revokedAt),
    ...Object.fromEntries(formers.map(({ hash, validUntil }) => [`former:${hash}`, validUntil])),
  })
  for (const known of [hash, ...formers.map(({ hash }) => hash)]) await redis.set(key('key-of', known), id)
  await redis.zadd(key('keys'), String(createdAt), id)
}

type Fields = Record<string, string>

// What is absent is an empty field, because a Redis hash holds strings only.
const fieldOf = (value: number | null): string => String(value ?? '')
const numberOrNull = (field: string | undefined): number | null => (field ? Number(field) : null)

const keyOf = (id: string, fields: Fields): KeyRecord | undefined =>
  fields.subscriberId === undefined
    ? undefined
    : {
        id,
        hash: fields.hash ?? '',
        subscriberId: fields.subscriberId,
        tier: fields.tier ?? '',
        limit: numberOrNull(fields.limit),
        createdAt: Number(fields.createdAt),
        revokedAt: numberOrNull(fields.revokedAt),
        formers: Object.entries(fields)
          .filter(([field]) => field.startsWith('former:'))
          .map(([field, until]) => ({ hash: field.slice('former:'.length), validUntil: Number(until) }))
          .sort(byEnd),
      }

const byEnd = (one: { validUntil: number; hash: string }, other: { validUntil: number; hash: string }) =>
  one.validUntil - other.validUntil || (one.hash < other.hash ? -1 : 1)

const subscriberOf = (id: string, fields: Fields): Subscriber | undefined =>
  fields.name === undefined
    ? undefined
    : {
        id,
        name: fields.name,
        createdAt: Number(fields.createdAt),
        revokedAt: numberOrNull(fields.revokedAt),
      }
