// API keys and subscribers in Redis. `key:<id>` is the record of a key with its hashes; `key-of:<hash>` and `external-id:<id>` point to the
// id. Only the record decides whether a hash is valid, so each change of a key is one step on one slot, and a pointer whose record is
// missing or lacks the hash is ignored. A record that a failover lost, or that can't be read, is replaced when it is stored again.

import { hashesOf, keyRecordIn, nameIn, refuseRecord, subscriberIn, validUntilOf } from '../records.ts'
import type { KeyChange, KeyRecord, KeyStore, Subscriber, SubscriberStore } from '../store.ts'
import type { RedisParts } from './connection.ts'
import { isWrongType, scriptOn } from './server.ts'

// Previous hashes are fields `former:<hash>` of the record; none is valid longer than the one replaced last.
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

// Points an external id or a name at an id unless it points at another one. ARGV: the id, and the one that it may replace.
// Returns the id that it points at then.
const claimScript = `
local held = redis.call('GETRANGE', KEYS[1], 0, -1)
if held ~= '' and held ~= ARGV[2] then return held end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]`

// Writes a record. ARGV: 1 to replace whatever is there, 0 to leave it; its fields and values in turn.
const writeScript = `
if table.remove(ARGV, 1) == '1' then
  redis.call('UNLINK', KEYS[1])
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return
end
redis.call('HSET', KEYS[1], unpack(ARGV))`

type Pair = readonly [field: string, value: string]

const previousMark = 'former:'
const isPrevious = ([field]: Pair): boolean => field.startsWith(previousMark)

// Their records are read together, and a thousand would block the event loop for long.
const idsPerCommand = 200

/** Reads records of keys and subscribers, each checked by itself. */
const recordReaders = ({ redis, names, observer }: RedisParts) => {
  type Kind = 'key' | 'subscriber'
  /** Undefined for a record of another type, which counts as not there. */
  const ofOwnType = async <Value>(kind: Kind, name: string, reading: Promise<Value>) => {
    try {
      return await reading
    } catch (error) {
      if (!isWrongType(error)) throw error
      return refuseRecord(observer, kind, name, 'it has another Redis type')
    }
  }
  /** The fields of a record; undefined where there are none. @param isNamed by another record, so that it must be there */
  const fieldsAt = async (kind: Kind, id: string, isNamed: boolean): Promise<Pair[] | undefined> => {
    const found = await ofOwnType(kind, id, redis.hgetall(names[kind](id)))
    const pairs = Object.entries(found ?? {})
    if (pairs.length > 0) return pairs
    return found && isNamed ? refuseRecord(observer, kind, id, 'it is missing') : undefined
  }
  const readKey = async (id: string, isNamed = false): Promise<KeyRecord | undefined> => {
    const pairs = await fieldsAt('key', id, isNamed)
    if (!pairs) return undefined
    const previousHashes = pairs
      .filter(isPrevious)
      .map(([field, validUntil]) => ({ hash: field.slice(previousMark.length), validUntil }))
    const others = Object.fromEntries(pairs.filter(pair => !isPrevious(pair)))
    return keyRecordIn({ ...others, id, previousHashes }, observer)
  }
  const readSubscriber = async (id: string, isNamed = false): Promise<Subscriber | undefined> => {
    const pairs = await fieldsAt('subscriber', id, isNamed)
    return pairs && subscriberIn({ ...Object.fromEntries(pairs), id }, observer)
  }
  /** The id that a pointer holds. */
  const pointedAt = async (kind: Kind, name: string): Promise<string | undefined> =>
    (await ofOwnType(kind, name, redis.getrange(name, 0, -1))) || undefined
  const fieldAt = async (kind: Kind, id: string, field: string): Promise<string> =>
    (await ofOwnType(kind, id, redis.hget(names[kind](id), field))) ?? ''
  return { readKey, readSubscriber, pointedAt, fieldAt }
}

/** How records of keys and subscribers are read, written and listed. */
const recordsOn = (parts: RedisParts) => {
  const { redis } = parts
  return {
    ...recordReaders(parts),
    claim: scriptOn<string>(redis, 'abohawaClaim', 1, claimScript),
    write: scriptOn<null>(redis, 'abohawaWrite', 1, writeScript),
    /** All listed records; leaves damaged ones out. */
    readAll: async <Value>(
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
        const found = await Promise.all(ids.map(read))
        all.push(...found.flatMap(value => value ?? []))
        if (ids.length < idsPerCommand) return all
      }
    },
    /** False when there is no such record. Records are never deleted, so checking before the change is enough. */
    change: async (name: string, changed: KeyChange): Promise<boolean> => {
      if ((await redis.exists(name)) === 0) return false
      const fields = Object.entries(changed).map(([field, value]) => [field, fieldOf(value)])
      if (fields.length > 0) await redis.hset(name, ...fields.flat())
      return true
    },
  }
}
type Records = ReturnType<typeof recordsOn>

export const redisKeys = (parts: RedisParts): KeyStore => {
  const { redis, names } = parts
  const records = recordsOn(parts)
  const { readKey, pointedAt, fieldAt } = records
  const runReplace = scriptOn<number>(redis, 'abohawaReplaceHash', 1, replaceScript)
  /** The key that an external id points at, if the record agrees. */
  const keyAt = async (id: string | undefined, externalId: string): Promise<KeyRecord | undefined> => {
    const key = id === undefined ? undefined : await readKey(id)
    return key?.externalId === externalId ? key : undefined
  }
  const readByExternalId = async (externalId: string): Promise<KeyRecord | undefined> =>
    keyAt(await pointedAt('key', names.keyOfExternalId(externalId)), externalId)
  const removeKey = async (record: KeyRecord): Promise<void> => {
    for (const hash of hashesOf(record)) await redis.del(names.keyOfHash(hash))
    await redis.del(names.key(record.id))
  }
  /** Claims the external id for a written record; the key that has it already, else undefined. */
  const claim = async (record: KeyRecord, externalId: string): Promise<KeyRecord | undefined> => {
    const pointer = names.keyOfExternalId(externalId)
    let held = await records.claim(pointer, record.id, '')
    while (held !== record.id) {
      const there = await keyAt(held, externalId)
      if (there) return there
      // A failover may have lost the record that it points at.
      held = await records.claim(pointer, record.id, held)
    }
    return undefined
  }

  return {
    ...redisSubscribers(parts, records),
    // The record, then the pointers, then the list: a crash in between leaves an unlisted key, not a listed key that fails. Each is
    // written where it is missing, also of a key that is there.
    addKey: async record => {
      const { id, externalId } = record
      const there =
        (externalId === null ? undefined : await readByExternalId(externalId)) ?? (await readKey(id))
      let holder = there
      if (there === undefined || there.id === id) {
        if (!there) await records.write(names.key(id), 1, ...Object.entries(fieldsOf(record)).flat())
        for (const hash of hashesOf(there ?? record)) await redis.set(names.keyOfHash(hash), id)
        holder = (externalId === null ? undefined : await claim(record, externalId)) ?? there
        if (!there && holder) await removeKey(record)
      }
      // The process that stored it may have ended before it was listed.
      const listed = holder ?? record
      await redis.zadd(names.keys, String(listed.createdAt), listed.id)
      return holder
    },
    findKey: id => readKey(id),
    findByExternalId: readByExternalId,
    findByHash: async hash => {
      const id = await pointedAt('key', names.keyOfHash(hash))
      const key = id === undefined ? undefined : await readKey(id, true)
      const validUntil = key && validUntilOf(key, hash)
      if (!key || validUntil === undefined) return undefined
      const subscriber = await records.readSubscriber(key.subscriberId, true)
      return subscriber && { key, subscriber, validUntil }
    },
    listKeys: (from, count) => records.readAll(names.keys, id => readKey(id), from, count),
    keysWithSubscribers: async (from = 0) => {
      const ids = await redis.zrange(names.keys, String(from), String(from + idsPerCommand - 1))
      const holders = await Promise.all(ids.map(id => fieldAt('key', id, 'subscriberId')))
      const nameOf = new Map<string, Promise<string>>()
      const keys = ids.map(async (id, i) => {
        const holder = holders[i] ?? ''
        const name = nameOf.getOrInsertComputed(holder, () => fieldAt('subscriber', holder, 'name'))
        return { id, subscriberId: holder, subscriber: nameIn(await name) }
      })
      const next = ids.length < idsPerCommand ? null : from + idsPerCommand
      return { keys: await Promise.all(keys), next }
    },
    countKeys: () => redis.zcard(names.keys),
    changeKey: (id, given) => records.change(names.key(id), given),
    replaceHash: async (id, hash, previousValidUntil) => {
      if ((await redis.exists(names.key(id))) === 0) return false
      // The pointer first: until the record has the hash too, look-ups ignore the pointer.
      await redis.set(names.keyOfHash(hash), id)
      return (await runReplace(names.key(id), hash, previousValidUntil)) === 1
    },
  }
}

const redisSubscribers = ({ redis, names }: RedisParts, records: Records): SubscriberStore => {
  const { readSubscriber, pointedAt, claim, write } = records
  const idOf = (name: string) => pointedAt('subscriber', names.subscriberOfName(name))
  return {
    // A name keeps its id, so that the keys of a subscriber whose record was lost are valid again.
    ensureSubscriber: async subscriber => {
      const { name, createdAt, revokedAt } = subscriber
      const id = (await idOf(name)) ?? (await claim(names.subscriberOfName(name), subscriber.id, ''))
      const fields = Object.entries({ name, createdAt, revokedAt: fieldOf(revokedAt) }).flat()
      await write(names.subscriber(id), 0, ...fields)
      let there = await readSubscriber(id)
      if (!there) {
        await write(names.subscriber(id), 1, ...fields)
        there = { ...subscriber, id }
      }
      await redis.zadd(names.subscribers, String(there.createdAt), id)
      return there
    },
    findSubscriber: async idOrName => {
      const byId = await readSubscriber(idOrName)
      if (byId) return byId
      const id = await idOf(idOrName)
      return id === undefined ? undefined : readSubscriber(id)
    },
    findSubscriberId: idOf,
    listSubscribers: () => records.readAll(names.subscribers, id => readSubscriber(id)),
    setSubscriberRevoked: (id, at) => records.change(names.subscriber(id), { revokedAt: at }),
  }
}

const fieldsOf = ({ id: _, previousHashes, ...record }: KeyRecord): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(record).map(([field, value]) => [field, fieldOf(value)])),
  ...Object.fromEntries(
    previousHashes.map(({ hash, validUntil }) => [previousMark + hash, fieldOf(validUntil)]),
  ),
})

// Null is an empty field: a Redis hash holds strings only.
const fieldOf = (value: string | number | object | null): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '')
