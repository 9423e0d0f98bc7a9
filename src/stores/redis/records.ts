// Runs scripts in Redis, with the Lua and the readers of replies that they share.

import type { RedisClient } from './connection.ts'

export const namesLua = `
local call, pcall, find, floor, text = redis.call, redis.pcall, string.find, math.floor, string.format
`

/**
 * The head of a script, with functions. `whole` parses a text of up to 15 digits; it returns nil for any other text, nil or false.
 * `isOtherType` is true for a WRONGTYPE reply; any other error must be returned.
 */
export const recordsLua = `${namesLua}
local function whole(value)
  if value and value ~= '' and #value <= 15 and not find(value, '%D') then return tonumber(value) end
end
local function isOtherType(reply) return find(reply.err, 'WRONGTYPE', 1, true) ~= nil end
`

type Script<Reply> = (...keysAndValues: (string | number | Buffer)[]) => Promise<Reply>

/**
 * A script as a function of its keys and arguments. Redis keeps the script, and gets its text again when it has lost it.
 * @param numberOfKeys of every call; if undefined, the first argument of a call
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

/** The clock of Redis, ms since the epoch with fractions. */
export const redisTime = async (redis: RedisClient): Promise<number> => {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** Field and value by turns as pairs. */
export const pairsOf = (flat: readonly string[]): [field: string, value: string][] =>
  Array.from({ length: Math.floor(flat.length / 2) }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? ''])
