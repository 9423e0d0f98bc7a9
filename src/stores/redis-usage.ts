// What keys used, counted in Redis. A day's count is one hash: the sum, and what each instance has dealt of it, so that
// an instance can say again what it dealt after a trip was lost and nothing is counted twice. Beside it a hash per key
// and month keeps the sums for as long as usage is kept.

import { crc32 } from 'node:zlib'
import type { Result } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { dayNumber, hourMs, utcDayMs } from '../calendar.ts'
import type { Attempt, RedisClient } from './redis-connection.ts'
import type { RedisListening } from './redis-listening.ts'
import { StoreError, type UsageStore, type UsedNews } from './store.ts'

// Counts of one bucket lie in one slot of a cluster, so that a trip is one command for all of its keys.
const buckets = 4
const bucketOf = (keyId: string): number => crc32(keyId) % buckets
/** The hash tag under which everything lies that is counted for a key. */
export const usageTag = (keyId: string): string => `{q${bucketOf(keyId)}}`
// A trip may still be on its way when its day is over.
const keepLiveForMs = hourMs
const mostNames = 10_000
const fieldsPerTake = 5

// KEYS: the day's count and the month's record of each take. ARGV: instance, sequence, channel, how long the names of
// counts are up to their bucket, and as JSON the days, each with the ends of a count and of a record, and the takes in one
// row of numbers: units, limit, dealt, step and which of the days. A refused take makes no count. Answers in one string,
// because a number by itself costs more to send and to read than to count.
const takeScript = `
local call, match, floor, text = redis.call, string.match, math.floor, string.format
local instance, sequence = ARGV[1], tonumber(ARGV[2])
local days, takes = cjson.decode(ARGV[5]), cjson.decode(ARGV[6])
local reply = {}
for i = 1, #KEYS / 2 do
  local live, at = KEYS[2 * i - 1], (i - 1) * ${fieldsPerTake}
  local units, limit, dealt, day = takes[at + 1], takes[at + 2], takes[at + 3], days[takes[at + 5]]
  local found = call('HMGET', live, 'used', instance)
  local told = found[1] or '0'
  local before, used = tonumber(told), tonumber(told) + dealt
  if found[2] then
    local last, mine = match(found[2], '(%d+) (%d+)')
    if tonumber(last) >= sequence then return redis.error_reply('OVERTAKEN by trip ' .. last) end
    used = used - mine
  end
  if used < 0 then used = 0 end
  local taken = limit - used
  if taken > units then taken = units end
  if taken < 0 then taken = 0 end
  used = used + taken
  local usedText = told
  if used ~= before then
    usedText = text('%d', used)
    if call('HSET', KEYS[2 * i], day[1], usedText) == 1 then call('PEXPIREAT', KEYS[2 * i], day[3]) end
    local step = takes[at + 4]
    if floor(used / step) > floor(before / step) then
      local name = string.sub(live, string.find(live, '}', ARGV[4], true) + 2)
      call('PUBLISH', ARGV[3], string.sub(name, 1, -12) .. ' ' .. string.sub(name, -10) .. ' ' .. usedText)
    end
  end
  if found[1] or used > 0 then
    call('HSET', live, 'used', usedText, instance, text('%s %d', ARGV[2], dealt + taken))
    if not found[1] then call('PEXPIREAT', live, day[2]) end
  end
  reply[i] = text('%d %s %s', taken, usedText, told)
end
return table.concat(reply, ' ')`

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
    abohawaTake(keys: number, ...keysAndValues: (string | number)[]): Result<string, Context>
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
  const nameIn = (kind: string, keyId: string, time: string) =>
    `${key(kind)}:${usageTag(keyId)}:${keyId}:${time}`
  const liveKey = (keyId: string, day: string) => nameIn('quota', keyId, day)
  const recordKey = (keyId: string, day: string) => nameIn('used', keyId, day.slice(0, 7))
  const channel = key('used')
  const lengthToBucket = Buffer.byteLength(key('quota'))
  // Of the keys that were counted last, because a trip names each of its keys twice.
  const names = new LRUCache<string, { day: string; live: string; record: string }>({ max: mostNames })
  const namesOf = (keyId: string, day: string) => {
    const known = names.get(keyId)
    if (known?.day === day) return known
    const made = { day, live: liveKey(keyId, day), record: recordKey(keyId, day) }
    names.set(keyId, made)
    return made
  }

  return {
    partitionOf: redis.isCluster ? bucketOf : () => 0,
    take: ({ instance, sequence, takes }) =>
      attempt(async () => {
        const keys: string[] = []
        const numbers: number[] = []
        const days: [dayOfMonth: string, liveUntil: number, recordUntil: number][] = []
        let day = ''
        for (const take of takes) {
          if (take.day !== day) {
            day = take.day
            days.push([
              day.slice(-2),
              Math.min(take.keepUntil, take.endsAt + keepLiveForMs),
              // The record is of a month, and its days are written one after the other.
              take.keepUntil + 31 * utcDayMs,
            ])
          }
          const { live, record } = namesOf(take.keyId, day)
          keys.push(live, record)
          numbers.push(take.units, take.limit, take.dealt, take.step, days.length)
        }
        const reply = await redis.abohawaTake(
          keys.length,
          ...keys,
          instance,
          sequence,
          channel,
          lengthToBucket,
          JSON.stringify(days),
          JSON.stringify(numbers),
        )
        const told = reply === '' ? [] : reply.split(' ')
        if (told.length !== takes.length * 3)
          throw new StoreError(`Redis answered ${told.length} numbers for ${takes.length} counts`)
        return takes.map((_, i) => ({
          taken: Number(told[3 * i]),
          used: Number(told[3 * i + 1]),
          before: Number(told[3 * i + 2]),
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
