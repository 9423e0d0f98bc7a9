// Checks of Redis: answers, version, format, role, memory policy, persistence, clock, and the user's rights by trying each
// command.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Clock } from '../../common/clock.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { safeText } from '../../common/outside-text.ts'
import type { Config } from '../../config/schema.ts'
import { connect, listenerOn, ping } from '../../stores/redis/connection.ts'
import type { RedisOptions } from '../../stores/redis/place.ts'
import { checkRedisFormat } from '../../stores/redis/redis-store.ts'
import {
  evictsKeys,
  infoOf,
  type RedisClient,
  type RedisInfo,
  serverName,
} from '../../stores/redis/server.ts'
import { type Check, checkOf, type Finding, fail, ok, skip, warn } from './check.ts'
import { type Ahead, aheadOf, clockFinding } from './machine.ts'

// A slow Redis still counts as answering.
const leastTimeoutMs = 5_000

type RedisFound = { readonly checks: readonly Check[]; readonly clock: readonly Finding[] }

/** None without Redis. Never rejects. */
export const redisChecks = async (
  { redis: settings }: Pick<Config, 'redis'>,
  clock: Clock,
): Promise<RedisFound> => {
  const { url, mode, prefix } = settings
  if (url === null) return { checks: [], clock: [] }
  let redis: RedisClient | undefined
  try {
    const commandTimeoutMs = Math.max(settings.commandTimeoutMs, leastTimeoutMs)
    redis = await connect(
      { ...settings, url, urlName: 'redis.url', commandTimeoutMs },
      { redisAway: () => {}, redisBack: () => {} },
    )
    const client = redis
    const rights = await rightsFinding(client, prefix, url)
    // A missing right fails other checks too, and is reported once.
    const unlessRefused = <Found>(look: () => Promise<Found>): Promise<Found | undefined> =>
      look().catch(error => {
        if (rights.status === 'ok') throw error
        return undefined
      })
    const info = await unlessRefused(async () => infoOf(await client.info()))
    const ahead = await unlessRefused(() => redisAhead(client, clock))
    const unknown = [skip('unknown: the user lacks a right')]
    return {
      checks: [
        checkOf('redis', [
          ok(`${new URL(url).host} answers (${mode})`),
          ...(info ? [versionFinding(info)] : unknown),
          await formatFinding(client, { ...settings, url }),
          ...(mode === 'cluster' ? [await clusterFinding(client)] : info ? [roleFinding(info, mode)] : []),
        ]),
        checkOf('redis settings', info ? [memoryFinding(info), persistenceFinding(info)] : unknown),
        checkOf('redis rights', [rights]),
      ],
      clock: ahead === undefined ? unknown : [clockFinding('Redis', ahead)],
    }
  } catch (error) {
    return { checks: [checkOf('redis', [fail(messageOf(error), fixFor(messageOf(error)))])], clock: [] }
  } finally {
    redis?.disconnect()
  }
}

const fixes: readonly (readonly [reason: RegExp, fix: string])[] = [
  [
    /WRONGPASS|NOAUTH|invalid (username|password)|no password is set/i,
    'Correct the user and the password in redis.url (with @ / ? # written as %40 %2F %3F %23).',
  ],
  [
    /NOPERM/,
    'Give the user all rights in docs/operating/redis.md#the-user: an administrator of Redis runs ACL SETUSER ….',
  ],
  [/LOADING/, 'Wait until Redis has read its file, and run this again.'],
  [
    /timed? ?out|timeout|did not answer/i,
    'Redis, or a proxy in front of it, takes no commands: check whether its process is stopped or busy (ps, redis-cli ping), and check the firewall.',
  ],
  [
    /runs in mode|unknown command '(cluster|sentinel)'|cluster support disabled/i,
    'Set redis.mode to how Redis is run there: single, sentinel or cluster.',
  ],
  [/No such master/, 'Correct redis.sentinelMaster: the sentinels watch no master of that name.'],
  [
    /ECONNRESET|ETIMEDOUT|wrong version number/,
    'Where Redis speaks with TLS, redis.url begins with rediss://, else with redis://. Check the firewall too.',
  ],
  [/certificate|self-signed|issuer/i, 'Name the authority of the certificate of Redis in redis.ca.'],
  [/ENOTFOUND|EAI_AGAIN/, 'Correct the host in redis.url, or check the name server.'],
]

const fixFor = (reason: string): string =>
  fixes.find(([of]) => of.test(reason))?.[1] ??
  'Start Redis there, or correct redis.url; its log may say more.'

const formatFinding = async (redis: RedisClient, options: RedisOptions): Promise<Finding> => {
  try {
    await checkRedisFormat(redis, options)
    return ok('this version can work on the store')
  } catch (error) {
    // Another check reports missing rights.
    if (!(error instanceof InputError)) return skip(messageOf(error))
    return fail(
      messageOf(error),
      'Start the version that wrote it, or restore the copy from before it (docs/operating/install.md).',
    )
  }
}

const leastVersion = 7

export const versionFinding = (info: RedisInfo): Finding => {
  const shown = serverName(info)
  return Number.parseInt(shown.replace(/^\w+ /, ''), 10) >= leastVersion
    ? ok(shown)
    : fail(`${shown}, which is too old`, `Upgrade to Redis ${leastVersion}.0 or newer, or Valkey.`)
}

const nearlyFull = 0.9

export const memoryFinding = (info: RedisInfo): Finding => {
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const [most, used] = [Number(info.get('maxmemory')), Number(info.get('used_memory'))]
  const bound = most > 0 ? `maxmemory ${mebibytes(most)}, ${mebibytes(used)} used` : 'no maxmemory'
  const detail = `maxmemory-policy ${policy}, ${bound}`
  const noEviction = 'Set maxmemory-policy to noeviction: CONFIG SET, and the same in its file.'
  if (evictsKeys(policy)) return fail(`${detail}: API keys would be evicted`, noEviction)
  if (policy === 'volatile-ttl' || policy === 'volatile-random')
    return warn(`${detail}: counts in use may be evicted`, noEviction)
  if (most > 0 && used > nearlyFull * most)
    return warn(`${detail}: it is nearly full`, 'Give Redis more maxmemory.')
  return ok(detail)
}

export const persistenceFinding = (info: RedisInfo): Finding => {
  const fix = 'Check the disk of Redis and its log.'
  const hasFile = info.get('aof_enabled') === '1'
  if (hasFile && info.get('aof_last_write_status') === 'err')
    return fail('the last write of the append-only file failed', fix)
  if (info.get('rdb_last_bgsave_status') === 'err') return fail('the last snapshot failed', fix)
  return hasFile
    ? ok('appendonly yes')
    : warn(
        'appendonly no: after a crash keys and counts are as of the last snapshot, if there is one',
        'CONFIG SET appendonly yes, and the same in its file.',
      )
}

/** Every command that the store needs, with `@` before keys of its own, which end by themselves where the user may not delete them. */
const trials = `
set @text 1 PX 60000; getrange @text 0 1; exists @text; pexpire @text 60000; pexpireat @text 4102444800000
hset @hash a 1; pexpire @hash 60000; hget @hash a; hmget @hash a; hlen @hash; hgetall @hash; hdel @hash a
zadd @set 1 a; pexpire @set 60000; zcard @set; zrange @set 0 -1; zrangebyscore @set 0 1; zrevrangebyscore @set 1 0
zremrangebyscore @set 2 3; zremrangebyrank @set 2 3; zrem @set a
eval return(1) 1 @lua; evalsha ${'0'.repeat(40)} 1 @lua
time; ping; info server; publish @channel x
del @text; unlink @text @hash @set
`

const rightsFinding = async (redis: RedisClient, prefix: string, url: string): Promise<Finding> => {
  const user = new URL(url).username || 'default'
  // One slot of a cluster, and no key of the store.
  const tag = randomUUID()
  const key = (part: string): string => `${prefix}doctor:{${tag}}:${part}`
  const missing = new Set<string>()
  let otherFault: string | undefined
  const note = (command: string, fault: string | undefined): void => {
    if (fault === undefined || fault.startsWith('NOSCRIPT')) return
    if (fault.startsWith('NOPERM') && /key|channel/.test(fault) && !/to run/.test(fault))
      otherFault ??= `the user ${user} may not use ${/channel/.test(fault) ? `the channels ${prefix}*` : `the keys ${prefix}*`}`
    else if (fault.startsWith('NOPERM')) missing.add(command)
    else otherFault ??= `${command} failed: ${safeText(fault, 200)}`
  }
  for (const trial of trials.trim().split(/; |\n/)) {
    const [command = '', ...args] = trial.replaceAll(/@(\w+)/g, (_, part) => key(part)).split(' ')
    note(command, await faultOf(() => redis.call(command, ...args)))
  }
  const listener = listenerOn(redis)
  listener?.on('error', () => {})
  const fault = await faultOf(async () => {
    if (!listener) return
    await once(listener, 'ready')
    await listener.subscribe(key('channel'))
  })
  note('subscribe', fault)
  listener?.disconnect()
  if (missing.size > 0)
    return fail(
      `the user ${safeText(user, 60)} may not ${[...missing].join(', ')}`,
      `ACL SETUSER ${safeText(user, 60)} ${[...missing].map(each => `+${each}`).join(' ')}`,
    )
  if (otherFault === undefined)
    return ok(`the user ${safeText(user, 60)} may run every command that is needed`)
  const fix = otherFault.startsWith('the user')
    ? `ACL SETUSER ${safeText(user, 60)} ~${prefix}* &${prefix}*`
    : 'Check the log of Redis and its limits: CLIENT LIST, CONFIG GET maxclients.'
  return fail(otherFault, fix)
}

const faultOf = async (step: () => Promise<unknown>): Promise<string | undefined> => {
  try {
    await step()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

const redisAhead = async (redis: RedisClient, clock: Clock): Promise<Ahead> => {
  const before = clock.now()
  const [seconds, micros] = (await redis.time()) as [number | string, number | string]
  const read = Number(seconds) * 1000 + Number(micros) / 1000
  return aheadOf([read, read], [before, clock.now()])
}

const clusterFinding = async (redis: RedisClient): Promise<Finding> => {
  const fault = await faultOf(() => ping(redis))
  return fault === undefined
    ? ok('every master answers, cluster_state is ok')
    : fail(safeText(fault, 200), 'Check CLUSTER INFO and CLUSTER NODES of that node.')
}

export const roleFinding = (info: RedisInfo, mode: 'single' | 'sentinel'): Finding => {
  const role = info.get('role') ?? 'unknown'
  if (role !== 'master')
    return fail(
      `it is a ${role === 'slave' ? 'replica, which takes no writes' : role}`,
      'Name the master in redis.url, or use redis.mode: sentinel.',
    )
  const replicas = Number(info.get('connected_slaves') ?? 0)
  return mode === 'sentinel' && replicas === 0
    ? warn('the master has no replica, so nothing can take over', 'Start a replica of it.')
    : ok(`master with ${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`)
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1_048_576).toLocaleString('en-US')} MiB`
