// What was spent at the provider, in Redis: one count per window and one instant until which the provider is closed.
// All keys of one provider share a hash tag, so that a step over several windows stays in one slot of a cluster, and
// every key carries an expiry. A count that can't be read begins again at what the asking gateway knows of it; a closure
// that nobody can have meant is lifted. What is spent on, and why, is the caller's.

import type { Result } from 'ioredis'
import { longestClosureMs, shown, wholeFrom } from './records.ts'
import type { RedisParts } from './redis-connection.ts'
import { recordsLua } from './redis-records.ts'
import type { SpendingStore } from './store.ts'

// The text of a count or an instant: as much of it as one has, however long it is, and `x` for another type of Redis.
const readLua = `${recordsLua}
local function textAt(key)
  local found = pcall('GETRANGE', key, 0, 15)
  if type(found) ~= 'table' then return found == '' and '0' or found end
  if not isOtherType(found) then return nil, found end
  return 'x'
end
`

// KEYS: closed, windows. ARGV: wanted, unit, now, the longest closure, then limit, keepUntil and what is known of each
// window. Answers what was granted, until when it is closed, and what each window holds; then which of the keys were
// mended.
const reserveScript = `${readLua}
local unit, now, mended = tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local told, failure = textAt(KEYS[1])
if failure then return failure end
local closed = whole(told)
if not closed or closed > now + tonumber(ARGV[4]) then
  call('DEL', KEYS[1])
  closed, mended[1] = 0, 1
end
if closed <= now then closed = 0 end
local granted = closed > 0 and 0 or floor(tonumber(ARGV[1]) / unit) * unit
local reply = { 0, closed }
for i = 2, #KEYS do
  local at = i * 3 - 1
  told, failure = textAt(KEYS[i])
  if failure then return failure end
  local used = whole(told)
  if not used then
    used = tonumber(ARGV[at + 2])
    call('SET', KEYS[i], text('%d', used), 'PXAT', ARGV[at + 1])
    mended[#mended + 1] = i
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
return { reply, mended }`

// KEYS: windows. ARGV: change, what was there at the least or nothing, and keepUntil of each. A count that can't be read
// stays for the next reservation to mend, unless the caller says what was there.
const settleScript = `${readLua}
for i = 1, #KEYS do
  local told, failure = textAt(KEYS[i])
  if failure then return failure end
  local before, least = whole(told), tonumber(ARGV[i * 3 - 1])
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
local told, failure = textAt(KEYS[1])
if failure then return failure end
local before, till = whole(told), tonumber(ARGV[1])
if not before or before < till or before > till + tonumber(ARGV[3]) then
  call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[2])
end`

// KEYS: closed, windows. Answers the text of each that is a whole number, and \`-\` for another.
const spendingScript = `${readLua}
local reply = {}
for i = 1, #KEYS do
  local told, failure = textAt(KEYS[i])
  if failure then return failure end
  reply[i] = whole(told) and told or '-'
end
return reply`

declare module 'ioredis' {
  interface RedisCommander<Context> {
    abohawaReserve(
      keys: number,
      ...keysAndValues: (string | number)[]
    ): Result<[counts: number[], mended: number[]], Context>
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

// Instants are compared with those of the callers; the key itself goes a little later, for a server whose clock is fast.
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
        const [counts, mended] = await redis.abohawaReserve(
          keys.length,
          ...keys,
          wanted,
          unit,
          now,
          longestClosureMs,
          ...bounds,
        )
        for (const number of mended) refuse(keys[number - 1] ?? '', 'it could not be, and was begun anew')
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
        const told = await redis.abohawaSpending(keys.length, ...keys)
        told.forEach((text, i) => {
          if (text === '-') refuse(keys[i] ?? '', 'it is no whole number')
        })
        const [closed, ...used] = told.map(text => (text === '-' ? null : wholeFrom(text)))
        return { used, closedUntil: closed || null }
      }),
  }
}
