// What the instances of a fleet tell one another through Redis: that they are alive, what they were asked for, and
// notices in the order they were given.

import type { Result } from 'ioredis'
import type { Attempt, RedisClient } from './redis-connection.ts'
import type { FleetStore, Notice } from './store.ts'

// The number of a notice is its score: the time, so that a list which was lost, or came back without its end, never gives
// a number again that somebody has seen already.
const appendScript = `
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local number = math.max((tonumber(last[2] or '0') or 0) + 1, now)
redis.call('ZADD', KEYS[1], number, number .. ' ' .. ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
return number`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaAppend(key: string, text: string, keepUntil: number, most: number): Result<number, Context>
  }
}

const mostNotices = 1_000
const namesPerCommand = 1_000

export const redisFleet = (
  redis: RedisClient,
  key: (...parts: string[]) => string,
  attempt: Attempt,
): FleetStore => {
  redis.defineCommand('abohawaAppend', { numberOfKeys: 1, lua: appendScript })
  return {
    pulse: ({ instance, aliveForMs, topic, asked, wantedForMs, now }) =>
      attempt(async () => {
        const instances = key('instances')
        const wanted = key('wanted', topic)
        const steps: Promise<unknown>[] = [
          redis.zadd(instances, now, instance),
          redis.zremrangebyscore(instances, '-inf', now - aliveForMs),
          redis.pexpire(instances, aliveForMs * 2),
          redis.zremrangebyscore(wanted, '-inf', now - wantedForMs),
        ]
        for (let i = 0; i < asked.length; i += namesPerCommand)
          steps.push(redis.zadd(wanted, ...asked.slice(i, i + namesPerCommand).flatMap(name => [now, name])))
        steps.push(redis.pexpire(wanted, wantedForMs * 2))
        const [alive, wantedNow] = await Promise.all([redis.zcard(instances), redis.zcard(wanted), ...steps])
        return { instances: Math.max(1, alive), wanted: wantedNow }
      }),
    wanted: (topic, since) => attempt(() => redis.zrevrangebyscore(key('wanted', topic), '+inf', since)),
    appendNotice: (topic, text, keepUntil) =>
      attempt(() => redis.abohawaAppend(key('notices', topic), text, keepUntil, mostNotices)),
    noticesAfter: (topic, number) =>
      attempt(async () => {
        const found = await redis.zrangebyscore(key('notices', topic), number, '+inf', 'WITHSCORES')
        const notices = Array.from({ length: found.length / 2 }, (_, i) => ({
          number: Number(found[2 * i + 1]),
          text: (found[2 * i] ?? '').replace(/^\d+ /, ''),
        }))
        return splitAt(number, notices)
      }),
  }
}

// Notices leave the list at its beginning only, so where one is still there all after it are.
const splitAt = (number: number, notices: Notice[]): { notices: Notice[]; complete: boolean } => {
  if (number === 0) return { notices, complete: notices.length < mostNotices }
  const [first, ...later] = notices
  return first?.number === number ? { notices: later, complete: true } : { notices, complete: false }
}
