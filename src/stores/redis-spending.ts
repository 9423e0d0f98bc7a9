// The spending at the provider, in Redis: one counter per window and one instant until which the provider is closed. All
// keys of one provider share a hash tag, so that a step over several windows stays in one slot of a cluster; every key has
// an expiry. An unreadable counter restarts at what the calling gateway knows; an impossible closure is removed.

import type { Result } from 'ioredis'
import { longestClosureMs, shown, wholeFrom } from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import { recordsLua } from './redis-records.ts'
import type { SpendingStore } from './store.ts'

// Reads a counter or an instant: its first 16 bytes, or `x` for a key of another Redis type.
const readLua = `${recordsLua}
local function textAt(key)
  local found = pcall('GETRANGE', key, 0, 15)
  if type(found) ~= 'table' then return found == '' and '0' or found end
  if not isOtherType(found) then return nil, found end
  return 'x'
end
`

// KEYS: closed, windows. ARGV: wanted, unit, now, the longest closure, then limit, keepUntil and the known count of each
// window. Returns the grant, the end of the closure and the count of each window; then which of the keys were repaired.
const reserveScript = `${readLua}
local unit, now, repaired = tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local value, failure = textAt(KEYS[1])
if failure then return failure end
local closed = whole(value)
if not closed or closed > now + tonumber(ARGV[4]) then
  call('DEL', KEYS[1])
  closed, repaired[1] = 0, 1
end
if closed <= now then closed = 0 end
local granted = closed > 0 and 0 or floor(tonumber(ARGV[1]) / unit) * unit
local reply = { 0, closed }
for i = 2, #KEYS do
  local at = i * 3 - 1
  value, failure = textAt(KEYS[i])
  if failure then return failure end
  local used = whole(value)
  if not used then
    used = tonumber(ARGV[at + 2])
    call('SET', KEYS[i], text('%d', used), 'PXAT', ARGV[at + 1])
    repaired[#repaired + 1] = i
  end
  reply[i + 1] = used
  granted = math.min(granted, floor((tonumber(ARGV[at]) - used) / unit) * unit)
end
if granted > 0 then
  reply[1] = granted
  for i = 2, #KEYS do
    reply[i + 1] = call('INCRBY', KEYS[i], text('%d', granted))
    call('PEXPIREAT', KEYS[i], ARGV[i * 3])
  end
end
return { reply, repaired }`

// KEYS: windows. ARGV: change, least former count or nothing, and keepUntil of each. An unreadable counter is left to the
// next reservation, unless the caller gives the former count.
const settleScript = `${readLua}
for i = 1, #KEYS do
  local value, failure = textAt(KEYS[i])
  if failure then return failure end
  local before, least = whole(value), tonumber(ARGV[i * 3 - 1])
  if before or least then
    local used = math.max(before or 0, least or 0) + tonumber(ARGV[i * 3 - 2])
    if used > 0 then
      call('SET', KEYS[i], text('%d', used), 'PXAT', ARGV[i * 3])
    else
      call('DEL', KEYS[i])
    end
  end
end`

const closeScript = `${readLua}
local value, failure = textAt(KEYS[1])
if failure then return failure end
local before, till = whole(value), tonumber(ARGV[1])
if not before or before < till or before > till + tonumber(ARGV[3]) then
  call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
end`

// KEYS: closed, windows. Returns the text of each that is a whole number, and \`-\` for another.
const spendingScript = `${readLua}
local reply = {}
for i = 1, #KEYS do
  local value, failure = textAt(KEYS[i])
  if failure then return failure end
  reply[i] = whole(value) and value or '-'
end
return reply`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaReserve(
      keys: number,
      ...keysAndValues: (string | number)[]
    ): Result<[counts: number[], repaired: number[]], Context>
    abohawaSettle(keys: number, ...keysAndValues: (string | number)[]): Result<null, Context>
    abohawaClose(
      key: string,
      until: number,
      keepUntil: number,
      longestClosureMs: number,
    ): Result<null, Context>
    abohawaSpending(keys: number, ...keyNames: string[]): Result<string[], Context>
  }
}

// Callers compare the instant with their own clock; the key expires a little later, in case the server's clock is fast.
const keepClosedForMs = 3_600_000

/** The spending of a store on this connection. */
export const redisSpending = ({ redis, names, attempt, observer }: RedisParts): SpendingStore => {
  redis.defineCommand('abohawaReserve', { lua: reserveScript })
  redis.defineCommand('abohawaSettle', { lua: settleScript })
  redis.defineCommand('abohawaClose', { numberOfKeys: 1, lua: closeScript })
  redis.defineCommand('abohawaSpending', { lua: spendingScript })
  const refuse = (name: string, fault: string) =>
    observer.recordRefused({ record: 'spending', name: shown(name), fault })

  return {
    reserve: ({ provider, windows, wanted, unit, now }) =>
      attempt(async () => {
        const keys = [
          names.closedUntil(provider),
          ...windows.map(({ name }) => names.spending(provider, name)),
        ]
        const bounds = windows.flatMap(({ limit, keepUntil, known = 0 }) => [limit, keepUntil, known])
        const [counts, repaired] = await redis.abohawaReserve(
          keys.length,
          ...keys,
          wanted,
          unit,
          now,
          longestClosureMs,
          ...bounds,
        )
        for (const number of repaired)
          refuse(keys[number - 1] ?? '', 'it was not readable, and was restarted')
        const [granted = 0, closed = 0, ...used] = counts.map(wholeFrom)
        return { granted, closedUntil: closed || null, used }
      }),
    settle: ({ provider, changes }) =>
      attempt(async () => {
        if (changes.length === 0) return
        const keys = changes.map(({ name }) => names.spending(provider, name))
        await redis.abohawaSettle(
          keys.length,
          ...keys,
          ...changes.flatMap(({ by, atLeast = '', keepUntil }) => [by, atLeast, keepUntil]),
        )
      }),
    closeUntil: (provider, until) =>
      attempt(async () => {
        const name = names.closedUntil(provider)
        await redis.abohawaClose(name, until, until + keepClosedForMs, longestClosureMs)
      }),
    spending: (provider, windows) =>
      attempt(async () => {
        const keys = [names.closedUntil(provider), ...windows.map(name => names.spending(provider, name))]
        const texts = await redis.abohawaSpending(keys.length, ...keys)
        texts.forEach((text, i) => {
          if (text === '-') refuse(keys[i] ?? '', 'it is not a whole number')
        })
        const [closed, ...used] = texts.map(text => (text === '-' ? null : wholeFrom(text)))
        return { used, closedUntil: closed || null }
      }),
  }
}
