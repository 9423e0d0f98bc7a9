// Reads records from a Redis with arbitrary content: one rule for whole numbers in every script, bounded hashes, and a reset
// of records with another Redis type. The validation of a record's fields is in records.ts.

import { longestHash, maxFields, type RecordKind, type RecordObserver } from '../records.ts'
import type { RedisClient } from './connection.ts'

/** Lua for the head of a script. */
export const namesLua = `
local call, pcall, find, floor, text = redis.call, redis.pcall, string.find, math.floor, string.format
`

/**
 * Lua after that. `whole` parses a text of up to 15 digits; it returns nil for any other text, nil or false. `isOtherType`
 * is true for a WRONGTYPE reply; any other error must be returned.
 */
const functionsLua = `
local function whole(value)
  if value and value ~= '' and #value <= 15 and not find(value, '%D') then return tonumber(value) end
end
local function isOtherType(reply) return find(reply.err, 'WRONGTYPE', 1, true) ~= nil end
`

/** Both. */
export const recordsLua = namesLua + functionsLua

// KEYS: the hash. ARGV: the most fields, and the most characters of all. Returns its fields and values, or what is wrong.
const readHashScript = `${recordsLua}
local size = pcall('HLEN', KEYS[1])
if type(size) == 'table' then
  if isOtherType(size) then return 'it is of another type' end
  return size
end
if size > tonumber(ARGV[1]) then return text('it has %d fields', size) end
local fields, length = call('HGETALL', KEYS[1]), 0
for i = 1, #fields do length = length + #fields[i] end
if length > tonumber(ARGV[2]) then return text('it has %d characters', length) end
return fields`

// KEYS: the hash. ARGV: the field, and the most characters of its value. Returns the value in a list, or what is wrong.
const readFieldScript = `${recordsLua}
local found = pcall('HGET', KEYS[1], ARGV[1])
if type(found) == 'table' then
  if isOtherType(found) then return 'it is of another type' end
  return found
end
if found and #found > tonumber(ARGV[2]) then return text('it has %d characters', #found) end
return { found or '' }`

type Script<Reply> = (...keysAndValues: (string | number | Buffer)[]) => Promise<Reply>

/**
 * A script as a function of its keys and arguments. Redis keeps the script, and gets its text anew where it has lost it.
 * @param numberOfKeys that of every call; where it is undefined, the first argument says it
 */
export const scriptOn = <Reply>(
  redis: RedisClient,
  name: string,
  numberOfKeys: number | undefined,
  lua: string,
): Script<Reply> => {
  redis.defineCommand(name, { lua, ...(numberOfKeys !== undefined && { numberOfKeys }) })
  return (redis as unknown as Record<string, Script<Reply>>)[name]?.bind(redis) as Script<Reply>
}

/** Whether a command failed because the record has another Redis type. */
export const isWrongType = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('WRONGTYPE')

/** Reads hashes: fields and values in turn, or a sentence with the reason why the hash is refused. */
export const hashReader = (redis: RedisClient): ((name: string) => Promise<string[] | string>) => {
  const read = scriptOn<string[] | string>(redis, 'abohawaReadHash', 1, readHashScript)
  return name => read(name, maxFields, longestHash)
}

/** Reads a field of a hash, empty where there is none; or a sentence in a list, with the reason why it is refused. */
export const fieldReader = (
  redis: RedisClient,
): ((name: string, field: string, longest: number) => Promise<string | [fault: string]>) => {
  const read = scriptOn<[string] | string>(redis, 'abohawaReadField', 1, readFieldScript)
  return async (name, field, longest) => {
    const found = await read(name, field, longest)
    return typeof found === 'string' ? [found] : found[0]
  }
}

/** Field and value by turns as pairs. */
export const pairsOf = (flat: readonly string[]): [field: string, value: string][] =>
  Array.from({ length: Math.floor(flat.length / 2) }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? ''])

/** Runs a step on a record that can be reset: one of another Redis type is removed first, once, and reported. */
export const onOwnType =
  (redis: RedisClient, observer: Pick<RecordObserver, 'recordRefused'>) =>
  async <Value>(record: RecordKind, name: string, step: () => Promise<Value>): Promise<Value> => {
    try {
      return await step()
    } catch (error) {
      if (!isWrongType(error)) throw error
      await redis.unlink(name)
      observer.recordRefused({ record, name, fault: 'it was of another type of Redis, and was reset' })
      return step()
    }
  }
