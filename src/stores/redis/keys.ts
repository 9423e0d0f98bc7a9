// Stores API keys and subscribers in Redis. `key:<id>` is the record of a key with its present and former hashes;
// `key-of:<hash>` and `external-id:<id>` point to the id. The record alone decides whether a hash is valid, so each change of a key is one step
// on one slot, and a pointer whose record is missing or lacks the hash is ignored. Damaged records are never repaired.

import type { Result } from 'ioredis'
import {
  DamagedRecordError,
  instantIn,
  keyRecordOf,
  longestName,
  type RefusedRecord,
  shown,
  subscriberOf,
} from '../records.ts'
import type { FormerHash, KeyRecord, KeyStore, Subscriber } from '../store.ts'
import type { RedisClient, RedisParts } from './connection.ts'
import type { RedisKeyNames } from './key-names.ts'
import { hashReader, isWrongType, pairsOf } from './records.ts'

// Former hashes are fields `former:<hash>` of the record; none is valid longer than the one replaced last.
const replaceScript = `
local record = redis.call('HGETALL', KEYS[1])
local change = { 'hash', ARGV[1] }
for i = 1, #record, 2 do
  if record[i] == 'hash' and record[i + 1] ~= ARGV[1] then
    table.insert(change, 'former:' .. record[i + 1])
    table.insert(change, ARGV[2])
  elseif string.sub(record[i], 1, 7) == 'former:' and (tonumber(record[i + 1]) or 0) > tonumber(ARGV[2]) then
    table.insert(change, record[i])
    table.insert(change, ARGV[2])
  end
end
if #record == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(change))
return 1`

// Points an external id at a key unless it points at another one. ARGV: the key, and the one whose place it may take.
// Returns the key that it points at then.
const claimScript = `
local held = redis.call('GETRANGE', KEYS[1], 0, ${longestName})
if held ~= '' and held ~= ARGV[2] then return held end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaReplaceHash(key: string, hash: string, formerValidUntil: number): Result<number, Context>
    abohawaClaim(pointer: string, id: string, inPlaceOf: string): Result<string, Context>
  }
}

type Pair = readonly [field: string, value: string]

const idsPerCommand = 1_000

export const redisKeys = ({ redis, names, attempt, observer }: RedisParts): KeyStore => {
  redis.defineCommand('abohawaReplaceHash', { numberOfKeys: 1, lua: replaceScript })
  redis.defineCommand('abohawaClaim', { numberOfKeys: 1, lua: claimScript })
  const readHash = hashReader(redis)
  const refuse = (record: 'key' | 'subscriber', name: string, fault: string): RefusedRecord => {
    const refused = { record, name: shown(name), fault }
    observer.recordRefused(refused)
    return refused
  }
  /** @throws DamagedRecordError, after the observer got it */
  const readRecord = async <Value>(
    record: 'key' | 'subscriber',
    id: string,
    recordOf: (pairs: readonly Pair[]) => Value,
  ): Promise<Value | undefined> => {
    const found = await readHash(names[record](id))
    if (typeof found === 'string') throw new DamagedRecordError(refuse(record, id, found))
    try {
      return found.length === 0 ? undefined : recordOf(pairsOf(found))
    } catch (error) {
      if (error instanceof DamagedRecordError) observer.recordRefused(error.refused)
      throw error
    }
  }
  const readKey = (id: string): Promise<KeyRecord | undefined> =>
    readRecord('key', id, pairs => keyOf(id, pairs, fault => void refuse('key', id, fault)))
  const readSubscriber = (id: string): Promise<Subscriber | undefined> =>
    readRecord('subscriber', id, pairs => subscriberOf(id, Object.fromEntries(pairs)))
  /** The id that a pointer holds. @throws DamagedRecordError when it can't be an id */
  const pointedAt = async (record: 'key' | 'subscriber', name: string): Promise<string | undefined> => {
    try {
      const id = await redis.getrange(name, 0, longestName)
      if (id.length <= longestName) return id === '' ? undefined : id
    } catch (error) {
      if (!isWrongType(error)) throw error
    }
    throw new DamagedRecordError(refuse(record, name, 'it is no id'))
  }
  /** The key that an external id points at, if the record agrees. */
  const keyAt = async (id: string | undefined, externalId: string): Promise<KeyRecord | undefined> => {
    const key = id === undefined || id.length > longestName ? undefined : await readKey(id)
    return key?.externalId === externalId ? key : undefined
  }
  const readByExternalId = async (externalId: string): Promise<KeyRecord | undefined> =>
    keyAt(await pointedAt('key', names.keyOfExternalId(externalId)), externalId)
  const enlist = ({ id, createdAt }: KeyRecord) => redis.zadd(names.keys, String(createdAt), id)
  /** Claims the external id for a written record; the key that has it already, else undefined. */
  const claim = async (record: KeyRecord, externalId: string): Promise<KeyRecord | undefined> => {
    const pointer = names.keyOfExternalId(externalId)
    let held = await redis.abohawaClaim(pointer, record.id, '')
    while (held !== record.id) {
      const there = await keyAt(held, externalId)
      if (there) return there
      // A failover may have lost the record that it points at.
      held = await redis.abohawaClaim(pointer, record.id, held)
    }
    return undefined
  }
  /** All listed records; leaves damaged ones out and reports them to the observer. */
  const readAll = async <Value>(
    list: string,
    read: (id: string) => Promise<Value | undefined>,
    first = 0,
    count = Number.POSITIVE_INFINITY,
  ): Promise<Value[]> => {
    const all: Value[] = []
    for (let from = first; ; from += idsPerCommand) {
      const most = Math.min(idsPerCommand, first + count - from)
      if (most <= 0) return all
      const ids = await redis.zrange(list, String(from), String(from + most - 1))
      const found = await Promise.all(
        ids.map(async id => {
          try {
            return id.length <= longestName ? await read(id) : undefined
          } catch (error) {
            if (error instanceof DamagedRecordError) return undefined
            throw error
          }
        }),
      )
      all.push(...found.flatMap(value => value ?? []))
      if (ids.length < idsPerCommand) return all
    }
  }
  /** False when there is no such record. Records are never deleted, so checking before the change is enough. */
  const change = async (name: string, fields: Fields) => {
    if ((await redis.exists(name)) === 0) return false
    if (Object.keys(fields).length > 0) await redis.hset(name, fields)
    return true
  }

  return {
    // The record, then the pointers, then the list: a crash in between leaves an unlisted key that was never shown, not a
    // listed key that fails.
    addKey: record =>
      attempt(async () => {
        const { externalId } = record
        let there = externalId === null ? undefined : await readByExternalId(externalId)
        if (!there) {
          await writeKey(redis, names, record)
          there = externalId === null ? undefined : await claim(record, externalId)
          if (there) await removeKey(redis, names, record)
        }
        // The process that stored it may have ended before it was listed.
        await enlist(there ?? record)
        return there
      }),
    findKey: id => attempt(() => readKey(id)),
    findByExternalId: externalId => attempt(() => readByExternalId(externalId)),
    findByHash: hash =>
      attempt(async () => {
        const id = await pointedAt('key', names.keyOfHash(hash))
        const found = id === undefined ? undefined : await readKey(id)
        const validUntil =
          found?.hash === hash ? null : found?.formers.find(former => former.hash === hash)?.validUntil
        if (!found || validUntil === undefined) return undefined
        const subscriber = await readSubscriber(found.subscriberId)
        return subscriber && { key: found, subscriber, validUntil }
      }),
    listKeys: (from, count) => attempt(() => readAll(names.keys, readKey, from, count)),
    countKeys: () => attempt(() => redis.zcard(names.keys)),
    changeKey: (id, { tier, limit, revokedAt, expiresAt }) =>
      attempt(() =>
        change(names.key(id), {
          ...(tier === undefined ? {} : { tier }),
          ...(limit === undefined ? {} : { limit: fieldOf(limit) }),
          ...(revokedAt === undefined ? {} : { revokedAt: fieldOf(revokedAt) }),
          ...(expiresAt === undefined ? {} : { expiresAt: fieldOf(expiresAt) }),
        }),
      ),
    replaceHash: (id, hash, formerValidUntil) =>
      attempt(async () => {
        if ((await redis.exists(names.key(id))) === 0) return false
        // The pointer first: until the record has the hash too, look-ups ignore the pointer.
        await redis.set(names.keyOfHash(hash), id)
        return (await redis.abohawaReplaceHash(names.key(id), hash, formerValidUntil)) === 1
      }),
    ensureSubscriber: subscriber =>
      attempt(async () => {
        const { id, name, createdAt, revokedAt } = subscriber
        const nameKey = names.subscriberOfName(name)
        const taken = await pointedAt('subscriber', nameKey)
        if (taken !== undefined) return (await readSubscriber(taken)) ?? subscriber
        // The record first, then the name; the loser of a race for the name deletes its own record.
        await redis.hset(names.subscriber(id), { name, createdAt, revokedAt: revokedAt ?? '' })
        if ((await redis.setnx(nameKey, id)) === 1) {
          await redis.zadd(names.subscribers, String(createdAt), id)
          return subscriber
        }
        await redis.del(names.subscriber(id))
        return (await readSubscriber((await pointedAt('subscriber', nameKey)) ?? '')) ?? subscriber
      }),
    findSubscriber: idOrName =>
      attempt(async () => {
        const byId = await readSubscriber(idOrName)
        if (byId) return byId
        const id = await pointedAt('subscriber', names.subscriberOfName(idOrName))
        return id === undefined ? undefined : readSubscriber(id)
      }),
    listSubscribers: () => attempt(() => readAll(names.subscribers, readSubscriber)),
    setSubscriberRevoked: (id, at) => attempt(() => change(names.subscriber(id), { revokedAt: fieldOf(at) })),
  }
}

const writeKey = async (redis: RedisClient, names: RedisKeyNames, record: KeyRecord): Promise<void> => {
  const { id, subscriberId, tier, hash, limit, createdAt, revokedAt, expiresAt, externalId, formers } = record
  await redis.hset(names.key(id), {
    hash,
    subscriberId,
    tier,
    limit: fieldOf(limit),
    createdAt,
    revokedAt: fieldOf(revokedAt),
    // In the form of a former version, where there is nothing to add.
    ...(expiresAt === null ? {} : { expiresAt }),
    ...(externalId === null ? {} : { externalId }),
    ...Object.fromEntries(formers.map(({ hash, validUntil }) => [`former:${hash}`, validUntil])),
  })
  for (const known of hashesOf(record)) await redis.set(names.keyOfHash(known), id)
}

const removeKey = async (redis: RedisClient, names: RedisKeyNames, record: KeyRecord): Promise<void> => {
  for (const known of hashesOf(record)) await redis.del(names.keyOfHash(known))
  await redis.del(names.key(record.id))
}

const hashesOf = ({ hash, formers }: KeyRecord): string[] => [hash, ...formers.map(former => former.hash)]

type Fields = Record<string, string>

// Null is an empty field: a Redis hash holds strings only.
const fieldOf = (value: number | null): string => String(value ?? '')

/** @param refused gets each fault of a field that is left out. @throws DamagedRecordError */
const keyOf = (id: string, pairs: readonly Pair[], refused: (fault: string) => void): KeyRecord => {
  const fields: Record<string, string> = {}
  const formers: FormerHash[] = []
  for (const [field, value] of pairs) {
    const validUntil = instantIn(value)
    if (!field.startsWith('former:')) fields[field] = value
    else if (validUntil !== undefined) formers.push({ hash: field.slice('former:'.length), validUntil })
    else refused(`its field "${shown(field)}" is "${shown(value)}"`)
  }
  return keyRecordOf(id, fields, formers)
}
