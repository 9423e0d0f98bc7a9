// A server of Redis, as each connection to one meets it: its options, scripts and their common Lua, its replies, and why it can't be
// used, in the words of an operator.

import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { messageOf } from '../../common/errors.ts'
import { safeText } from '../../common/outside-text.ts'

export type RedisClient = Redis | Cluster

/** The options of the connection to each server. */
export type ServerOptions = Pick<
  RedisOptions,
  | 'connectTimeout'
  | 'commandTimeout'
  | 'socketTimeout'
  | 'disableClientInfo'
  | 'maxLoadingRetryTime'
  | 'tls'
  | 'username'
  | 'password'
  | 'family'
>

/** The address of a server, as in the slot map of a cluster. */
export const addressOf = ({ options }: Redis): string => `${options.host}:${options.port}`

/**
 * Makes a client send the commands of one turn of the event loop in one write. ioredis's own pipelines do that too, for twice the
 * processor time of each command, and their objects live long enough to be collected as old ones. A command that was given up
 * before it could be sent stays unsent.
 */
export const withOneWrite = (redis: Redis): Redis => {
  const send = redis.sendCommand.bind(redis)
  redis.sendCommand = (...given) => {
    const [command] = given
    // Its caller has given it up while it waited for a node of a cluster to be ready. Run now, it would count what is counted again.
    if (command.isSettled) return command.promise
    const { stream } = redis
    // Before there is a connection there is no stream.
    if (stream?.writable && stream.writableCorked === 0) {
      stream.cork()
      setImmediate(() => stream.uncork())
    }
    return send(...given)
  }
  return redis
}

/** Sends the commands of this turn now: a request that waits for one would pay another turn. Does nothing on a cluster. */
export const sendNow = (redis: Redis | Cluster): void => {
  if ('stream' in redis) redis.stream?.uncork()
}

export const noConnection = 'there is no connection to it'

/**
 * The client library's reasons name its own options and timers.
 * @param commandTimeoutMs how long a command waits for its reply
 */
export const redisReason = (thrown: unknown, commandTimeoutMs: number): string => {
  // When no address of a host name can be reached, the error itself has no message.
  if (thrown instanceof AggregateError) return redisReason(thrown.errors[0], commandTimeoutMs)
  const reason = messageOf(thrown)
  if (reason === 'Command timed out') return `it did not answer within ${commandTimeoutMs} ms`
  const [, silentMs] =
    /^Socket timeout\. Expecting data, but didn't receive any in (\d+)ms\.$/.exec(reason) ?? []
  if (silentMs !== undefined) return `it did not answer within ${silentMs} ms`
  if (reason.startsWith("Stream isn't writeable") || reason === 'Connection is closed.') return noConnection
  if (reason.startsWith('WRONGTYPE'))
    return `WRONGTYPE: ${recordsIn(thrown)} has a type that no gateway writes`
  return reason.startsWith('NOAUTH') ? 'NOAUTH: it asks for a password, and the URL has none' : reason
}

/** The names that a failed command was about; a script declares how many it has. */
const recordsIn = (thrown: unknown): string => {
  const { command } = thrown as { command?: { name: string; args: readonly unknown[] } }
  const args = command?.args ?? []
  const names = command?.name.startsWith('eval') ? args.slice(2, 2 + Number(args[1])) : args.slice(0, 1)
  return names.length === 0 ? 'a record' : names.map(name => safeText(String(name), 200)).join(' or ')
}

/** The fields of an INFO reply. */
export type RedisInfo = ReadonlyMap<string, string>

export const infoOf = (text: string): RedisInfo =>
  new Map(
    text
      .split('\r\n')
      .filter(line => /^\w+:/.test(line))
      .map(line => [line.slice(0, line.indexOf(':')), safeText(line.slice(line.indexOf(':') + 1), 100)]),
  )

/** Whether a maxmemory-policy lets Redis evict records that never expire, as API keys. */
export const evictsKeys = (policy: string): boolean => policy.startsWith('allkeys')

/** Such as `Redis 8.0.1` or `Valkey 8.1.0`. */
export const serverName = (info: RedisInfo): string => {
  const valkey = info.get('valkey_version')
  return valkey === undefined ? `Redis ${info.get('redis_version') ?? 'unknown'}` : `Valkey ${valkey}`
}

/** Called when the connection is lost, with the reason; again for each new error reply; and once on recovery. */
export type OutageObserver = { redisAway(reason: string): void; redisBack(): void }

/** Reports an outage to an observer, once for each reason. */
export const outageReporter = ({ redisAway, redisBack }: OutageObserver) => {
  const reported = new Set<string>()
  return {
    isAway: (): boolean => reported.size > 0,
    away: (reason: string): void => {
      if (reported.has(reason)) return
      reported.add(reason)
      redisAway(reason)
    },
    back: (): void => {
      if (reported.size === 0) return
      reported.clear()
      redisBack()
    },
  }
}

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
