// Checks of Redis: reachable, its version, memory policy and persistence by INFO; the user's rights by running every command
// that the store needs on keys of its own; latency, clock, and the state of a cluster or of replicas. Longer than 300 lines,
// because it is a list of checks.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type Clock, clockToleranceMs } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { InputError, messageOf } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import { connect, listenerOn, ping, type RedisClient } from '../stores/redis/connection.ts'
import { infoOf, type RedisInfo, serverName } from '../stores/redis/info.ts'
import type { RedisOptions } from '../stores/redis/place.ts'
import { checkRedisFormat } from '../stores/redis/redis-store.ts'
import { type Check, fail, ok, skip, warn } from './check.ts'

// The check of latency reports a slow Redis; the first late command must not.
const leastTimeoutMs = 5_000

export const redisChecks = async (
  { redis: settings }: Pick<Config, 'redis'>,
  clock: Clock,
): Promise<readonly Check[]> => {
  const { url, mode } = settings
  if (url === null) return []
  let redis: RedisClient
  try {
    const commandTimeoutMs = Math.max(settings.commandTimeoutMs, leastTimeoutMs)
    redis = await connect(
      { ...settings, url, commandTimeoutMs },
      { redisAway: () => {}, redisBack: () => {} },
    )
  } catch (error) {
    return [fail('redis', messageOf(error), fixFor(messageOf(error)))]
  }
  try {
    // First and all at once: a right that is missing fails the other checks too.
    const rights = await rightsCheck(redis, settings.prefix, url)
    const attempt = async (name: string, look: () => Promise<Check> | Check): Promise<Check> => {
      try {
        return await look()
      } catch (error) {
        // A lost connection is for the caller.
        if (rights.status === 'ok') throw error
        return skip(name, safeText(messageOf(error), 200))
      }
    }
    const info = await redis.info().catch((error: unknown) => {
      if (rights.status === 'ok') throw error
      return undefined
    })
    const ofInfo = (name: string, look: (info: RedisInfo) => Promise<Check> | Check) =>
      info === undefined
        ? skip(name, 'not known: the user may not INFO')
        : attempt(name, () => look(infoOf(info)))
    return [
      ok('redis', `${new URL(url).host} answers (${mode})`),
      await ofInfo('redis version', versionCheck),
      await formatCheck(redis, { ...settings, url }),
      await ofInfo('redis memory', memoryCheck),
      await ofInfo('redis persistence', persistenceCheck),
      rights,
      await attempt('redis latency', () => measureLatency(redis, settings.commandTimeoutMs)),
      await attempt('redis clock', () => measureClock(redis, clock)),
      await ofInfo('redis role', found => replicationCheck(redis, found, mode)),
    ]
  } catch (error) {
    return [
      fail(
        'redis',
        messageOf(error),
        'Check the log of Redis, and the rights of the user (docs/operating/redis.md#the-user).',
      ),
    ]
  } finally {
    redis.disconnect()
  }
}

const fixes: readonly (readonly [reason: RegExp, fix: string])[] = [
  [
    /WRONGPASS|NOAUTH|invalid (username|password)|no password is set/i,
    'Correct the user and the password in redis.url (with @ / ? # written as %40 %2F %3F %23).',
  ],
  [
    /NOPERM/,
    'Give the user all of the rights at once that docs/operating/redis.md#the-user lists: ACL SETUSER … by an administrator of Redis.',
  ],
  [/LOADING/, 'Wait until Redis has read its file, and run this again.'],
  [
    /timed? ?out|timeout|did not answer/i,
    'Redis, or a proxy in front of it, takes no commands: check whether its process is stopped or busy (ps, redis-cli ping), and check the firewall.',
  ],
  [/certificate|self-signed|issuer/i, 'Name the authority of the certificate of Redis in redis.ca.'],
  [/ENOTFOUND|EAI_AGAIN/, 'Correct the host in redis.url, or check the name server.'],
]

/** The fixes for a Redis that can't be used, by the reason. */
const fixFor = (reason: string): string =>
  fixes.find(([of]) => of.test(reason))?.[1] ?? 'Start Redis there, or correct redis.url.'

const formatCheck = async (redis: RedisClient, options: RedisOptions): Promise<Check> => {
  try {
    await checkRedisFormat(redis, options)
    return ok('redis format', 'this version can work on the store')
  } catch (error) {
    // Another check reports what the user may not do.
    if (!(error instanceof InputError)) return skip('redis format', messageOf(error))
    return fail(
      'redis format',
      messageOf(error),
      'Start the version that wrote it, or restore the copy from before it (docs/operating/install.md).',
    )
  }
}

const leastVersion = 7

export const versionCheck = (info: RedisInfo): Check => {
  const shown = serverName(info)
  return Number.parseInt(shown.replace(/^\w+ /, ''), 10) >= leastVersion
    ? ok('redis version', shown)
    : fail(
        'redis version',
        `${shown}, which is too old`,
        `Upgrade to Redis ${leastVersion}.0 or newer, or Valkey.`,
      )
}

const nearlyFull = 0.9

export const memoryCheck = (info: RedisInfo): Check => {
  const name = 'redis memory'
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const [most, used] = [Number(info.get('maxmemory')), Number(info.get('used_memory'))]
  const bound = most > 0 ? `maxmemory ${mebibytes(most)}, ${mebibytes(used)} used` : 'no maxmemory'
  const detail = `maxmemory-policy ${policy}, ${bound}`
  if (policy.startsWith('allkeys'))
    return fail(name, `${detail}: API keys would be thrown away`, 'CONFIG SET maxmemory-policy noeviction')
  if (policy === 'volatile-ttl' || policy === 'volatile-random')
    return warn(name, `${detail}: counts in use may be thrown away`, 'CONFIG SET maxmemory-policy noeviction')
  if (most > 0 && used > nearlyFull * most)
    return warn(name, `${detail}: it is nearly full`, 'Give Redis more maxmemory.')
  return ok(name, detail)
}

export const persistenceCheck = (info: RedisInfo): Check => {
  const name = 'redis persistence'
  const fix = 'Check the disk of Redis and its log.'
  const hasFile = info.get('aof_enabled') === '1'
  if (hasFile && info.get('aof_last_write_status') === 'err')
    return fail(name, 'the last write of the append-only file failed', fix)
  if (info.get('rdb_last_bgsave_status') === 'err') return fail(name, 'the last snapshot failed', fix)
  return hasFile
    ? ok(name, 'appendonly yes')
    : warn(
        name,
        'appendonly no: after a crash keys and counts are as of the last snapshot, if there is one',
        'CONFIG SET appendonly yes, and the same in its file.',
      )
}

/** Every command that the store needs, on keys of its own that expire. */
const trials = (key: (part: string) => string): [command: string, ...args: (string | number)[]][] => {
  const [text, hash, set, lua] = ['text', 'hash', 'set', 'lua'].map(key) as [string, string, string, string]
  return [
    ['set', text, '1', 'PX', 60_000],
    ['get', text],
    ['getrange', text, 0, 1],
    ['exists', text],
    ['pexpire', text, 60_000],
    ['pexpireat', text, 4_102_444_800_000],
    ['pttl', text],
    ['hset', hash, 'a', '1'],
    ['hget', hash, 'a'],
    ['hmget', hash, 'a'],
    ['hlen', hash],
    ['hgetall', hash],
    ['hdel', hash, 'a'],
    ['zadd', set, 1, 'a'],
    ['zcard', set],
    ['zrange', set, 0, -1],
    ['zrangebyscore', set, 0, 1],
    ['zrevrangebyscore', set, 1, 0],
    ['zremrangebyscore', set, 2, 3],
    ['zremrangebyrank', set, 2, 3],
    ['zrem', set, 'a'],
    ['eval', 'return 1', 1, lua],
    ['evalsha', '0'.repeat(40), 1, lua],
    ['time'],
    ['ping'],
    ['info', 'server'],
    ['publish', key('channel'), ''],
    ['del', text],
    ['unlink', text, hash, set],
  ]
}

const rightsCheck = async (redis: RedisClient, prefix: string, url: string): Promise<Check> => {
  const name = 'redis rights'
  const user = new URL(url).username || 'default'
  // One slot of a cluster, and no name that the store has.
  const tag = randomUUID()
  const key = (part: string): string => `${prefix}doctor:{${tag}}:${part}`
  const missing: string[] = []
  let otherFault: string | undefined
  const note = (command: string, fault: string | undefined): void => {
    if (fault === undefined || fault.startsWith('NOSCRIPT')) return
    if (fault.startsWith('NOPERM') && /key|channel/.test(fault) && !/to run/.test(fault))
      otherFault ??= `the user ${user} may not use ${/channel/.test(fault) ? `the channels ${prefix}*` : `the keys ${prefix}*`}`
    else if (fault.startsWith('NOPERM')) missing.push(`+${command}`)
    else otherFault ??= `${command} failed: ${safeText(fault, 200)}`
  }
  for (const [command, ...args] of trials(key))
    note(command, await faultOf(() => redis.call(command, ...args)))
  const listener = listenerOn(redis)
  listener?.on('error', () => {})
  const fault = await faultOf(async () => {
    if (!listener) return
    await once(listener, 'ready')
    await listener.subscribe(key('channel'))
  })
  note('subscribe', fault)
  listener?.disconnect()
  if (missing.length > 0)
    return fail(
      name,
      `the user ${safeText(user, 60)} may not ${missing.map(each => each.slice(1)).join(', ')}`,
      `ACL SETUSER ${safeText(user, 60)} ${missing.join(' ')}`,
    )
  if (otherFault === undefined)
    return ok(name, `the user ${safeText(user, 60)} may run every command that is needed`)
  const fix = otherFault.startsWith('the user')
    ? `ACL SETUSER ${safeText(user, 60)} ~${prefix}* &${prefix}*`
    : 'Check the log of Redis and its limits: CLIENT LIST, CONFIG GET maxclients.'
  return fail(name, otherFault, fix)
}

const faultOf = async (step: () => Promise<unknown>): Promise<string | undefined> => {
  try {
    await step()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

const pings = 20
const slowMs = 10

const measureLatency = async (redis: RedisClient, timeoutMs: number): Promise<Check> => {
  const times: number[] = []
  for (let i = 0; i < pings; i += 1) {
    const began = performance.now()
    await redis.ping()
    times.push(performance.now() - began)
  }
  return latencyCheck(times, timeoutMs)
}

/** @param times of pings, in ms */
export const latencyCheck = (times: readonly number[], timeoutMs: number): Check => {
  const name = 'redis latency'
  const sorted = times.toSorted((a, b) => a - b)
  const [middle, most] = [sorted[sorted.length >> 1] ?? 0, sorted.at(-1) ?? 0]
  const detail = `p50 ${middle.toFixed(1)} ms, max ${most.toFixed(1)} ms of ${times.length} pings`
  if (most > timeoutMs / 2)
    return fail(
      name,
      `${detail}; redis.commandTimeout is ${timeoutMs} ms`,
      'Bring Redis nearer, or set a longer redis.commandTimeout.',
    )
  return middle > slowMs
    ? warn(name, `${detail}; every request waits for one`, 'Run Redis in the network of the gateway.')
    : ok(name, detail)
}

const measureClock = async (redis: RedisClient, clock: Clock): Promise<Check> => {
  const before = clock.now()
  const [seconds, micros] = (await redis.time()) as [number | string, number | string]
  const there = Number(seconds) * 1000 + Number(micros) / 1000
  return clockCheck('redis clock', 'Redis', there - (before + clock.now()) / 2)
}

const noticedMs = 1_000

/** @param aheadMs by how much the other clock is ahead of this machine's */
export const clockCheck = (name: string, whose: string, aheadMs: number, noticed = noticedMs): Check => {
  const away = Math.abs(aheadMs)
  const detail = `that of ${whose} is ${(away / 1000).toFixed(1)} s ${aheadMs < 0 ? 'behind' : 'ahead'}`
  const fix = 'Keep both clocks right with NTP (chrony, systemd-timesyncd).'
  if (away >= clockToleranceMs) return fail(name, detail, fix)
  return away >= noticed ? warn(name, detail, fix) : ok(name, `within ${noticed / 1000} s of ${whose}`)
}

const replicationCheck = async (
  redis: RedisClient,
  info: RedisInfo,
  mode: Config['redis']['mode'],
): Promise<Check> => {
  if (mode === 'cluster') {
    const fault = await faultOf(() => ping(redis))
    return fault === undefined
      ? ok('redis cluster', 'every master answers, cluster_state is ok')
      : fail('redis cluster', safeText(fault, 200), 'Check CLUSTER INFO and CLUSTER NODES of that node.')
  }
  return roleCheck(info, mode)
}

export const roleCheck = (info: RedisInfo, mode: 'single' | 'sentinel'): Check => {
  const name = 'redis role'
  const role = info.get('role') ?? 'unknown'
  if (role !== 'master')
    return fail(
      name,
      `it is a ${role === 'slave' ? 'replica, which takes no writes' : role}`,
      'Name the master in redis.url, or use redis.mode: sentinel.',
    )
  const replicas = Number(info.get('connected_slaves') ?? 0)
  return mode === 'sentinel' && replicas === 0
    ? warn(name, 'the master has no replica, so nothing can take over', 'Start a replica of it.')
    : ok(name, `master with ${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`)
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1_048_576).toLocaleString('en-US')} MiB`
