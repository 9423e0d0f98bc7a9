// What was spent at the provider, in Redis: one count per window and one instant until which the provider is closed.
// All keys of one provider share a hash tag, so that a step over several windows stays in one slot of a cluster, and
// every key carries an expiry. What is spent on, and why, is the caller's.

import type { Result } from 'ioredis'
import type { Attempt, RedisClient } from './redis-connection.ts'
import type { SpendingStore } from './store.ts'

// KEYS: closed, windows. ARGV: wanted, unit, now, then limit and keepUntil of each window.
const reserveScript = `
local unit, now = tonumber(ARGV[2]), tonumber(ARGV[3])
local closed = tonumber(redis.call('GET', KEYS[1]) or '0')
if closed <= now then closed = 0 end
local granted = closed > 0 and 0 or math.floor(tonumber(ARGV[1]) / unit) * unit
local reply = { 0, closed }
for i = 2, #KEYS do
  local used = tonumber(redis.call('GET', KEYS[i]) or '0')
  reply[i + 1] = used
  granted = math.min(granted, math.floor((tonumber(ARGV[i * 2]) - used) / unit) * unit)
end
if granted > 0 then
  reply[1] = granted
  for i = 2, #KEYS do
    reply[i + 1] = redis.call('INCRBY', KEYS[i], string.format('%.0f', granted))
    redis.call('PEXPIREAT', KEYS[i], ARGV[i * 2 + 1])
  end
end
return reply`

// KEYS: windows. ARGV: change, what was there at the least, and keepUntil of each.
const settleScript = `
for i = 1, #KEYS do
  local before = math.max(tonumber(redis.call('GET', KEYS[i]) or '0'), tonumber(ARGV[i * 3 - 1]))
  local used = before + tonumber(ARGV[i * 3 - 2])
  if used > 0 then
    redis.call('SET', KEYS[i], string.format('%.0f', used), 'PXAT', ARGV[i * 3])
  else
    redis.call('DEL', KEYS[i])
  end
end`

const closeScript = `
if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
end`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaReserve(keys: number, ...keysAndValues: (string | number)[]): Result<number[], Context>
    abohawaSettle(keys: number, ...keysAndValues: (string | number)[]): Result<null, Context>
    abohawaClose(key: string, until: number, keepUntil: number): Result<null, Context>
  }
}

// Instants are compared with those of the callers; the key itself goes a little later, for a server whose clock is fast.
const keepClosedForMs = 3_600_000

/** The spending of a store on this connection. @param attempt turns failures into StoreError */
export const redisSpending = (redis: RedisClient, prefix: string, attempt: Attempt): SpendingStore => {
  redis.defineCommand('abohawaReserve', { lua: reserveScript })
  redis.defineCommand('abohawaSettle', { lua: settleScript })
  redis.defineCommand('abohawaClose', { numberOfKeys: 1, lua: closeScript })
  const key = (provider: string, name: string) => `${prefix}spending:{${provider}}:${name}`

  return {
    reserve: ({ provider, windows, wanted, unit, now }) =>
      attempt(async () => {
        const keys = ['closed', ...windows.map(({ name }) => name)].map(name => key(provider, name))
        const bounds = windows.flatMap(({ limit, keepUntil }) => [limit, keepUntil])
        const reply = await redis.abohawaReserve(keys.length, ...keys, wanted, unit, now, ...bounds)
        const [granted = 0, closed = 0, ...used] = reply
        return { granted, closedUntil: closed || null, used }
      }),
    settle: ({ provider, changes }) =>
      attempt(async () => {
        if (changes.length === 0) return
        const keys = changes.map(({ name }) => key(provider, name))
        await redis.abohawaSettle(
          keys.length,
          ...keys,
          ...changes.flatMap(({ by, atLeast = 0, keepUntil }) => [by, atLeast, keepUntil]),
        )
      }),
    closeUntil: (provider, until) =>
      attempt(async () => {
        await redis.abohawaClose(key(provider, 'closed'), until, until + keepClosedForMs)
      }),
    spending: (provider, names) =>
      attempt(async () => {
        const [closed, ...used] = await redis.mget(['closed', ...names].map(name => key(provider, name)))
        return { used: used.map(count => Number(count ?? 0)), closedUntil: closed ? Number(closed) : null }
      }),
  }
}
