// What keys used, counted in Redis. A day's count is one hash: the sum, and what each instance has dealt of it, so that
// an instance can say again what it dealt after a trip was lost and nothing is counted twice. Beside it a hash per key
// and month keeps the sums for as long as usage is kept.

import { crc32 } from 'node:zlib'
import type { Result } from 'ioredis'
import { dayNumber, hourMs, utcDayMs } from '../calendar.ts'
import type { Attempt, RedisClient } from './redis-connection.ts'
import type { RedisListening } from './redis-listening.ts'
import { StoreError, type UsageStore, type UsedNews } from './store.ts'

// Counts of one bucket lie in one slot of a cluster, so that a trip is one command for all of its keys.
const buckets = 16
// A trip may still be on its way when its day is over.
const keepLiveForMs = hourMs
const fieldsPerTake = 7

// KEYS: the day's count and the month's record of each take. ARGV: instance, sequence, channel, then for each take
// units, limit, dealt, step, end of the live count, end of the record, and `key day`. A refused take makes no count.
const takeScript = `
local instance, sequence = ARGV[1], tonumber(ARGV[2])
local reply = {}
for i = 1, #KEYS / 2 do
  local at = 3 + (i - 1) * ${fieldsPerTake}
  local units, limit, dealt = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local found = redis.call('HMGET', KEYS[2 * i - 1], 'used', instance)
  local before = tonumber(found[1] or '0')
  local last, mine = 0, 0
  if found[2] then
    local blank = string.find(found[2], ' ', 1, true)
    last, mine = tonumber(string.sub(found[2], 1, blank - 1)), tonumber(string.sub(found[2], blank + 1))
  end
  if last >= sequence then
    return redis.error_reply('OVERTAKEN by trip ' .. last)
  end
  local used = math.max(0, before + dealt - mine)
  local taken = math.max(0, math.min(units, limit - used))
  used = used + taken
  if found[1] or used > 0 then
    redis.call('HSET', KEYS[2 * i - 1], 'used', used, instance, sequence .. ' ' .. (dealt + taken))
    if not found[1] then redis.call('PEXPIREAT', KEYS[2 * i - 1], ARGV[at + 5]) end
  end
  if used ~= before then
    local keyDay = ARGV[at + 7]
    if redis.call('HSET', KEYS[2 * i], string.sub(keyDay, -2), used) == 1 then
      redis.call('PEXPIREAT', KEYS[2 * i], ARGV[at + 6])
    end
    local step = tonumber(ARGV[at + 4])
    if math.floor(used / step) > math.floor(before / step) then
      redis.call('PUBLISH', ARGV[3], keyDay .. ' ' .. used)
    end
  end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = taken, used, before
end
return reply`

// KEYS: the day's count and the month's record. ARGV: the count, the ends of both, and the day of the month.
const raiseScript = `
local used = tonumber(ARGV[1])
if tonumber(redis.call('HGET', KEYS[2], ARGV[4]) or '0') >= used then return 0 end
redis.call('HSET', KEYS[1], 'used', used)
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[4], used)
redis.call('PEXPIREAT', KEYS[2], ARGV[3])
return 1`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaTake(keys: number, ...keysAndValues: (string | number)[]): Result<number[], Context>
    abohawaRaise(
      live: string,
      record: string,
      used: number,
      liveUntil: number,
      recordUntil: number,
      dayOfMonth: string,
    ): Result<number, Context>
  }
}

export const redisUsage = (
  redis: RedisClient,
  key: (...parts: string[]) => string,
  attempt: Attempt,
  listen: RedisListening['listen'],
): UsageStore => {
  redis.defineCommand('abohawaTake', { lua: takeScript })
  redis.defineCommand('abohawaRaise', { numberOfKeys: 2, lua: raiseScript })
  const bucketOf = (keyId: string) => crc32(keyId) % buckets
  const tag = (keyId: string) => `{q${bucketOf(keyId)}}`
  const liveKey = (keyId: string, day: string) => key('quota', tag(keyId), keyId, day)
  const recordKey = (keyId: string, day: string) => key('used', tag(keyId), keyId, day.slice(0, 7))
  const channel = key('used')

  return {
    partitionOf: redis.isCluster ? bucketOf : () => 0,
    take: ({ instance, sequence, takes }) =>
      attempt(async () => {
        const reply = await redis.abohawaTake(
          takes.length * 2,
          ...takes.flatMap(({ keyId, day }) => [liveKey(keyId, day), recordKey(keyId, day)]),
          instance,
          sequence,
          channel,
          ...takes.flatMap(({ keyId, day, units, limit, dealt, step, endsAt, keepUntil }) => [
            units,
            limit,
            dealt,
            step,
            Math.min(keepUntil, endsAt + keepLiveForMs),
            // The record is of a month, and its days are written one after the other.
            keepUntil + 31 * utcDayMs,
            `${keyId} ${day}`,
          ]),
        )
        if (reply.length !== takes.length * 3)
          throw new StoreError(`Redis answered ${reply.length} numbers for ${takes.length} counts`)
        return takes.map((_, i) => ({
          taken: reply[3 * i] ?? 0,
          used: reply[3 * i + 1] ?? 0,
          before: reply[3 * i + 2] ?? 0,
        }))
      }),
    usedOn: (keyId, days) =>
      attempt(async () => {
        const months = new Set(days.map(day => day.slice(0, 7)))
        const records = new Map(
          await Promise.all(
            [...months].map(async month => [month, await redis.hgetall(recordKey(keyId, month))] as const),
          ),
        )
        return days.map(day => Number(records.get(day.slice(0, 7))?.[day.slice(8)] ?? 0))
      }),
    onUsed: listener => {
      let lost = false
      return listen(channel, {
        message: text => listener(newsOf(text)),
        lost: () => {
          lost = true
          listener('lost')
        },
        // What was told until now was missed; before the first time there was nothing to miss.
        again: () => {
          if (lost) listener('lost')
        },
      })
    },
    time: () =>
      attempt(async () => {
        const [seconds = 0, micros = 0] = await redis.time()
        return Number(seconds) * 1000 + Number(micros) / 1000
      }),
    raiseUsed: (keyId, day, used, keepUntil) =>
      attempt(async () => {
        await redis.abohawaRaise(
          liveKey(keyId, day),
          recordKey(keyId, day),
          used,
          // Wherever it is the day, it is over by then; a count of a past day is gone at once.
          (dayNumber(day) + 3) * utcDayMs,
          keepUntil + 31 * utcDayMs,
          day.slice(8),
        )
      }),
  }
}

// What can't be understood may stand for news.
const newsOf = (message: string): UsedNews | 'lost' => {
  const [keyId = '', day = '', used = ''] = message.split(' ')
  return /^\d+$/.test(used) ? { keyId, day, used: Number(used) } : 'lost'
}
