// What keys used, counted in Redis: a counter per key and day.

import type { Redis, Result } from 'ioredis'
import type { UsageStore } from './store.ts'

// Takes what is left up to the units asked for, counts it and sets the expiry in one step, so that no counter is ever
// without one. A refused request changes nothing.
const takeScript = `
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
local taken = math.max(0, math.min(tonumber(ARGV[1]), tonumber(ARGV[2]) - used))
if taken > 0 then
  used = redis.call('INCRBY', KEYS[1], taken)
  redis.call('PEXPIREAT', KEYS[1], ARGV[3])
end
return { taken, used }`

const raiseScript = `
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
return 1`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaTake(
      key: string,
      units: number,
      limit: number,
      keepUntil: number,
    ): Result<[number, number], Context>
    abohawaRaise(key: string, used: number, keepUntil: number): Result<number, Context>
  }
}

type Attempt = <Value>(step: () => Promise<Value>) => Promise<Value>

export const redisUsage = (
  redis: Redis,
  key: (...parts: string[]) => string,
  attempt: Attempt,
): UsageStore => {
  redis.defineCommand('abohawaTake', { numberOfKeys: 1, lua: takeScript })
  redis.defineCommand('abohawaRaise', { numberOfKeys: 1, lua: raiseScript })
  return {
    take: ({ keyId, day, units, limit, keepUntil }) =>
      attempt(async () => {
        const [taken, used] = await redis.abohawaTake(
          key('usage', `{${keyId}}`, day),
          units,
          limit,
          keepUntil,
        )
        return { taken, used }
      }),
    usedOn: (keyId, days) =>
      attempt(async () => {
        if (days.length === 0) return []
        const counts = await redis.mget(days.map(day => key('usage', `{${keyId}}`, day)))
        return counts.map(count => Number(count ?? 0))
      }),
    raiseUsed: (keyId, day, used, keepUntil) =>
      attempt(async () => {
        await redis.abohawaRaise(key('usage', `{${keyId}}`, day), used, keepUntil)
      }),
  }
}
